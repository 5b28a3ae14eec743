"""Greedy on psi against a loop over nodes and against what the engine serves."""

import numpy as np
import pytest

import rapo
from rapo.cascade.greedy_policy import GreedyPolicy
from rapo.cascade.setting import EXPOSURE, PHASES, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.policies import ConstantPolicy

SHORT = Setting.default().replace(horizons=(120, 30, 60), delay=5)


@pytest.fixture
def env():
    made = GraphDiffusionVectorEnv(
        4, nodes=60, graph_seed=3, setting=SHORT, deformation="full", schedule="external"
    )
    yield made
    made.close()


def test_served_is_the_engines_own_and_the_largest_is_taken(env):
    policy = GreedyPolicy()
    policy.watch(env)
    env.reset(seed=1)
    env.begin(PHASES[EXPOSURE])
    rng = np.random.default_rng(0)
    engine, chosen = env.engine, set()
    for _ in range(100):
        told = policy.served()
        for e in range(4):
            z = engine.stimulus[e] - 1
            for a in range(3):
                total = 0.0
                for v, b in zip(engine.graph.support[z], engine.rates[z, a], strict=True):
                    r = engine.regions[v]
                    exponent = (
                        engine.params.w_G * engine.G[e, r] + engine.params.w_H * engine.H[e, r]
                    )
                    psi = max(np.exp(-exponent), engine.params.psi_min)
                    total += b * psi / (b * psi + 1 - b)
                assert told[e, a] == pytest.approx(total, rel=1e-5)
        actions, law = policy.act(np.zeros((4, 1)), np.zeros(4))
        assert actions.tolist() == told.argmax(axis=1).tolist()
        assert law.argmax(axis=1).tolist() == actions.tolist() and (law.sum(axis=1) == 1).all()
        chosen |= set(actions.tolist())
        played = rng.integers(3, size=4)
        info = env.step(played)[4]
        assert info["served"] == pytest.approx(told[np.arange(4), played], rel=1e-4)
    assert engine.H.max() > 0


def test_it_serves_at_least_what_each_constant_does_at_the_same_fields(env):
    policy = GreedyPolicy()
    policy.watch(env)
    env.reset(seed=5)
    env.begin(PHASES[EXPOSURE])
    for _ in range(60):
        actions, _ = policy.act(np.zeros((4, 1)), np.zeros(4))
        told = policy.served()
        assert (told[np.arange(4), actions] >= told.max(axis=1)).all()
        env.step(actions)


def test_rsd_accepts_it(env):
    found = rapo.rsd.evaluate(env, GreedyPolicy(), episodes=3, seed=0)
    same = rapo.rsd.evaluate(env, GreedyPolicy(), episodes=3, seed=0)
    assert found.frame.equals(same.frame)
    fixed = rapo.rsd.evaluate(env, ConstantPolicy(0), episodes=3, seed=0)
    assert len(found.frame) == 3 and found.laws is not None
    assert np.isfinite(found.traces["cost_G"]).all() and fixed.traces["cost_G"].max() > 0


def test_it_needs_a_kernel_to_look_at():
    off = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=3, setting=SHORT, deformation="off")
    with pytest.raises(ValueError, match="deformed everywhere"):
        GreedyPolicy().watch(off)
    with pytest.raises(ValueError, match="watches no environment"):
        GreedyPolicy().served()
