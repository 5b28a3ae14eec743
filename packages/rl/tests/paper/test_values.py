"""Numbers of the studies against values worked out by hand, and seeds that never meet."""

import numpy as np
import pandas as pd

from rapo.agents import ppo as ppo_module
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.cascade.draws import derive
from rapo.paper import shields
from rapo.paper.studies.table1.analysis import against_twin


def test_off_at_replay_is_divided_by_the_exposure_of_its_p0_twin():
    episodes = pd.DataFrame({"method": ["P0-twin", "off@rep"], "graph_seed": 0, "episode": 0})
    for name in ("peak", "reach", "inside"):
        episodes[f"{name}_exposure"] = [4.0, 2.0]
        episodes[f"{name}_replay"] = [5.0, 8.0]
    ratios = against_twin(episodes).iloc[0]
    assert (ratios["RAG"], ratios["AUC_R"], ratios["SM_R"]) == (2.0, 2.0, 2.0)  # 8 / 4
    assert against_twin(episodes[:1]).empty


def test_training_meets_no_episode_of_an_evaluation(monkeypatch):
    seen = []
    tiny = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
    config = graph_run(method="GE", nodes=40, steps=256, ppo=tiny)
    env = resolve(config).environment(4, autoreset_mode="SameStep")
    reset = env.reset
    monkeypatch.setattr(env, "reset", lambda **k: seen.append(k["seed"]) or reset(**k))
    for seed in (0, 1, 7):
        ppo_module.PPO(env, tiny, seed=seed)
    trained = {s + i for s in seen for i in range(4)}
    assert len(trained) == 12  # nor of one another
    evaluated = set(range(100_000)) | {shields.HELD_OUT + i for i in range(1000)}
    assert not trained & evaluated
    keys = derive(derive(np.array(sorted(trained)), 0), 0)
    assert not set(keys.tolist()) & set(derive(derive(np.arange(100_000), 0), 0).tolist())
