"""Injection rates: totals, tilts, and rates that do not fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.cascade.graph import Graph
from rapo.cascade.injection import exposure_scores, injection_rates
from rapo.cascade.setting import AGGRESSIVE, CONSERVATIVE, MODERATE, Setting
from rapo.graphs.generate import generate

DEFAULT = Setting.default()
LARGE = generate(100, 3, scale=0.6)


def star():
    """0 -> 1, 2, 3 and 3 -> 0; node 3 is sensitive, so is 0: influence and risk by hand."""
    return Graph(
        indptr=[0, 3, 3, 3, 4],
        indices=[1, 2, 3, 0],
        prob=[0.5, 0.5, 0.5, 1.0],
        positions=[[0.5, 0.5], [0, 0], [1, 0], [0, 1]],
        sensitive=[True, False, False, True],
        support=[[0, 1, 3], [1, 2, 3]],
        weights=[[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]],
    )


def test_a_star_by_hand():
    # P 1 = (1.5, 0, 0, 1), P^2 1 = (0.5, 0, 0, 1.5), P^3 1 = (0.75, 0, 0, 0.5)
    influence = np.array([2.75, 0, 0, 3.0]) / 3.0
    # with s = 1_sens = (1, 0, 0, 1): P s = (0.5, 0, 0, 1), P^2 s = (0.5, 0, 0, 0.5),
    # P^3 s = (0.25, 0, 0, 0.5)
    risk = np.array([2.25, 0, 0, 3.0]) / 3.0
    setting = DEFAULT.replace(rates=(0.8, 0.4, 0.2), influence_tilt=1.5, risk_tilt=2.5)
    b = injection_rates(star(), setting)
    for z, (support, weights) in enumerate(zip(star().support, star().weights, strict=True)):
        tilts = [np.exp(1.5 * influence[support]), np.ones(3), np.exp(-2.5 * risk[support])]
        for action, (rate, tilt) in enumerate(zip((0.8, 0.4, 0.2), tilts, strict=True)):
            expected = rate * weights * tilt / (weights * tilt).sum()
            np.testing.assert_allclose(b[z, action], expected, rtol=1e-6)


def test_shape_and_precision():
    b = injection_rates(LARGE, DEFAULT)
    assert b.shape == (LARGE.stimuli, 3, LARGE.support.shape[1])
    assert b.dtype == np.float32
    assert np.all((b >= 0) & (b <= 1))


@settings(deadline=None, max_examples=30)
@given(
    st.tuples(*[st.floats(0.01, 1)] * 3),
    st.floats(0, 10),
    st.floats(0, 10),
)
def test_the_expected_number_of_seeds_is_the_actions_rate(rates, influence_tilt, risk_tilt):
    setting = DEFAULT.replace(rates=rates, influence_tilt=influence_tilt, risk_tilt=risk_tilt)
    b = injection_rates(LARGE, setting)
    np.testing.assert_allclose(b.sum(axis=-1), np.tile(rates, (LARGE.stimuli, 1)), rtol=1e-5)


def test_the_moderate_action_takes_the_stimulus_as_it_is():
    b = injection_rates(LARGE, DEFAULT)
    np.testing.assert_allclose(b[:, MODERATE], DEFAULT.rates[MODERATE] * LARGE.weights, rtol=1e-6)


def test_without_tilts_the_actions_differ_in_rate_alone():
    b = injection_rates(LARGE, DEFAULT.replace(influence_tilt=0, risk_tilt=0))
    for action, rate in enumerate(DEFAULT.rates):
        np.testing.assert_allclose(b[:, action], rate * LARGE.weights, rtol=1e-6)


def test_aggressive_seeds_are_influential_and_conservative_ones_low_in_risk():
    influence, risk = exposure_scores(LARGE.adjacency, LARGE.sensitive)
    b = injection_rates(LARGE, DEFAULT)
    law = b / b.sum(axis=-1, keepdims=True)

    def mean(score, action):
        return (law[:, action] * score[LARGE.support]).sum(axis=-1)

    assert np.all(mean(influence, AGGRESSIVE) > mean(influence, MODERATE))
    assert np.all(mean(risk, CONSERVATIVE) < mean(risk, MODERATE))


def test_the_tilt_is_exponential_in_the_score():
    influence, risk = exposure_scores(LARGE.adjacency, LARGE.sensitive)
    b = injection_rates(LARGE, DEFAULT.replace(influence_tilt=3.0, risk_tilt=2.0)).astype(float)
    seeds = LARGE.support
    for z in range(LARGE.stimuli):
        for action, slope, score in ((AGGRESSIVE, 3.0, influence), (CONSERVATIVE, -2.0, risk)):
            lean = np.log(b[z, action] / LARGE.weights[z])
            np.testing.assert_allclose(
                lean - lean[0], slope * (score[seeds[z]] - score[seeds[z, 0]]), atol=1e-4
            )


def test_a_node_cannot_be_injected_more_than_surely():
    with pytest.raises(ValueError, match=r"rates \(9.0, 0.1, 0.1\) inject .* probability .* > 1"):
        injection_rates(star(), DEFAULT.replace(rates=(9.0, 0.1, 0.1)))
    with pytest.raises(
        ValueError, match=r"2 > 1 \(stimulus \d, action 1\); lower the rates or widen the support"
    ):
        injection_rates(star(), DEFAULT.replace(rates=(0.1, 4.0, 0.1)))


def test_a_certain_injection_is_allowed():
    b = injection_rates(star(), DEFAULT.replace(rates=(0.1, 2.0, 0.1)))
    assert b[:, MODERATE].max() == 1.0


@pytest.mark.parametrize("tilt", ["influence_tilt", "risk_tilt"])
@pytest.mark.parametrize("value", [1e3, 1e5])
def test_a_steep_tilt_picks_the_extreme_seed_instead_of_nan(tilt, value):
    small = DEFAULT.replace(rates=(0.5, 0.5, 0.5), **{tilt: value})
    b = injection_rates(LARGE, small)
    assert np.all(np.isfinite(b))
    np.testing.assert_allclose(b.sum(axis=-1), 0.5, rtol=1e-5)
