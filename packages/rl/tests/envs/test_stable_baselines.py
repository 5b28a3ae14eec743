"""Stable-Baselines3 trains on our environments unchanged, and RSD scores what it made."""

import gymnasium
import numpy as np
import pytest

import rapo
from rapo.cli.main import app

stable_baselines3 = pytest.importorskip("stable_baselines3")


def test_ppo_trains_on_the_single_environment_and_is_scored(tmp_path):
    env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=40, graph_seed=0, deformation="off")
    model = stable_baselines3.PPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=0)
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(256)
    after = list(model.policy.parameters())
    assert any(not np.array_equal(a.detach(), b) for a, b in zip(after, before, strict=True))

    found = rapo.rsd.evaluate(env, model, episodes=2, coupled=True, horizons=(60, 20, 60))
    assert np.allclose(found.frame[["RAG", "AUC_R", "SM_R"]], 1, atol=1e-6)

    model.save(tmp_path / "model.zip")
    words = ["rsd", str(tmp_path / "model.zip"), "--nodes", "40", "--episodes", "2"]
    app([*words, "--horizons", "60,20,60", "--out", str(tmp_path / "out")], standalone_mode=False)
    assert len(rapo.rsd.RSDResult.load(tmp_path / "out").frame) == 2
