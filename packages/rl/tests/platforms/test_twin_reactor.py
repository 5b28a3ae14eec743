"""The twin's reactor against the textbooks and scipy."""

import numpy as np
import pytest
from twin_reference import balances, feed_of, led, started

from rapo.platforms.twin.reactor import predict, rate_at, steady_states

HOT, COLD = 4, 0


def test_steady_states_are_the_textbooks():
    cold, middle, hot = steady_states(300.0)
    assert middle == pytest.approx([0.5, 350.0], abs=0.01)  # printed in both sources
    assert cold[1] < 330 and hot[1] > 365
    for coolant, activity, exchange in ((300.0, 1, 1), (310.0, 1.05, 0.97), (314.0, 0.96, 1.02)):
        for c, T in steady_states(coolant, activity, exchange):
            rates = balances(c, T, 1.0, 350.0, coolant, activity, exchange)
            assert rates == pytest.approx((0, 0), abs=1e-6)


def test_the_rate_is_arrhenius_to_eight_digits():
    T = np.linspace(250, 600, 351)
    np.testing.assert_allclose(rate_at.py_func(T), 7.2e10 * np.exp(-8750 / T), rtol=1e-8)


def followed(twin, stimulus, action, steps, afresh):
    """The unit with the highest peak under a stimulus: T (steps,) of twin and solver.

    The solver gets the feed and coolant of every step, and goes on from its own state, or afresh
    from the twin's.
    """
    s, states = twin.setting, []
    twin.start(np.array([5], np.uint64), [stimulus])
    for _ in range(steps):
        states.append(twin.state)
        twin.step([action])
    states.append(twin.state)
    w = int(np.max([state["T"][0] for state in states], axis=0).argmax())
    path = np.array([[state["c"][0, w], state["T"][0, w]] for state in states])
    at, solved = path[0], []
    coolants = s.set_points[action] + twin.offsets
    for t in range(steps):
        feed, unit = feed_of(twin.plant, stimulus, t * s.minutes, w), twin.plant.unit[[w]]
        here = path[t].reshape(2, 1, 1)
        to = predict(here[0], here[1], np.reshape(feed, (1, 1, 2)), coolants[None], unit, s.minutes)
        chosen = np.flatnonzero((to[0, 0] == path[t + 1]).all(axis=1))
        assert len(chosen) == 1
        at = led(*(path[t] if afresh else at), s.minutes, *feed, coolants[chosen[0]], *unit[0])
        solved.append(at[1])
    return path[1:, 1], np.array(solved)


def hottest_stimulus(action, steps, **options):
    """The disturbance with the highest peak."""
    twin = started(12, deformation="off", **options)
    peaks = np.zeros(12)
    for _ in range(steps):
        twin.step(np.full(12, action))
        peaks = np.maximum(peaks, twin.state["T"].max(axis=1))
    return int(peaks.argmax()) + 1


@pytest.mark.parametrize("action", [2, HOT])
def test_a_whole_episode_is_that_of_scipy_within_a_kelvin(action):
    stimulus = hottest_stimulus(action, 500)
    mine, solved = followed(started(1, deformation="off"), stimulus, action, 500, afresh=False)
    assert mine.max() > 398
    assert np.abs(mine - solved).max() < 1


def test_the_highest_peak_is_not_missed():
    """Extinguished units kindle within seconds. When they do is chaos, so every step is solved
    afresh: over an episode no two solvers agree."""
    resonant = {"setting": {"swing_c": 0.1, "swing_T": 10.0, "period": (1.3, 1.5)}}
    stimulus = hottest_stimulus(COLD, 300, **resonant)
    twin = started(1, deformation="off", **resonant)
    mine, solved = followed(twin, stimulus, COLD, 300, afresh=True)
    assert mine.max() > 465
    assert np.abs(mine - solved).max() < 1


def test_an_ignition_in_one_step_is_resolved():
    unit = np.array([[1.0, 1.0]])
    for c, T, minutes in ((0.9, 365.0, 0.2), (1.0, 380.0, 0.2), (0.7, 350.0, 2.0)):
        feed, coolant = np.array([[[1.0, 350.0]]]), np.array([[310.0]])
        to = predict(np.array([[c]]), np.array([[T]]), feed, coolant, unit, minutes)
        expected = led(c, T, minutes, 1.0, 350.0, 310.0)
        assert to[0, 0, 0, 1] == pytest.approx(expected[1], abs=0.5)
        assert to[0, 0, 0, 0] == pytest.approx(expected[0], abs=2e-3)


def test_units_side_by_side_are_those_of_one_alone_bit_by_bit():
    """Lanes are passed on from unit to unit, with steps of their own: none may see another's."""
    rng = np.random.default_rng(3)
    E, m, K = 5, 11, 4  # more units than lanes, and no multiple of them
    c, T = rng.uniform(0.02, 1, (E, m)), rng.uniform(330, 420, (E, m))
    feed = np.stack([rng.uniform(0.9, 1.1, (E, m)), rng.uniform(340, 360, (E, m))], axis=2)
    coolant, unit = rng.uniform(295, 320, (E, K)), rng.uniform(0.9, 1.1, (m, 2))
    many = predict(c, T, feed, coolant, unit, 0.2)
    for e in range(E):
        for w in range(m):
            here = np.s_[e : e + 1, w : w + 1]
            alone = predict(
                c[here], T[here], feed[here], coolant[e : e + 1], unit[w : w + 1], 0.2
            )  # fmt: skip
            assert np.array_equal(alone[0, 0], many[e, w])
            of = (*feed[e, w], coolant[e, 0], *unit[w])
            expected = led(c[e, w], T[e, w], 0.2, *of)
            assert alone[0, 0, 0] == pytest.approx(expected, abs=0.5)
