"""Methods of the paper on platforms: what they see and pay, runs that go on, refusals."""

import numpy as np
import pytest

from rapo import FieldParams
from rapo.agents import PPOConfig, RunConfig, load_agent
from rapo.agents.methods import METHODS
from rapo.agents.resolve import EPISODES_PER_ACTION as EACH
from rapo.agents.resolve import REFERENCE_SEED as SEED
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run, is_platform
from rapo.agents.saved_run import load_state
from rapo.agents.train import train
from rapo.cascade.setting import Setting
from rapo.envs.field_summary import SUMMARY, field_summary
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.platforms import PlatformVectorEnv
from rapo.platforms.routing import Routing
from rapo.rsd import evaluate

SMALL = PPOConfig(envs=4, rollout=512, minibatch=128, epochs=1, hidden=16)
KWARGS = {"data": "stand-in", "horizons": [90, 20, 90]}


def config(method="RAPO", **changes):
    given = {
        "env": "rapo/Routing-v0", "env_kwargs": KWARGS, "steps": 1024, "ppo": SMALL, "seed": 3,
    }  # fmt: skip
    return RunConfig(method=method, **{**given, **changes})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs of four methods, by name."""
    out = tmp_path_factory.mktemp("platform")
    for method in ("GE", "DR", "PM-ST", "RAPO"):
        train(config(method), out / method)
    return out


def test_every_method_is_trained_and_its_policy_scored_on_other_seeds(trained):
    for method in ("GE", "DR", "PM-ST", "RAPO"):
        agent, its = load_agent(trained / method)
        assert its == config(method)
        other = resolve(its).environment(1, seed=7)  # another network, with another number of links
        found = evaluate(other, agent, 2, horizons=(60, 10, 60))
        assert np.isfinite(found.frame["ReplayReturn"]).all()
        sees = METHODS[method].observe != "x"
        assert (found.frame["ASD"].to_numpy() > 0).any() == sees
        assert other.engine.scope.kind == METHODS[method].deformation


def test_a_run_goes_on_to_the_same_weights(trained, tmp_path):
    train(config(steps=512), tmp_path / "cut")
    train(config(), tmp_path / "cut", resume=True)
    whole, cut = (load_state(folder)["weights"] for folder in (trained / "RAPO", tmp_path / "cut"))
    assert np.array_equal(whole, cut)


def test_costs_are_in_units_of_the_best_constant_under_P0():
    made = config("RAPO")
    env = PlatformVectorEnv(4 * EACH, platform=Routing, deformation="off", **KWARGS)
    totals = []
    for action in range(4):
        env.reset(seed=SEED)
        mine = slice(EACH * action, EACH * (action + 1))
        sums = np.zeros(3)
        for _ in range(200):
            _, reward, _, _, info = env.step(np.full(4 * EACH, action))
            told = (reward, info["cost_G"], info["cost_H"])
            sums += [values[mine].mean() / 200 for values in told]
        totals.append(sums)
    _, trace, scar = max(totals, key=lambda sums: sums[0])
    assert resolve(made).references() == pytest.approx({"cost_G": trace, "cost_H": scar})
    found = {c.name: c for c in resolve(made).constraints()}
    assert found["trace"].lag == 52 and found["trace"].retained == pytest.approx(0.9)
    assert {c.budget for c in found.values()} == {0.9}
    assert not resolve(config("GE")).constraints()


def test_the_summary_says_what_the_fields_are():
    rng = np.random.default_rng(0)
    G, H = rng.random((3, 12)), rng.random((3, 12)) * 4
    H[:, 4:] = 0
    params = FieldParams()
    told = field_summary(G, H, params)
    assert told.shape == (3, SUMMARY) and told.dtype == np.float32
    assert told[:, 0] == pytest.approx(np.log1p(G.sum(axis=1)))
    assert told[:, 5] == pytest.approx(np.log1p(H.max(axis=1)))
    top = -np.sort(-H, axis=1)[:, :5].mean(axis=1)
    assert told[:, 6] == pytest.approx(np.log1p(top))
    assert told[:, 7] == pytest.approx((H > 0.01).mean(axis=1))
    psi = np.clip(np.exp(-G - 2 * H), 0.1, 1)
    assert told[:, 8] == pytest.approx(psi.mean(axis=1))
    assert told[:, 9] == pytest.approx(psi.min(axis=1))
    assert (field_summary(G[:, :2], H[:, :2], params)[:, 0] > 0).all()  # fewer regions than five


@pytest.mark.parametrize("make", [
    lambda **options: PlatformVectorEnv(2, platform=Routing, data="stand-in", **options),
    lambda **options: GraphDiffusionVectorEnv(2, nodes=60, **options),
])  # fmt: skip
def test_environments_show_the_summary_and_mask_it(make):
    plain, env = make(), make(observe="xsummary")
    size = plain.single_observation_space.shape[0]
    assert env.single_observation_space.shape == (size + SUMMARY,)
    assert env.memory_mask.sum() == SUMMARY and not env.memory_mask[:size].any()
    for one in (plain, env):
        one.reset(seed=0)
    for _ in range(120):
        x = plain.step(np.zeros(2, int))[0]
        seen = env.step(np.zeros(2, int))[0]
    assert np.array_equal(seen[:, :size], x)
    expected = field_summary(env.engine.G, env.engine.H, env.engine.params)
    assert np.array_equal(seen[:, size:], expected) and (expected[:, 0] > 0).any()


@pytest.mark.parametrize("delay", [5, 60])
def test_one_delay_is_carried_back_by_one_trace_in_every_environment(delay):
    setting = Setting.default().replace(delay=delay, horizons=(90, 20, 90))
    graph = graph_run("DR", nodes=40, setting=setting, ppo=SMALL)
    other = RunConfig(
        method="DR", env="CartPole-v1", cost="info:x", budget=1.0, delay=delay, ppo=SMALL
    )
    decays = {resolve(config).constraints()[0].decay for config in (graph, other)}
    assert decays == {max(SMALL.cost_gamma * SMALL.gae_lambda, 1 - 1 / delay)}


def test_ids_of_platforms_are_told_from_others():
    for name in ("rapo/Feed-v0", "rapo/Routing-v0", "rapo/GraphDiffusion-v0"):
        assert is_platform(name)
    for name in ("CartPole-v1", "nowhere/At-v0", "no_such_package:rapo/Feed-v0"):
        assert not is_platform(name)


@pytest.mark.parametrize(("changes", "named"), [
    ({"method": "Shield"}, "Shield"),
    ({"method": "off@rep"}, "RAPO"),
    ({"env": "CartPole-v1"}, "CartPole-v1"),
    ({"env_kwargs": {"deformation": "off"}}, "deformation"),
    ({"budget": -1}, "-1"),
    ({"steps": 0}, "0"),
])  # fmt: skip
def test_what_cannot_be_trained_is_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        config(**changes)


def test_a_wrong_option_of_the_platform_is_told():
    with pytest.raises(ValueError, match="roads"):
        resolve(config(env_kwargs={"roads": 3})).environment(1)
