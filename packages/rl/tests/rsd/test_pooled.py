"""Ratios of means: exact where the truth is exact, and covering it where tails are heavy."""

import gymnasium
import numpy as np
import pytest
from repository import DATA
from scipy import stats

import rapo
from rapo.rsd import evaluate
from rapo.rsd.bootstrap import bootstrap_interval, ratio_bootstrap
from rapo.rsd.metrics import EPSILON, ratio_of
from rapo.rsd.pooled import totals


def always(x):
    return 0


def heavy_pairs(blocks, n=20, seed=0):
    """(blocks, n) of two sides with the same lognormal law, sharing what an episode shares."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(blocks, n))
    return (np.exp(shared + rng.normal(size=(blocks, n))) for _ in range(2))


def coverage(pairs, interval):
    found = [interval(x, y) for x, y in zip(*pairs, strict=True)]
    return np.mean([low <= 1 <= high for low, high in found])


def test_the_ratio_is_sum_over_sum():
    found = ratio_bootstrap([1.0, 0.0, 30.0], [2.0, 8.0, 10.0], rng=0)
    assert found.estimate == pytest.approx(31 / 20, abs=1e-9)
    assert found.low < found.estimate < found.high and (found.n, found.undefined) == (3, 0)


def test_equal_sides_are_exactly_one_without_width():
    values = np.random.default_rng(0).lognormal(size=20).astype(np.float32)
    found = ratio_bootstrap(values, values, rng=3)
    assert (found.estimate, found.low, found.high, found.error) == (1.0, 1.0, 1.0, 0.0)


def test_pairs_stay_together():
    """Sides in proportion leave nothing to chance, however much both vary."""
    before = np.random.default_rng(0).lognormal(sigma=2, size=20)
    found = ratio_bootstrap(0.3 * before, before, rng=0)
    assert found.low == pytest.approx(0.3) and found.high == pytest.approx(0.3)
    noise = np.random.default_rng(1).normal(size=20)
    assert ratio_bootstrap(0.3 * before * (1 + 0.01 * noise), before, rng=0).error < 0.01
    shuffled = ratio_bootstrap(0.3 * before[::-1], before, rng=0)
    assert shuffled.high / shuffled.low > 1.5


def test_turned_around_the_interval_turns_around():
    x, y = (side[0] for side in heavy_pairs(1))
    one, two = ratio_bootstrap(x, y, rng=0), ratio_bootstrap(y, x, rng=0)
    assert one.low * two.high == pytest.approx(1, abs=1e-6)
    assert one.high * two.low == pytest.approx(1, abs=1e-6)


def test_it_is_seeded_and_does_not_depend_on_units():
    x, y = (side[0] for side in heavy_pairs(1))
    found = ratio_bootstrap(x, y, rng=0)
    assert found == ratio_bootstrap(x, y, rng=0) != ratio_bootstrap(x, y, rng=1)
    scaled = ratio_bootstrap(1e6 * x, 1e6 * y, rng=0)
    assert scaled.low == pytest.approx(found.low, rel=1e-6)


def test_what_is_undefined_is_left_out_and_counted():
    found = ratio_bootstrap([1.0, np.nan, 3.0, 2.0], [2.0, 4.0, np.nan, 3.0], rng=0)
    assert (found.n, found.undefined) == (2, 2) and found.estimate == pytest.approx(0.6)
    for x, y in (([], []), ([1.0], [0.0]), ([1.0, 2.0], [0.0, 0.0])):
        nothing = ratio_bootstrap(x, y, rng=0)
        assert np.isnan([nothing.estimate, nothing.low, nothing.high]).all()
    one = ratio_bootstrap([1.0], [2.0], rng=0)
    assert one.estimate == pytest.approx(0.5) and np.isnan(one.low)
    empty = ratio_bootstrap(np.zeros(5), np.ones(5), rng=0)
    assert (empty.estimate, empty.low, empty.high) == (0, 0, 0)


def test_a_total_that_one_episode_carries_has_a_wide_and_finite_interval():
    """A third of the resamples hold nothing of it."""
    found = ratio_bootstrap([0.0] * 19 + [5.0], np.ones(20), rng=0)
    assert 0 < found.low < found.estimate / 4 and 4 * found.estimate < found.high < 10
    few = ratio_bootstrap([1.0, 2.0], [2.0, 1.0], rng=0)
    assert 0 < few.low < 0.1 and 10 < few.high < np.inf


def test_resamples_without_a_scale_do_not_hide_the_others():
    """In one resample of a hundred nothing is left of the four that carry the total."""
    x, y = np.array([0.0] * 16 + [20.0, 1.0, 1.0, 1.0]), np.ones(20)
    found = ratio_bootstrap(x, y, rng=0)
    error = np.sqrt(20 / 19 * ((x / x.sum() - y / y.sum()) ** 2).sum())
    assert np.log(found.high / found.estimate) > 1.3 * stats.t.ppf(0.975, 19) * error


def test_negative_totals_have_an_interval_too():
    after, before = [-4.0, -3.0, 1.0, -2.0], [2.0, 3.0, 2.0, 2.5]
    found = ratio_bootstrap(after, before, rng=0)
    assert found.low < found.estimate < 0 < found.high
    assert found.estimate == pytest.approx(-8 / 9.5)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"level": 1.5}, "level must be in"),
        ({"resamples": 0}, "resamples must be at least"),
        ({"rng": None}, "rng must be a seed"),
    ],
)
def test_bad_input_is_named(option, message):
    with pytest.raises(ValueError, match=message):
        ratio_bootstrap([1.0, 2.0], [1.0, 3.0], **{"rng": 0, **option})


def test_it_covers_under_heavy_tails_where_others_fall_short():
    """400 blocks of 20: a coverage of .95 has a standard error of .011."""

    def pooled(x, y):
        found = ratio_bootstrap(x, y, resamples=1000, rng=0)
        return found.low, found.high

    def percentile(x, y):
        both = np.stack([x, y], axis=1).view(np.complex128)[:, 0]  # so that pairs are drawn

        def ratio(drawn, axis):
            return drawn.real.sum(axis=axis) / drawn.imag.sum(axis=axis)

        rng = np.random.default_rng(0)
        drawn = both[rng.integers(len(both), size=(1000, len(both)))]
        return np.quantile(ratio(drawn, -1), [0.025, 0.975])

    def mean_of_ratios(x, y):
        found = rapo.rsd.statistics.mean_interval(x / (y + EPSILON))
        return found.low, found.high

    covered = {f.__name__: coverage(heavy_pairs(400), f) for f in (pooled, percentile)}
    assert covered["pooled"] >= 0.92 > covered["percentile"]
    many = coverage(heavy_pairs(60, n=100), mean_of_ratios)
    assert many < 0.5 < 0.9 <= coverage(heavy_pairs(60, n=100), pooled)


def test_theorem_1_pooled_is_exactly_one(graph250):
    env = gymnasium.make("rapo/GraphDiffusion-v0", graph=graph250, deformation="off", fit=False)
    result = evaluate(env, always, episodes=6, seed=3, coupled=True, horizons=(80, 30, 80))
    pooled = result.pooled()
    for name in ("RAG", "AUC_R", "SM_R"):
        assert pooled[name]["ratio"] == pooled[name]["mean"] == 1.0
        assert pooled[name]["ci95"] == [1.0, 1.0] and pooled[name]["n"] == 6


@pytest.fixture(scope="module")
def uneven():
    """RAPO on a small graph with a Replay of half the length."""
    graph = rapo.generate(100, 2)
    env = rapo.GraphDiffusionVectorEnv(1, graph=graph, fit=False)
    return evaluate(env, always, episodes=8, seed=5, horizons=(120, 30, 60))


def test_pooled_is_made_of_peaks_and_of_sums_per_step(uneven):
    pooled = uneven.pooled()
    reach = [uneven.of_phase("reach", phase).astype(float) for phase in (0, 2)]
    inside = [uneven.of_phase("sensitive_mass", phase).astype(float) for phase in (0, 2)]
    peaks = reach[1].max(axis=1).sum() / reach[0].max(axis=1).sum()
    assert pooled["RAG"]["ratio"] == pytest.approx(peaks)
    assert pooled["AUC_R"]["ratio"] == pytest.approx(2 * reach[1].sum() / reach[0].sum())
    assert pooled["SM_R"]["ratio"] == pytest.approx(2 * inside[1].sum() / inside[0].sum())
    low, high = pooled["RAG"]["ci95"]
    assert low < peaks < high
    wide = uneven.pooled(level=0.99)["RAG"]["ci99"]
    assert wide[0] < low and high < wide[1]
    assert uneven.pooled() == pooled and uneven.pooled(seed=1)["AUC_R"] != pooled["AUC_R"]


def test_an_episode_with_an_empty_exposure_counts(uneven):
    """Its ratio is undefined, its Replay is not."""
    uneven.traces["reach"] = uneven.traces["reach"].copy()
    uneven.traces["reach"][0, uneven.phase == 0] = 0
    after, before = totals(uneven, "AUC_R")
    assert before[0] == 0 < after[0]
    found = uneven.pooled()["AUC_R"]
    assert found["n"] == 8 and found["ratio"] == pytest.approx(after.sum() / before.sum())


def test_the_epsilon_is_the_papers():
    assert float(ratio_of(1.0, 3e-8)) == pytest.approx(1 / 4e-8)
    assert float(ratio_of(1e-9, 1e-9)) == 1
    assert np.isnan(ratio_of(1.0, 0.0)) and np.isnan(ratio_of(1.0, -1.0))
    with pytest.raises(ValueError, match="no pooled ratio is called 'ASD'"):
        totals(None, "ASD")


def test_the_percentile_bootstrap_draws_as_before():
    """Its resamples are shared with the ratio's, so they are pinned here."""
    found = bootstrap_interval([1.0, 2.0, 4.0, 8.0], rng=7, resamples=500)
    drawn = np.random.default_rng(7).integers(4, size=(500, 4))
    means = np.array([1.0, 2.0, 4.0, 8.0])[drawn].mean(axis=1)
    assert [found.low, found.high] == pytest.approx(np.quantile(means, [0.025, 0.975]))


@pytest.mark.parametrize("name", ["generated", "congress_twitter"])
def test_under_P0_the_interval_covers_one(name):
    """Ten blocks of 20 episodes; `python -m benchmarks pooled_coverage` has all networks."""
    compact = rapo.Setting.named("compact")
    if name == "generated":
        graph = rapo.generate(1000, 0, compact)
    elif (DATA / name / "edges.csv.gz").exists():
        path = DATA / name / "edges.csv.gz"
        graph = rapo.load_edges(path, self_loops="drop", duplicates="drop", setting=compact)
    else:
        pytest.skip(f"no network at {DATA / name}: put the shared data beside the repository")
    env = rapo.GraphDiffusionVectorEnv(
        1, graph=graph, deformation="off", fit=False, setting=compact
    )
    covered = dict.fromkeys(("RAG", "AUC_R", "SM_R"), 0)
    for block in range(10):
        pooled = evaluate(env, always, episodes=20, seed=1000 + 20 * block).pooled()
        for metric in covered:
            low, high = pooled[metric]["ci95"]
            covered[metric] += low <= 1 <= high
    assert min(covered.values()) >= 9, covered


def test_a_few_wild_pairs_have_the_interval_of_students_t():
    after, before = np.array([1.0, 90.0, 2.0, 3.0]), np.array([80.0, 1.0, 2.0, 1.5])
    found = ratio_bootstrap(after, before, rng=0)
    ratio = after.sum() / before.sum()
    gap = after - ratio * before
    error = np.sqrt(4 / 3 * (gap**2).sum()) / before.sum() / ratio  # of the log, linearised
    half = stats.t.ppf(0.975, 3) * error
    assert found.estimate == pytest.approx(ratio)
    assert np.log(found.high / found.estimate) == pytest.approx(half, rel=1e-6)
    assert np.log(found.estimate / found.low) == pytest.approx(half, rel=1e-6)
