"""Harm as a function of the last active sets and actions."""

import numpy as np
import pytest

from rapo.cascade.engine import Cascade
from rapo.cascade.setting import Setting
from rapo.cascade.stats import HARM
from rapo_core.checks import UserError


def saturating_count(active, actions):
    """The paper's own harm; the sensitive nodes are those of `small_graph`."""
    affected = (active[0] & SENSITIVE).sum(axis=1, dtype=np.float32)
    return np.minimum(np.float32(0.1) * affected, np.float32(1))


def aggressive_share(active, actions):
    """Harm that reads all D+1 steps and the actions."""
    return (actions == 0).mean(axis=0) * active.any(axis=2).mean(axis=0)


SENSITIVE = None


@pytest.fixture(autouse=True)
def _sensitive(small_graph):
    global SENSITIVE
    SENSITIVE = small_graph.sensitive


def run(graph, setting, backend, threads=1, steps=200):
    engine = Cascade(graph, 5, setting=setting, backend=backend, threads=threads)
    engine.start(np.arange(5, dtype=np.uint64), 1 + np.arange(5))
    actions = np.random.default_rng(3).integers(0, 3, (steps, 5))
    return engine, actions, engine.run(actions, steps)


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_the_papers_harm_as_a_function_changes_nothing(small_graph, short, backend):
    usual, _, expected = run(small_graph, short, backend)
    engine, _, trace = run(small_graph, short.replace(harm=saturating_count), backend)
    assert np.array_equal(trace, expected)
    assert np.array_equal(engine.H, usual.H) and engine.H.any()


@pytest.mark.parametrize("options", [("lanes", 1), ("push", 1), ("push", 2)])
def test_a_function_of_sets_and_actions_sees_the_last_steps(small_graph, short, options):
    setting = short.replace(harm=aggressive_share, delay=7)
    engine = Cascade(small_graph, 5, setting=setting, backend=options[0], threads=options[1])
    engine.start(np.arange(5, dtype=np.uint64), 1 + np.arange(5))
    sets, past = [], np.random.default_rng(3).integers(0, 3, (60, 5))
    for t, actions in enumerate(past):
        sets.append(engine.active)
        harm = engine.step(actions)[HARM]
        expected = aggressive_share(np.array(sets[t - 7 :]), past[t - 7 : t + 1]) if t >= 7 else 0
        assert np.allclose(harm, expected, atol=1e-7)
    assert harm.max() > 0


def test_the_history_survives_a_snapshot_and_is_forgotten_at_the_start(small_graph, short):
    setting = short.replace(harm=aggressive_share)
    engine, actions, _ = run(small_graph, setting, "lanes", steps=80)
    state = engine.snapshot()
    expected = engine.run(actions[:60], 60)
    other = Cascade(small_graph, 5, setting=setting, backend="push")
    other.restore(state)
    assert np.array_equal(other.run(actions[:60], 60), expected)
    engine.start(np.arange(5, dtype=np.uint64), 1 + np.arange(5))
    assert np.array_equal(engine.run(actions, 80), run(small_graph, setting, "lanes", steps=80)[2])


def test_plain_values_name_the_function():
    setting = Setting.default().replace(harm=aggressive_share)
    assert setting.to_dict()["harm"].endswith(":aggressive_share")
    named = Setting.default().to_dict() | {"harm": "math:sqrt"}
    assert Setting.from_dict(named).harm(4) == 2
    with pytest.raises(UserError, match="nowhere:at_all"):
        Setting.from_dict(named | {"harm": "nowhere:at_all"})


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda active, actions: np.full(5, 1.5), r"in \[0, 1\], got 1.5"),
        (lambda active, actions: np.full(5, np.nan), r"in \[0, 1\], got nan"),
        (lambda active, actions: 0.5, r"each of 5 episodes, got shape \(\)"),
    ],
)
def test_a_harm_that_is_none_is_refused(small_graph, short, harm, message):
    with pytest.raises(UserError, match=message):
        run(small_graph, short.replace(harm=harm), "lanes")


def test_harm_that_is_no_function_is_refused():
    with pytest.raises(UserError, match="harm must be a function, got 3"):
        Setting.default().replace(harm=3)
