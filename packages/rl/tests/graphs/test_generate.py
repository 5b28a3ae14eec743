"""The paper's random graphs, and the factor that gives them comparable cascades."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from rapo.cascade.setting import Setting
from rapo.graphs import generate as generator
from rapo.graphs.generate import STIMULI, generate
from rapo.graphs.scale import cascade_size, scale_to_target, scaled

DEFAULT = Setting.default()
COMPACT = Setting.named("compact")
"""The reading whose graphs are scaled to the cascade target."""
PLAIN = DEFAULT.replace(inside_weight=1.0, entering_weight=1.0, leaving_weight=1.0)
SIZES = (50, 100, 250)
some_graphs = pytest.mark.parametrize(("nodes", "seed"), [(10, 0), (50, 1), (100, 2), (250, 3)])


def drawn(nodes, seed, setting=DEFAULT, scale=0.5):
    """A graph with a given factor: everything but the search."""
    return generate(nodes, seed, setting, scale)


# --- the draw ------------------------------------------------------------------------------


def test_a_graph_is_a_function_of_nodes_seed_and_setting():
    first = generate(50, 4)
    generator._generate.cache_clear()
    again = generate(50, 4)
    assert again is not first
    assert again == first
    assert again.meta == first.meta
    others = [generate(50, 5), generate(51, 4), generate(50, 4, DEFAULT.replace(support=5))]
    assert len({first.hash, *(g.hash for g in others)}) == 4
    assert generate(nodes=np.int64(50), seed=np.int64(4)) == first


def test_seeds_of_different_sizes_do_not_share_their_draws():
    small, large = drawn(50, 0), drawn(100, 0)
    assert not set(map(tuple, small.positions.tolist())) & set(map(tuple, large.positions.tolist()))


@some_graphs
def test_out_degrees_are_three_four_or_five(nodes, seed):
    g = drawn(nodes, seed)
    degree = np.diff(g.indptr)
    assert set(degree.tolist()) <= {3, 4, 5}
    if nodes >= 50:
        assert stats.chisquare(np.bincount(degree, minlength=6)[3:]).pvalue > 1e-3


@pytest.mark.parametrize("factor", [1.0, 2.0, 2.7])
@some_graphs
def test_targets_are_among_the_nearest(nodes, seed, factor):
    g = drawn(nodes, seed, DEFAULT.replace(neighbours=factor, echo=0))
    distance = cdist(g.positions.astype(float), g.positions.astype(float))
    np.fill_diagonal(distance, np.inf)
    ranked = np.sort(distance, axis=1)
    used = []
    for u in range(g.n):
        degree = int(g.indptr[u + 1] - g.indptr[u])
        reach = min(math.ceil(factor * degree), nodes - 1)
        targets = g.indices[g.indptr[u] : g.indptr[u + 1]]
        assert len(set(targets.tolist())) == degree
        # positions are stored in single precision, hence the slack
        assert np.all(distance[u, targets] <= ranked[u, reach - 1] + 1e-6)
        used += [int((ranked[u] < d - 1e-6).sum()) / reach for d in distance[u, targets]]
    if nodes == 250:  # the choice within the circle is even, not the nearest first
        assert np.mean(used) == pytest.approx(0.5 - 0.5 / (4 * factor), abs=0.04)


def test_positions_are_uniform_and_neighbours_are_close_in_memory():
    g = drawn(1000, 0)
    for axis in range(2):
        assert stats.kstest(g.positions[:, axis], "uniform").pvalue > 1e-3
    assert abs(stats.pearsonr(*g.positions.T).statistic) < 0.12
    steps = np.hypot(*np.diff(g.positions, axis=0).T)
    assert steps.mean() < 0.1  # along the curve; at random it would be 0.52


def test_probabilities_are_beta_2_5_before_scaling():
    prob = drawn(1000, 1, PLAIN, 1.0).prob
    assert stats.kstest(prob, stats.beta(2, 5).cdf).pvalue > 1e-3
    half = drawn(1000, 1, PLAIN, 0.5)
    np.testing.assert_allclose(half.prob, 0.5 * prob, rtol=1e-6)
    assert half.meta["scale"] == pytest.approx(0.5)


def test_edges_inside_the_sensitive_set_are_stronger_by_the_weight():
    plain, strong = drawn(250, 2, PLAIN, 0.3), drawn(250, 2, PLAIN.replace(inside_weight=3), 0.3)
    np.testing.assert_array_equal(plain.indices, strong.indices)
    np.testing.assert_array_equal(plain.sensitive, strong.sensitive)
    inside = plain.sensitive[plain.sources] & plain.sensitive[plain.indices]
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_allclose(
        strong.prob, np.where(inside, 3.0, 1.0) * plain.prob.astype(float), rtol=1e-6
    )


@pytest.mark.parametrize("nodes", [50, 100, 250])
def test_the_sensitive_set_holds_its_share_and_is_connected(nodes):
    shares = []
    setting = DEFAULT.replace(sensitive_low=0.15, sensitive_high=0.25)
    for seed in range(12):
        g = drawn(nodes, seed, setting)
        count = int(g.sensitive.sum())
        assert 0.15 * nodes - 1e-9 <= count <= 0.25 * nodes + 1e-9
        members = np.flatnonzero(g.sensitive)
        assert connected_components(g.neighbours[members][:, members], directed=False)[0] == 1
        shares.append(count / nodes)
    assert max(shares) - min(shares) > 0.04  # it is drawn, not fixed


def test_stimuli_are_small_connected_balls_that_touch_the_sensitive_set():
    g = drawn(250, 5, COMPACT)
    k = COMPACT.support
    assert g.stimuli == STIMULI == 20
    assert g.support.shape == (20, k)
    for seeds, weights in zip(g.support, g.weights, strict=True):
        assert len(set(seeds.tolist())) == k
        assert g.sensitive[seeds].any()
        assert connected_components(g.neighbours[seeds][:, seeds], directed=False)[0] == 1
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        spread = np.hypot(*(g.positions[seeds] - g.positions[seeds].mean(axis=0)).T)
        assert spread.mean() < 0.25  # 20 of 250 nodes: a disc of radius 0.16
    assert len({tuple(row) for row in g.support.tolist()}) > 10
    # Dirichlet(1) over k seeds has E[w^2] = 2 / (k (k + 1))
    assert (g.weights**2).mean() == pytest.approx(2 / (k * (k + 1)), rel=0.3)


def test_a_support_wider_than_the_graph_takes_the_whole_graph():
    g = drawn(12, 0, COMPACT.replace(support=40))
    assert g.support.shape[1] == 12


@pytest.mark.parametrize(("nodes", "seeds"), [(60, 7), (100, 12), (160, 20), (300, 20)])
def test_split_seeds_are_at_most_an_eighth_of_the_nodes(nodes, seeds):
    assert drawn(nodes, 0, DEFAULT.replace(support=20)).support.shape[1] == seeds


def test_meta_says_where_the_graph_came_from():
    g = drawn(50, 7, COMPACT, scale=0.25)
    assert g.meta["nodes"] == 50
    assert g.meta["seed"] == 7
    assert g.meta["scale"] == pytest.approx(0.25)
    assert g.meta["capped_edges"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 9}, r"nodes must be a whole number >= 10, got 9"),
        ({"nodes": 50.5}, r"nodes must be a whole number >= 10, got 50.5"),
        ({"nodes": True}, r"nodes must be a whole number >= 10, got True"),
        ({"nodes": -3}, r"nodes must be a whole number >= 10, got -3"),
        ({"seed": -1}, r"seed must be a whole number >= 0, got -1"),
        ({"seed": 0.5}, r"seed must be a whole number >= 0, got 0.5"),
        ({"nodes": 50, "scale": -1.0}, r"got -"),
        ({"nodes": 50, "scale": math.nan}, r"got nan"),
        ({"nodes": 50, "scale": math.inf}, r"scale.*got inf"),
    ],
)
def test_bad_arguments_are_refused_by_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(**arguments)


# --- the factor ----------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("seed", [0, 3])
def test_the_search_meets_the_target_on_its_own_draws(nodes, seed):
    size = cascade_size(generate(nodes, seed, COMPACT), COMPACT, seed=seed)
    assert abs(size / COMPACT.cascade_target - 1) <= 0.005 + 1e-12


def test_cascades_are_comparable_across_sizes_on_fresh_draws():
    """The search averages 60 runs, whose mean has a standard error of 1 to 3% of the target.

    So a single graph is off by 2.5% rms on fresh draws (measured over 80 graphs; 1000 fresh runs
    add 0.7%): 10% is four standard errors. The mean of eight graphs of a size has 0.9%, of
    which 5% is more than five, so the sizes differ by less than 5% too.
    """
    means = {}
    for nodes in SIZES:
        sizes = [
            cascade_size(generate(nodes, seed, COMPACT), COMPACT, seed=10_000 + seed, rounds=30)
            for seed in range(8)
        ]
        relative = np.array(sizes) / COMPACT.cascade_target
        assert np.all(np.abs(relative - 1) < 0.10), (nodes, relative)
        means[nodes] = relative.mean()
    assert all(abs(mean - 1) < 0.05 for mean in means.values()), means
    assert max(means.values()) - min(means.values()) < 0.05


def test_another_target_is_met_too():
    setting = COMPACT.replace(cascade_target=20.0)
    g = generate(100, 1, setting)
    assert cascade_size(g, setting, seed=77, rounds=20) == pytest.approx(20, rel=0.1)
    assert g.meta["scale"] > generate(100, 1, COMPACT).meta["scale"]


def test_a_known_factor_gives_the_searched_graph():
    for nodes, seed in ((50, 0), (100, 1), (250, 2)):
        g = generate(nodes, seed, COMPACT)
        again = generate(nodes, seed, COMPACT, scale=g.meta["scale"])
        np.testing.assert_allclose(again.prob, g.prob, rtol=1e-6)
        np.testing.assert_array_equal(again.indices, g.indices)
        assert again.meta["scale"] == pytest.approx(g.meta["scale"], rel=1e-12)


@pytest.mark.parametrize("persistence", [0.0, 0.2, 0.98])
def test_cascade_size_equals_a_closed_form_without_edges(persistence):
    """A node under injection b and persistence s alone: E[A_t] = pi (1 - rho^t), rho = (1-b)s."""
    setting = DEFAULT.replace(persistence=persistence)
    g = drawn(100, 3, scale=0.0)
    weights = g.weights.copy()
    weights[:7] = np.eye(weights.shape[1])[0]  # stimuli that differ: one seed saturates
    g = g.replace(weights=weights)
    b = DEFAULT.rates[1] * g.weights  # the moderate action
    rho = (1 - b) * persistence
    t = np.arange(51, 401)[:, None, None]
    exact = (b / (1 - rho) * (1 - rho**t)).sum(axis=-1).mean()
    # 2000 runs of 350 steps; a memory of 1 / (1 - s) steps divides the number of independent ones
    error = np.sqrt(exact * 2 / (1 - persistence) / 350 / 2000)
    assert abs(cascade_size(g, setting, seed=5, rounds=100) - exact) < 4 * error
    assert 4 * error < 0.03 * exact  # sharp enough to see a window that starts at 0


def test_cascade_size_is_deterministic_and_keyed_by_seed():
    g = drawn(50, 0, scale=0.7)
    assert cascade_size(g, DEFAULT, seed=1) == cascade_size(g, DEFAULT, seed=1)
    assert cascade_size(g, DEFAULT, seed=1) != cascade_size(g, DEFAULT, seed=2)


@pytest.mark.parametrize("nodes", [50, 100])
def test_with_the_draws_fixed_the_size_never_falls_with_the_factor(nodes):
    g = drawn(nodes, 2, scale=0.5)
    factors = np.concatenate([np.linspace(0, 3, 25), [5.0, 20.0, 100.0]])
    sizes = [cascade_size(scaled(g, f), DEFAULT, seed=9, rounds=1) for f in factors]
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[0] < 1 < 0.5 * nodes < sizes[-1] <= nodes


def test_scaling_multiplies_and_counts_what_it_clips():
    g = drawn(50, 1, scale=0.5)
    doubled = scaled(g, 2.0)
    np.testing.assert_allclose(doubled.prob, np.minimum(2 * g.prob.astype(float), 1), rtol=1e-7)
    assert doubled.meta["capped_edges"] == int((2 * g.prob.astype(float) > 1).sum())
    ten = scaled(g, 10.0)
    assert ten.meta["capped_edges"] == int((10 * g.prob.astype(float) > 1).sum()) > 0
    assert ten.prob.max() == 1
    assert ten.meta["scale"] == 10.0
    assert scaled(g, 1.0) == g
    for name in ("indptr", "indices", "positions", "sensitive", "support", "weights"):
        np.testing.assert_array_equal(getattr(ten, name), getattr(g, name))


def test_scaling_to_the_target_forgets_the_factor_before():
    strong, weak = drawn(50, 1, COMPACT, scale=0.9), drawn(50, 1, COMPACT, scale=0.3)
    one, two = (scale_to_target(g, COMPACT, seed=3) for g in (strong, weak))
    for g in (one, two):
        size = cascade_size(g, COMPACT, seed=3)
        assert abs(size / COMPACT.cascade_target - 1) <= 0.005 + 1e-12
    assert two.meta["scale"] / one.meta["scale"] == pytest.approx(3.0, rel=0.02)


def test_a_target_beyond_the_graph_is_refused_with_what_is_reached():
    setting = COMPACT.replace(cascade_target=60.0)
    with pytest.raises(
        ValueError,
        match=r"cascade_target 60.0 is out of reach: probabilities x\d+.* give cascades of "
        r"\d+\.\d of 50 nodes; lower the target or raise the rates",
    ):
        generate(50, 0, setting)


def test_a_target_below_the_injection_alone_is_refused():
    setting = COMPACT.replace(cascade_target=0.2)
    with pytest.raises(
        ValueError,
        match=r"cascade_target 0.2 is not above the 0.4\d nodes that injection alone keeps active; "
        r"raise the target or lower the rates",
    ):
        generate(50, 0, setting)


@pytest.mark.parametrize("rounds", [0, -1])
def test_cascade_size_needs_a_run(rounds):
    with pytest.raises(ValueError, match="must be a whole number >= 1"):
        cascade_size(drawn(50, 0), DEFAULT, rounds=rounds)
