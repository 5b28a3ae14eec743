"""The operating point: closed forms against the memory itself, step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo_core.memory import HarmMemory
from rapo_core.operating_point import (
    attributed_harm,
    course,
    operating_point,
    scarring_share,
    steady_trace,
    steps_until_bite,
)
from rapo_core.params import FieldParams

quick = settings(deadline=None, max_examples=60)


@st.composite
def constants(draw):
    lam = draw(st.sampled_from([0.05, 0.1, 0.5, 1.0]))
    delta = draw(st.sampled_from([1.0, 0.999, 0.95, 1 - lam if lam < 1 else 0.9]))
    return FieldParams(
        lam=lam, delta=delta, tau=draw(st.floats(0, 0.6)), eta=draw(st.floats(0.01, 0.5)),
        w_H=draw(st.floats(0.5, 4)), psi_min=0.01,
    )  # fmt: skip


def fields_under(harm, params, steps):
    """G and H of one region after each of 0..steps steps of constant harm, by the memory."""
    memory = HarmMemory(regions=1, params=params)
    found = [(0.0, 0.0)]
    for _ in range(steps):
        memory.step(harm=harm, weights=np.ones(1))
        found.append((float(memory.G[0]), float(memory.H[0])))
    return np.array(found)


@quick
@given(hnp.arrays(np.int64, (5, 3), elements=st.integers(0, 12)))
def test_attributed_harm_is_the_papers_rule(counts):
    found = attributed_harm(counts)
    for row, told in zip(counts, found, strict=True):
        k = row.sum()
        expected = [min(0.1 * k, 1) * a / k if k else 0.0 for a in row]
        np.testing.assert_allclose(told, expected, atol=1e-12)


@quick
@given(hnp.arrays(float, (40, 2), elements=st.floats(0, 0.5)), constants())
def test_the_trace_of_any_record_averages_to_the_steady_trace_but_for_its_ends(record, params):
    memory = HarmMemory(regions=2, params=params)
    traces = []
    for harm in record:
        traces.append(memory.G.copy())
        total = harm.sum()
        weights = harm / total if total > 0 else np.zeros(2)
        memory.step(harm=float(total), weights=weights)
    # lambda sum_t G_t = alpha sum_t c_t w_t - G_T, exactly
    expected = steady_trace(record.mean(axis=0), params) - memory.G / (params.lam * len(record))
    np.testing.assert_allclose(np.mean(traces, axis=0), expected, atol=1e-9)


@quick
@given(constants(), st.floats(0, 1))
def test_the_course_is_what_the_memory_does(params, harm):
    simulated = fields_under(harm, params, 80)
    G, H = course(steady_trace(harm, params), params, np.arange(81))
    np.testing.assert_allclose(G, simulated[:, 0], atol=1e-9)
    np.testing.assert_allclose(H, simulated[:, 1], atol=1e-9)


@quick
@given(constants(), st.floats(0.02, 1), st.sampled_from([0.3, 0.5, 0.8]))
def test_a_scar_bites_at_the_step_the_memory_says(params, harm, odds):
    steps = steps_until_bite(steady_trace(harm, params), params, odds)[0]
    alone = np.exp(-params.w_H * fields_under(harm, params, 300)[:, 1])
    there = np.flatnonzero(alone <= odds * (1 + 1e-12))
    if len(there):
        assert abs(steps - there[0]) <= (abs(alone[there[0]] - odds) < 1e-9)
    else:
        assert steps > 300


@pytest.mark.parametrize("over", [0.9, 1.0, 1.1])
def test_only_a_steady_trace_above_tau_scars(over):
    params = FieldParams()
    harm = over * params.tau * params.lam / params.alpha
    scar = fields_under(harm, params, 2000)[-1, 1]
    assert (scar > 1e-6) == (over > 1)
    assert np.isfinite(steps_until_bite(steady_trace(harm, params), params)[0]) == (over > 1)


def test_no_scar_reaches_odds_below_psi_min_and_none_bites_without_weight():
    assert steps_until_bite([1.0], FieldParams(psi_min=0.5), 0.3)[0] == np.inf
    assert steps_until_bite([1.0], FieldParams(w_H=0.0))[0] == np.inf


def test_the_share_counts_harm_in_regions_above_tau():
    params = FieldParams(tau=0.3)
    assert scarring_share([[0.6, 0.2], [0.1, 0.1]], params) == pytest.approx(0.6)
    assert np.isnan(scarring_share([0.0, 0.0], params))


def test_an_operating_point_tells_regions_share_and_whether_it_is_idle():
    params = FieldParams()  # steady = 5 x harm
    point = operating_point([[0.1, 0.02, 0.0], [0.0, 0.02, 0.02]], params)
    assert (point.regions, point.scarring) == (3, 1)
    assert point.highest == pytest.approx(0.5)
    assert point.share == pytest.approx(0.5 / 0.8)
    assert not point.idle
    assert operating_point([[0.1, 0.0], [0.1, 0.0]], params).scarring == 1  # not one an episode
    assert operating_point([[0.05, 0.05]], params).idle
    assert operating_point([[0.0, 0.0]], params).idle
    assert point.bite == steps_until_bite([0.5], params)[0]
    assert operating_point([[0.05, 0.05]], params).to_dict()["steps_until_bite"] is None


@pytest.mark.parametrize("wrong", [[-0.1], [np.nan], [np.inf]])
def test_what_is_no_harm_is_named(wrong):
    with pytest.raises(ValueError, match="harm must be finite and >= 0"):
        steady_trace(wrong, FieldParams())


def test_odds_outside_0_and_1_are_named():
    with pytest.raises(ValueError, match=r"odds must be in \(0, 1\)"):
        steps_until_bite([1.0], FieldParams(), odds=1.0)
