"""Mean-field statements against brute force and against the engine's own trajectories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.cascade.engine import Cascade
from rapo.cascade.setting import AGGRESSIVE, Setting
from rapo.cascade.stats import REACH
from rapo.graphs.generate import generate
from rapo.theory import (
    bistable_conductances,
    consistent_spread,
    exposure_conductance,
    fixed_points,
    needed_trace,
    off_at_replay_at_least,
    scar_work,
    settles_at,
)
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

PAPER = FieldParams()
spreads = st.floats(0.2, 12)
conductances = st.floats(0.01, 1)


def gated(x, R, psi):
    """One step of the set law."""
    odds = psi * np.expm1(R * x)
    return odds / (1 + odds)


@given(spreads, conductances)
@settings(max_examples=150, deadline=None)
def test_a_fixed_point_stays(R, psi):
    points = fixed_points(R, psi)
    assert points[0] == 0 and np.all(np.diff(points) > 0)
    assert np.allclose(gated(points, R, psi), points, rtol=1e-6, atol=1e-9)


@given(spreads, conductances)
@settings(max_examples=150, deadline=None)
def test_no_fixed_point_is_missed(R, psi):
    x = np.linspace(1e-6, 1 - 1e-6, 20001)
    crossings = np.count_nonzero(np.diff(np.sign(gated(x, R, psi) - x)))
    assert crossings <= len(fixed_points(R, psi)) - 1


@pytest.mark.parametrize("R", [0.5, 1.5, 2.5, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("psi", [0.02, 0.1, 0.2, 0.3, 0.39, 0.6, 1.0])
def test_iterating_the_law_settles_where_it_is_said(R, psi):
    if abs(psi * R - 1) < 0.05:
        pytest.skip("next to the edge of ignition the iteration takes for ever")
    many, few = 1 - 1e-9, 1e-9
    for _ in range(4000):
        many, few = gated(many, R, psi), gated(few, R, psi)
    assert many == pytest.approx(settles_at(R, psi, established=True), abs=1e-6)
    assert few == pytest.approx(settles_at(R, psi, established=False), abs=1e-6)


@pytest.mark.parametrize("R", [0.3, 1.0, 2.0])
def test_up_to_two_nothing_is_bistable(R):
    assert bistable_conductances(R) is None
    assert all(len(fixed_points(R, psi)) <= 2 for psi in np.linspace(0, 1, 101))


@pytest.mark.parametrize("R", [2.1, 3.0, 5.0, 8.0])
def test_above_two_there_is_a_range_with_two_stable_states(R):
    low, high = bistable_conductances(R)
    assert high == pytest.approx(1 / R) and low < high
    for inside in (low * 1.001, (low + high) / 2, high * 0.999):
        assert len(fixed_points(R, inside)) == 3
        assert settles_at(R, inside, established=True) > 0
        assert settles_at(R, inside, established=False) == 0
    assert len(fixed_points(R, low * 0.999)) == 1
    assert len(fixed_points(R, min(high * 1.01, 1.0))) == 2


# What ties odds, trace and off@rep


@pytest.mark.parametrize("theta", [0.2, 0.41, 0.7])
def test_a_steady_trace_of_that_height_scars_to_theta(theta):
    steps = 450
    memory = HarmMemory(regions=1, params=FieldParams(w_G=0.0))
    G = needed_trace(theta, memory.params, steps)
    psi = []
    memory.step(harm=G / memory.params.alpha, weights=np.ones(1))
    for _ in range(steps):
        psi.append(memory.conductance()[0])
        # what keeps the trace where it is: (1 - lambda) G + alpha c = G
        memory.step(harm=memory.params.lam * G / memory.params.alpha, weights=np.ones(1))
    assert memory.conductance()[0] == pytest.approx(theta, rel=1e-6)
    late = np.mean(psi[steps // 2 :])
    assert late == pytest.approx(exposure_conductance(theta, memory.params, steps=steps), rel=5e-3)


def test_the_work_of_a_scar_by_hand():
    assert scar_work(np.exp(-1), PAPER) == pytest.approx(1 / (2 * 0.05))
    assert needed_trace(0.41, PAPER, 450) == pytest.approx(0.3 + 0.8916 / 0.1 / 450, abs=1e-5)
    assert scar_work(0.5, FieldParams(eta=0.0)) == float("inf")


@given(
    st.lists(st.floats(0, 2), min_size=5, max_size=60),
    st.floats(0.005, 0.2),
)
@settings(max_examples=60, deadline=None)
def test_no_course_above_tau_scars_as_deep_with_a_lower_mean(course, eta):
    params = FieldParams(eta=eta)
    G = params.tau + np.array(course)
    H = eta * np.maximum(0, G - params.tau).sum()
    theta = np.exp(-params.w_H * H)
    if 1e-6 < theta < 1 - 1e-9:
        assert G.mean() >= needed_trace(theta, params, len(G)) - 1e-9


def test_the_trace_gates_exposure_too():
    with_trace = exposure_conductance(0.41, PAPER)
    without = exposure_conductance(0.41, FieldParams(w_G=0.0))
    assert with_trace == pytest.approx(without * np.exp(-needed_trace(0.41, PAPER, 450)), rel=1e-6)
    assert exposure_conductance(0.01, FieldParams(psi_min=0.3)) >= 0.3


def test_off_at_replay_needs_activity_that_resists():
    assert off_at_replay_at_least(1.5, 0.41, PAPER) == float("inf")
    assert off_at_replay_at_least(0.5, 0.41, PAPER) == 1  # nothing lives, nothing returns
    values = [off_at_replay_at_least(R, 0.41, PAPER) for R in (2.6, 3.0, 4.0, 8.0)]
    assert np.all(np.diff(values) < 0) and 1 < values[-1] < 1.01


def test_the_papers_odds_leave_no_room():
    low, high = consistent_spread(0.41, PAPER)
    assert high == pytest.approx(1 / 0.41) and low > high
    low, high = consistent_spread(0.14, PAPER)
    assert low < high
    middle = (low + high) / 2
    assert settles_at(middle, 0.14, established=False) == 0
    assert off_at_replay_at_least(middle, 0.14, PAPER) < 1.05
    # just below `low` Exposure dies
    assert off_at_replay_at_least(low * 0.999, 0.14, PAPER) == float("inf")
    assert off_at_replay_at_least(low * 1.001, 0.14, PAPER) < float("inf")


@pytest.mark.parametrize("reading", ["echo", "compact", "bistable"])
def test_the_gated_set_lies_inside_the_nominal_one(reading):
    """So off@rep's Replay is on average at least as large as RAPO's Exposure: never .93 of it."""
    setting = Setting.named(reading).replace(horizons=(150, 10, 10))
    graph = generate(120, 1000, setting)
    keys, stimuli = np.arange(16, dtype=np.uint64), 1 + np.arange(16)
    engines = [
        Cascade(graph, 16, setting=setting, deformation=deformation)
        for deformation in ("off", "full")
    ]
    for engine in engines:
        engine.start(keys, stimuli)
    fewer = 0.0
    for _ in range(150):
        free, gated_ = (engine.step(np.full(16, AGGRESSIVE)) for engine in engines)
        assert np.all(free[REACH] >= gated_[REACH])
        assert not np.any(engines[1].active & ~engines[0].active)
        fewer += float((free[REACH] - gated_[REACH]).sum())
    assert fewer > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fixed_points(0, 0.5), "R must be a positive number .* got 0"),
        (lambda: fixed_points(2, 1.5), r"psi must be in \[0, 1\], got 1.5"),
        (lambda: bistable_conductances(float("inf")), "R must be a positive number"),
        (lambda: scar_work(1.0, PAPER), r"theta must be an odds ratio in \(0, 1\), got 1.0"),
        (lambda: needed_trace(0.5, PAPER, 0), "steps must be at least 1, got 0"),
        (lambda: exposure_conductance(0.5, PAPER, since=1.0), "since must be a share"),
    ],
)
def test_bad_input_is_refused_by_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
