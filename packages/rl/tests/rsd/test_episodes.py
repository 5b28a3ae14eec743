"""The phases of a run: a constant action is not asked at every step, and nothing else differs."""

import numpy as np
import pytest

from rapo.cascade.engine import Cascade
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.policies import ConstantPolicy
from rapo.rsd import evaluate

HORIZONS = (90, 40, 80)
OPTIONS = {"horizons": HORIZONS, "against_P0": True, "selectivity": True}


class Asked(ConstantPolicy):
    """The same action, which RSD has to ask for at every step."""

    constant_action = None


@pytest.mark.parametrize("kwargs", [{}, {"observe": "xGH"}, {"deformation": "topk:6"}])
@pytest.mark.parametrize("episodes", [3, 40])
def test_a_constant_action_gives_the_numbers_of_one_that_is_asked(small_graph, kwargs, episodes):
    env = GraphDiffusionVectorEnv(1, graph=small_graph, fit=False, **kwargs)
    quick = evaluate(env, ConstantPolicy(1), episodes, 5, **OPTIONS)
    slow = evaluate(env, Asked(1), episodes, 5, **OPTIONS)
    assert quick.frame.equals(slow.frame)
    for name, trace in slow.traces.items():
        np.testing.assert_array_equal(quick.traces[name], trace)
    for name in ("laws", "cascade", "activity", "scars"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))


def test_a_constant_action_runs_whole_phases_on_one_engine(small_graph, monkeypatch):
    env = GraphDiffusionVectorEnv(1, graph=small_graph, fit=False)
    built, asked = [], []
    build = Cascade.__init__

    def counted(self, *args, **kwargs):
        built.append(self)
        build(self, *args, **kwargs)

    monkeypatch.setattr(Cascade, "__init__", counted)
    monkeypatch.setattr(Cascade, "step", lambda *args: pytest.fail("a step was taken by itself"))
    monkeypatch.setattr(
        ConstantPolicy, "__call__", lambda self, x: asked.append(x) or np.zeros(len(x), int)
    )
    done = []
    evaluate(env, ConstantPolicy(0), 5, horizons=HORIZONS, progress=lambda n, of: done.append(n))
    assert len(built) == 1 and not asked
    assert done == list(range(1, sum(HORIZONS) + 1))


def test_a_subclass_that_changes_the_step_is_stepped(small_graph):
    class Doubled(GraphDiffusionVectorEnv):
        def step(self, actions):
            x, reward, over, cut, info = super().step(actions)
            return x, 2 * reward, over, cut, info

    plain, doubled = (
        evaluate(kind(1, graph=small_graph, fit=False), ConstantPolicy(0), 2, horizons=HORIZONS)
        for kind in (GraphDiffusionVectorEnv, Doubled)
    )
    np.testing.assert_array_equal(doubled.traces["reward"], 2 * plain.traces["reward"])


def test_activity_is_the_share_of_steps_that_a_node_is_active(small_graph):
    env = GraphDiffusionVectorEnv(4, graph=small_graph, fit=False, schedule="external")
    env.reset(seed=5)
    sets = []
    for _ in range(HORIZONS[0]):
        env.step(np.ones(4, int))
        sets.append(env.engine.active)
    result = evaluate(env, ConstantPolicy(1), 4, 5, horizons=HORIZONS)
    np.testing.assert_allclose(result.activity[0], np.mean(sets, axis=(0, 1)), rtol=1e-6)
    np.testing.assert_array_equal(result.cascade[: HORIZONS[0]], np.array(sets)[:, 0])
