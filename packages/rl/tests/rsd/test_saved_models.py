"""Models that Stable-Baselines3 saved are loaded as what wrote them."""

import gymnasium
import pytest

from rapo.policies import find_policy
from rapo.rsd import evaluate

sb3 = pytest.importorskip("stable_baselines3")
TINY = {"seed": 0, "device": "cpu", "policy_kwargs": {"net_arch": [4]}}
KINDS = {
    "PPO": {"n_steps": 8, "batch_size": 8},
    "A2C": {},
    "DQN": {"buffer_size": 10},
    "RecurrentPPO": {"n_steps": 8, "batch_size": 8},
}


@pytest.fixture(scope="module")
def env(small_graph):
    return gymnasium.make("rapo/GraphDiffusion-v0", graph=small_graph, fit=False)


def made(name, env):
    package = sb3
    if name == "RecurrentPPO":
        package = pytest.importorskip("sb3_contrib")
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    return getattr(package, name)(policy, env, **TINY, **KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_a_model_comes_back_as_what_it_was_and_runs(name, env, tmp_path):
    model = made(name, env)
    model.save(tmp_path / "model.zip")
    found = find_policy(str(tmp_path / "model.zip"))
    assert type(found) is type(model)
    options = {"episodes": 2, "horizons": (20, 5, 20), "deterministic": True}
    assert evaluate(env, found, **options).frame.equals(evaluate(env, model, **options).frame)


def test_what_cannot_be_loaded_says_what_was_tried(env, tmp_path):
    import zipfile

    made("PPO", env).save(tmp_path / "whole.zip")
    with (
        zipfile.ZipFile(tmp_path / "whole.zip") as whole,
        zipfile.ZipFile(tmp_path / "torn.zip", "w") as torn,
    ):
        for part in ("data", "_stable_baselines3_version"):
            torn.writestr(part, whole.read(part))
    with pytest.raises(ValueError, match=r"tried PPO .*A2C .*DQN"):
        find_policy(str(tmp_path / "torn.zip"))
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(ValueError, match="not a model saved by Stable-Baselines3"):
        find_policy(str(tmp_path / "text.zip"))
    with pytest.raises(ValueError, match="there is no model at"):
        find_policy(str(tmp_path / "none.zip"))
