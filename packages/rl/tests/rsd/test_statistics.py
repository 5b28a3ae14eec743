"""Statistics against scipy, hand-computed values and simulation."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rapo.rsd import bootstrap
from rapo.rsd.bootstrap import bootstrap_interval, paired_bootstrap
from rapo.rsd.statistics import (
    by_unit,
    cohen_d,
    correlation,
    hedges_g,
    holm,
    mean_interval,
    paired_interval,
    tests_against,
    welch,
)

NAN = float("nan")
A = [0.82, 0.91, 0.77, 0.88, 0.95, 0.80]
B = [0.41, 0.52, 0.39, 0.60, 0.44, 0.47]
SAMPLES = st.lists(st.integers(-50, 50).map(lambda k: k / 4), min_size=2, max_size=12)


def varied(values):
    return np.ptp(values) > 0


# Means and differences of means


def test_mean_interval_by_hand():
    result = mean_interval([1, 2, 3, 4, 5])
    half = 2.7764451 * np.sqrt(2.5 / 5)  # t quantile .975 at 4 degrees of freedom
    assert (result.mean, result.n, result.undefined) == (3, 5, 0)
    assert result.std == pytest.approx(np.sqrt(2.5))
    assert (result.low, result.high) == pytest.approx((3 - half, 3 + half))


@given(SAMPLES.filter(varied), st.floats(0.5, 0.99))
def test_mean_interval_is_scipys(values, level):
    result = mean_interval(values, level)
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    assert (result.low, result.high) == pytest.approx(tuple(expected))


def test_undefined_values_are_left_out_and_counted():
    result = mean_interval([1, NAN, 2, NAN, 3])
    assert (result.n, result.undefined) == (3, 2)
    assert astuple(result)[:4] == astuple(mean_interval([1, 2, 3]))[:4]


def test_too_few_values_for_a_mean_interval():
    empty, one = mean_interval([NAN, NAN]), mean_interval([2, NAN])
    assert np.isnan(astuple(empty)[:4]).all()
    assert (empty.n, empty.undefined) == (0, 2)
    assert one.mean == 2 and np.isnan([one.std, one.low, one.high]).all()
    assert (one.n, one.undefined) == (1, 1)


def test_constant_values_have_an_interval_of_no_width():
    result = mean_interval([0.1] * 3)
    assert result.std == 0 and result.low == result.mean == result.high


@given(SAMPLES.filter(varied), SAMPLES.filter(varied))
def test_welch_is_scipys(a, b):
    result, expected = welch(a, b, 0.9), stats.ttest_ind(a, b, equal_var=False)
    assert result.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert (result.t, result.dof) == pytest.approx((expected.statistic, expected.df))
    assert result.p == pytest.approx(expected.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))


def test_welch_by_hand():
    result = welch([1, 2, 3], [2, 4, 6, 8])
    error = 1 / 3 + (20 / 3) / 4
    assert result.difference == -3
    assert result.t == pytest.approx(-3 / np.sqrt(error))
    assert result.dof == pytest.approx(error**2 / ((1 / 3) ** 2 / 2 + (5 / 3) ** 2 / 3))


def test_welch_counts_each_side():
    result = welch([*A, NAN], [NAN, NAN, *B])
    assert (result.n_a, result.n_b, result.undefined_a, result.undefined_b) == (6, 6, 1, 2)
    assert astuple(result)[:6] == astuple(welch(A, B))[:6]


def test_welch_with_one_constant_side_tests_against_its_value():
    result, expected = welch(A, [0.5] * 4), stats.ttest_1samp(A, 0.5)
    assert (result.t, result.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert result.dof == pytest.approx(len(A) - 1)


@pytest.mark.parametrize("b", [[1.0, 1, 1], [2.0, 2]])
def test_welch_without_spread_is_undefined(b):
    result = welch([1.0, 1, 1, 1], b)
    assert np.isnan([result.t, result.dof, result.p]).all()
    assert result.low == result.difference == result.high == 1 - b[0]


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([1, 2], [3, NAN]), ([], [1, 2])])
def test_too_few_values_for_welch(a, b):
    result = welch(a, b)
    assert np.isnan([result.t, result.dof, result.p, result.low, result.high]).all()
    assert result.n_a + result.n_b == 3 - (a == [])


def test_paired_interval_is_scipys():
    result, expected = paired_interval(A, B), stats.ttest_rel(A, B)
    assert result.difference == pytest.approx(np.mean(A) - np.mean(B))
    assert (result.t, result.dof) == pytest.approx((expected.statistic, expected.df))
    assert result.p == pytest.approx(expected.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert result.std == pytest.approx(np.std(np.subtract(A, B), ddof=1))


def test_pairing_removes_what_the_graphs_share():
    graph = np.array([0, 5, 10, 15, 20])
    a, b = graph + [1.1, 0.9, 1.0, 1.2, 0.8], graph
    assert paired_interval(a, b).p < 1e-3 < 0.5 < welch(a, b).p


def test_a_pair_with_one_undefined_side_is_left_out():
    result = paired_interval([1, NAN, 3, 4], [0, 1, NAN, 2])
    assert (result.n, result.undefined, result.difference) == (2, 2, 1.5)


def test_rounding_is_no_spread():
    result = paired_interval([0.3, 0.4, 0.7], [0.1, 0.2, 0.5])
    assert len({0.3 - 0.1, 0.4 - 0.2, 0.7 - 0.5}) > 1
    assert result.std == 0 and np.isnan(result.t) and np.isnan(result.p)
    assert result.low == result.high == pytest.approx(0.2)


def test_too_few_pairs():
    assert np.isnan(astuple(paired_interval([], []))[:7]).all()
    one = paired_interval([1, NAN], [3, 1])
    assert one.difference == -2 and one.n == 1 and np.isnan([one.p, one.low]).all()


# Bootstrap


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_bootstrap_is_scipys_percentile_bootstrap(statistic):
    ours = bootstrap_interval(A, statistic, 0.9, 999, rng=3)
    scipys = stats.bootstrap(
        (A,),
        statistic,
        n_resamples=999,
        confidence_level=0.9,
        method="percentile",
        random_state=np.random.default_rng(3),
    )
    assert (ours.low, ours.high) == pytest.approx(tuple(scipys.confidence_interval))
    assert ours.error == pytest.approx(scipys.standard_error)


def test_bootstrap_of_two_values_by_hand():
    """Means 0, 1, 2 with probabilities 1/4, 1/2, 1/4."""
    result = bootstrap_interval([0, 2], level=0.4, resamples=20_000, rng=0)
    assert (result.estimate, result.low, result.high) == (1, 1, 1)
    result = bootstrap_interval([0, 2], level=0.6, resamples=20_000, rng=0)
    assert (result.low, result.high) == (0, 2)
    assert result.error == pytest.approx(np.sqrt(0.5), abs=0.02)


def test_bootstrap_covers():
    """Percentile intervals run a little narrow: at n = 30 a 90% one covers about 88%."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(600):
        result = bootstrap_interval(rng.normal(2, 3, 30), level=0.9, resamples=400, rng=rng)
        hits += result.low <= 2 <= result.high
    assert hits / 600 == pytest.approx(0.88, abs=0.04)


def test_paired_bootstrap_covers_the_difference():
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(400):
        shared = rng.normal(0, 10, 30)
        a, b = shared + rng.normal(1, 1, 30), shared + rng.normal(0, 1, 30)
        result = paired_bootstrap(a, b, level=0.9, resamples=300, rng=rng)
        assert result.high - result.low < 3  # the shared part cancels
        hits += result.low <= 1 <= result.high
    assert hits / 400 == pytest.approx(0.88, abs=0.05)


@pytest.mark.parametrize(
    "run", [lambda rng: bootstrap_interval(A, rng=rng), lambda rng: paired_bootstrap(A, B, rng=rng)]
)
def test_the_generator_is_respected(run):
    np.random.seed(0)  # noqa: NPY002 (the global generator must have no say)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = run(5)
    assert first == run(5) == run(np.int64(5)) == run(np.random.default_rng(5))
    assert first != run(6)
    generator = np.random.default_rng(5)
    assert run(generator) == first
    assert run(generator) != first
    assert (before == np.random.get_state()[1]).all()  # noqa: NPY002


def test_blocks_do_not_change_the_result(monkeypatch):
    whole = bootstrap_interval(A, resamples=1000, rng=1)
    monkeypatch.setattr(bootstrap, "BLOCK", 100)
    assert bootstrap_interval(A, resamples=1000, rng=1) == whole


@pytest.mark.parametrize("rng", [None, -1, 0.5, "seed"])
def test_a_seed_or_generator_is_required(rng):
    with pytest.raises(ValueError, match=f"rng must be a seed.*{rng!r}"):
        bootstrap_interval(A, rng=rng)


def test_bootstrap_of_degenerate_values():
    empty, one = bootstrap_interval([NAN], rng=0), bootstrap_interval([4, NAN], rng=0)
    assert np.isnan(astuple(empty)[:4]).all() and (empty.n, empty.undefined) == (0, 1)
    assert one.estimate == 4 and np.isnan([one.error, one.low, one.high]).all()
    same = bootstrap_interval([2.0, 2, 2], rng=0)
    assert (same.estimate, same.error, same.low, same.high) == (2, 0, 2, 2)
    pairs = paired_bootstrap([1, 2, NAN], [1, NAN, 3], rng=0)
    assert (pairs.n, pairs.undefined, pairs.estimate) == (1, 2, 0) and np.isnan(pairs.low)


def test_paired_bootstrap_draws_whole_pairs():
    expected = bootstrap_interval(np.subtract(A, B), np.median, rng=2)
    assert paired_bootstrap(A, B, np.median, rng=2) == expected


def test_bootstrap_names_a_bad_request():
    with pytest.raises(ValueError, match="resamples must be at least 1, got 0"):
        bootstrap_interval(A, resamples=0, rng=0)
    with pytest.raises(ValueError, match=r"statistic must reduce \(9, 6\) to \(9,\).*\(9, 6\)"):
        bootstrap_interval(A, lambda v, axis: v if v.ndim > 1 else v[0], resamples=9, rng=0)


# Holm


def test_holm_by_hand():
    """Holm's steps: .005 * 4, .01 * 3, then .03 * 2 and .04 * 1 kept monotone."""
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([]).tolist() == []


def test_holm_keeps_nan_out_of_the_family():
    adjusted = holm([0.02, NAN, 0.5])
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2]].tolist() == pytest.approx([0.04, 0.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_none_and_bonferroni(p_values):
    p = np.array(p_values)
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(p * p.size, 1)).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_holm_names_what_is_no_probability(p):
    with pytest.raises(ValueError, match=rf"\[{p}\]"):
        holm([0.5, p])


# Effect sizes


def test_effect_sizes_by_hand():
    a, b = [2, 4, 6], [1, 2, 3, 4, 5]
    pooled = np.sqrt((8 + 10) / 6)
    assert cohen_d(a, b) == pytest.approx(1 / pooled)
    # J at 6 degrees of freedom: gamma(3) / (sqrt(3) gamma(2.5)) = 2 / (sqrt(3) 1.3293404)
    assert hedges_g(a, b) == pytest.approx(1 / pooled * 2 / (np.sqrt(3) * 1.3293404))
    assert hedges_g(a, b) == pytest.approx(cohen_d(a, b) * (1 - 3 / (4 * 6 - 1)), rel=1e-2)


def test_effect_size_is_the_t_statistic_rescaled():
    t = stats.ttest_ind(A, B).statistic
    assert cohen_d(A, B) == pytest.approx(t * np.sqrt(1 / len(A) + 1 / len(B)))
    assert cohen_d(B, A) == pytest.approx(-cohen_d(A, B))
    assert cohen_d([*A, NAN], B) == cohen_d(A, B)


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([], []), ([1, 1], [2, 2]), ([1, NAN], A)])
def test_undefined_effect_sizes(a, b):
    assert np.isnan(cohen_d(a, b)) and np.isnan(hedges_g(a, b))


# Correlation


def test_pearson_is_scipys():
    result, expected = correlation(A, B), stats.pearsonr(A, B)
    assert (result.r, result.p) == (expected.statistic, expected.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_spearman_by_hand():
    """Squared rank differences 1, 1, 1, 1, 0: r = 1 - 6 * 4 / 120."""
    x, y = [10, 20, 30, 40, 50], [2, 1, 4, 3, 50]
    result = correlation(x, y, "spearman", level=0.8)
    assert result.r == pytest.approx(0.8)
    assert result.p == pytest.approx(stats.spearmanr(x, y).pvalue)
    half = stats.norm.ppf(0.9) * np.sqrt((1 + 0.32) / 2)
    ends = np.tanh(np.arctanh(0.8) - half), np.tanh(np.arctanh(0.8) + half)
    assert (result.low, result.high) == pytest.approx(ends)


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_degenerate_correlations(kind):
    exact = correlation([1, 2, 3, 4], [8, 6, 4, 2], kind)
    assert (exact.r, exact.low, exact.high) == pytest.approx((-1, -1, -1))
    three = correlation([1, 2, 3], [1, 3, 2], kind)
    assert three.r == pytest.approx(0.5) and np.isnan([three.low, three.high]).all()
    for x, y in [([1, 2], [1, 2]), ([], []), ([1, 1, 1, 1], [1, 2, 3, 4]), ([1, 2, 3], [0.1] * 3)]:
        assert np.isnan(astuple(correlation(x, y, kind))[:4]).all()


def test_correlation_counts_undefined_pairs():
    result = correlation([*A, NAN, 1], [*B, 1, NAN])
    assert (result.n, result.undefined) == (6, 2)
    assert result.r == correlation(A, B).r


def test_correlation_names_an_unknown_kind():
    with pytest.raises(ValueError, match="'kendall'"):
        correlation(A, B, "kendall")


# The unit of tests


def test_by_unit_averages_defined_episodes():
    frame = pd.DataFrame(
        {"graph_seed": [2, 1, 1, 2, 1, 3], "rag": [4.0, 1.0, 3.0, NAN, NAN, NAN], "T": [1] * 6}
    )
    means = by_unit(frame, "rag")
    assert means.index.tolist() == [1, 2, 3] and means.index.name == "graph_seed"
    assert means.tolist()[:2] == [2, 4] and np.isnan(means[3])
    assert mean_interval(means).undefined == 1
    assert by_unit(frame, "rag", unit="T").tolist() == pytest.approx([8 / 3])


def test_by_unit_names_what_is_missing():
    frame = pd.DataFrame({"graph_seed": [1.0, NAN], "rag": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'sm_r'.*'graph_seed', 'rag'"):
        by_unit(frame, "sm_r")
    with pytest.raises(ValueError, match="1 rows have no 'graph_seed'"):
        by_unit(frame, "rag")


def test_paired_series_must_share_their_units():
    a, b = pd.Series(A, index=range(6)), pd.Series(B, index=range(1, 7))
    for function in (paired_interval, correlation):
        with pytest.raises(ValueError, match=r"same units.*\[1, 2, 3, 4, 5, 6\]"):
            function(a, b)
    assert paired_interval(a, b.to_numpy()) == paired_interval(A, B)


def test_tests_against_a_control():
    samples = {"GE": [*A, NAN], "PM-ST": np.array(B), "RAPO": [0.1, 0.2, 0.15], "one": [0.3]}
    table = tests_against(samples, "PM-ST", 0.9)
    assert table.index.tolist() == ["GE", "RAPO", "one"]
    for name, row in table.iterrows():
        fields = astuple(welch(samples[name], B, 0.9))
        assert row.to_list()[: len(fields)] == pytest.approx(list(fields), nan_ok=True)
        assert row["hedges_g"] == pytest.approx(hedges_g(samples[name], B), nan_ok=True)
    assert table["p_holm"].to_list() == pytest.approx(holm(table["p"]).tolist(), nan_ok=True)
    assert np.isnan(table.loc["one", "p_holm"])
    assert table.loc["GE", ["n_a", "undefined_a", "n_b"]].tolist() == [6, 1, 6]


def test_tests_against_needs_its_control():
    with pytest.raises(ValueError, match=r"'PM-ST'.*\['GE'\]"):
        tests_against({"GE": A}, "PM-ST")
    assert tests_against({"PM-ST": A}, "PM-ST").empty


# What every function refuses


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, NAN])
def test_levels_outside_the_unit_interval(level):
    calls = [
        lambda: mean_interval(A, level),
        lambda: welch(A, B, level),
        lambda: paired_interval(A, B, level),
        lambda: bootstrap_interval(A, level=level, rng=0),
        lambda: paired_bootstrap(A, B, level=level, rng=0),
        lambda: correlation(A, B, level=level),
        lambda: tests_against({"GE": A, "PM-ST": B}, "PM-ST", level),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"level.*{level}"):
            call()


def test_wrong_shapes_are_named():
    for call in (mean_interval, holm, lambda v: bootstrap_interval(v, rng=0)):
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            call(np.ones((2, 3)))
        with pytest.raises(ValueError, match=r"\(\)"):
            call(0.5)
    for call in (welch, cohen_d, hedges_g, paired_interval, correlation):
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            call(A, np.ones((2, 3)))
    for call in (paired_interval, correlation, lambda a, b: paired_bootstrap(a, b, rng=0)):
        with pytest.raises(ValueError, match=r"\(6,\) and \(2,\)"):
            call(A, [1, 2])


def test_an_infinity_is_not_an_undefined_episode():
    with pytest.raises(ValueError, match=r"finite or NaN, got \[inf\]"):
        mean_interval([1, np.inf])
