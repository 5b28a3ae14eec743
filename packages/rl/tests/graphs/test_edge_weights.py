"""V_sens as an echo chamber: shape, edges turned inwards, weights, split seeds, served seeds."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import ROOT
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.greedy_policy import greedy, served_by_action
from rapo.cascade.setting import DECAY, READINGS, REPLAY, Setting
from rapo.cascade.stats import REACH, SENSITIVE, SERVED, STATS
from rapo.envs.task import reward_of
from rapo.graphs.edge_weights import edge_weights, stimulus_shares
from rapo.graphs.generate import _turned_inwards, generate
from rapo.graphs.load import from_networkx
from rapo.graphs.scale import cascade_size
from rapo.graphs.sensitive_set import draw_sensitive
from rapo.graphs.stimuli import draw_stimuli
from rapo_core.params import FieldParams

DEFAULT = Setting.default()
COMPACT = Setting.named("compact")
ECHO = COMPACT.replace(stretch=3.0, echo=0.6, factor=0.3, seeding="split", inside_share=0.4)
"""A chamber of round numbers, so that no test leans on those of the package."""
FIXTURES = ROOT / "tests" / "fixtures"


def is_connected(neighbours, inside):
    members = np.flatnonzero(inside)
    return connected_components(neighbours[members][:, members], directed=False)[0] == 1


# --- weights -------------------------------------------------------------------------------


def test_edge_weights_by_hand():
    sensitive = np.array([True, True, False, False])
    source = np.array([0, 0, 2, 2, 3, 1])
    target = np.array([1, 2, 1, 3, 2, 3])
    setting = COMPACT.replace(inside_weight=3.0, entering_weight=2.0, leaving_weight=0.5)
    weights = edge_weights(sensitive, source, target, setting)
    assert weights.tolist() == [3.0, 0.5, 2.0, 1.0, 1.0, 0.5]


def test_drawn_probabilities_of_a_loaded_graph_have_the_weights():
    crowd = nx.gnp_random_graph(60, 0.3, seed=2, directed=True)
    options = {"sensitive": range(20), "scale": False}
    plain = COMPACT.replace(inside_weight=1.0, edge_cap=1.0)
    heavy = plain.replace(inside_weight=0.9, entering_weight=0.4, leaving_weight=0.2)
    one, two = (from_networkx(crowd, setting=each, **options) for each in (plain, heavy))
    starts, ends = one.sensitive[one.sources], one.sensitive[one.indices]
    for mask, weight in (
        (starts & ends, 0.9),
        (~starts & ends, 0.4),
        (starts & ~ends, 0.2),
        (~starts & ~ends, 1.0),
    ):
        assert mask.any()
        np.testing.assert_allclose(two.prob[mask], weight * one.prob[mask].astype(float), rtol=1e-6)


# --- the factor ----------------------------------------------------------------------------


def test_the_factor_is_applied_exactly_after_the_weights_and_under_the_cap():
    """Nothing else of the draw depends on weights, factor and cap, so the Beta draws are known."""
    plain = ECHO.replace(inside_weight=1.0, factor=1.0, edge_cap=1.0)
    beta = generate(250, 3, plain)
    assert stats.kstest(beta.prob, stats.beta(2, 5).cdf).pvalue > 1e-3
    setting = ECHO.replace(
        inside_weight=4.0, entering_weight=2.0, leaving_weight=0.5, factor=0.4, edge_cap=0.6
    )
    graph = generate(250, 3, setting)
    np.testing.assert_array_equal(graph.indices, beta.indices)
    weights = edge_weights(graph.sensitive, graph.sources, graph.indices, setting)
    free = 0.4 * weights * beta.prob.astype(float)
    np.testing.assert_allclose(graph.prob, np.minimum(free, 0.6), rtol=1e-6)
    assert graph.meta["scale"] == pytest.approx(0.4, rel=1e-12)
    assert graph.meta["capped_edges"] == (free > 0.6).sum() > 0
    assert (free < 0.6).sum() > len(free) / 2


def test_the_default_graphs_have_a_factor_each_and_the_same_cascade():
    assert DEFAULT.factor == 0
    graphs = [generate(nodes, seed) for nodes, seed in ((100, 0), (250, 1), (250, 2))]
    assert len({graph.meta["scale"] for graph in graphs}) == 3
    for graph in graphs:
        assert cascade_size(graph, DEFAULT) == pytest.approx(DEFAULT.cascade_target, rel=0.02)


def test_a_given_scale_replaces_the_factor():
    given_scale = generate(60, 2, ECHO, scale=0.2)
    np.testing.assert_allclose(
        given_scale.prob, generate(60, 2, ECHO).prob * (0.2 / 0.3), rtol=1e-6
    )
    assert generate(60, 2, ECHO, scale=0.0).prob.max() == 0


# --- the shape -----------------------------------------------------------------------------


def elongation(graph):
    """Length over breadth of V_sens: the ratio of its principal axes."""
    spread = np.linalg.eigvalsh(np.cov(graph.positions[graph.sensitive].T))
    return float(np.sqrt(spread[1] / spread[0]))


def test_stretch_elongates_v_sens():
    """The border of the square cuts some ellipses short, hence the median over graphs."""
    ratios = {}
    for stretch in (1.0, 2.0, 4.0):
        setting = COMPACT.replace(stretch=stretch, factor=0.3)
        graphs = [generate(250, seed, setting) for seed in range(20)]
        assert all(is_connected(graph.neighbours, graph.sensitive) for graph in graphs)
        ratios[stretch] = np.median([elongation(graph) for graph in graphs])
    assert ratios[1.0] < 1.6
    assert ratios[1.0] + 0.2 < ratios[2.0] < ratios[4.0] - 0.4
    assert 2.4 < ratios[4.0] < 5


def test_a_stretched_set_lies_along_a_drawn_direction():
    angles = []
    for seed in range(30):
        graph = generate(250, seed, COMPACT.replace(stretch=4.0, factor=0.3))
        _, axes = np.linalg.eigh(np.cov(graph.positions[graph.sensitive].T))
        angles.append(np.arctan2(axes[1, 1], axes[0, 1]) % np.pi)
    quarters = np.histogram(angles, bins=4, range=(0, np.pi))[0]
    assert quarters.min() >= 2, quarters


def test_an_ellipse_on_a_grid_by_its_length_and_breadth():
    """41 x 41 nodes: V_sens of 400 nodes is an ellipse of area 400 around the centre."""
    side = 41
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    neighbours = sparse.csr_array(nx.to_scipy_sparse_array(grid, dtype=np.int8))
    positions = np.stack(np.divmod(np.arange(side**2), side), axis=1) / (side - 1)

    class Draws:
        """The share, the centre and the angle, as they are asked for."""

        def __init__(self, angle):
            self.left = [400 / side**2, angle]

        def uniform(self, low, high):
            value = self.left.pop(0)
            assert low <= value <= high
            return value

        def choice(self, nodes):
            return side**2 // 2

    for angle, long_axis in ((0.0, 0), (np.pi / 2, 1)):
        inside = draw_sensitive(neighbours, positions, 0.1, 0.3, Draws(angle), 3.0)
        assert inside.sum() == 400
        where = positions[inside] * (side - 1)
        extent = np.ptp(where, axis=0) + 1
        # area pi a b = 400 with a = 3 b: b = 6.5, a = 19.5
        assert extent[long_axis] == pytest.approx(39, abs=2)
        assert extent[1 - long_axis] == pytest.approx(13, abs=1)


def test_stretch_of_1_takes_no_draw_and_changes_nothing():
    graph = generate(100, 3, COMPACT, scale=0.3)
    after = []
    for stretch in ({}, {"stretch": 1.0}, {"stretch": 2.0}):
        rng = np.random.default_rng(5)
        inside = draw_sensitive(graph.neighbours, graph.positions, 0.2, 0.2, rng, **stretch)
        after.append((inside, rng.random()))
    np.testing.assert_array_equal(after[0][0], after[1][0])
    assert after[0][1] == after[1][1] != after[2][1]
    # known since version 0.1, which had neither stretch nor echo
    assert generate(60, 3, COMPACT).hash == "e8ba1f0989ea4dec"
    assert generate(60, 3, COMPACT.replace(stretch=1.0, echo=0.0)).hash == "e8ba1f0989ea4dec"
    assert generate(60, 3, COMPACT.replace(stretch=1.5)).hash != "e8ba1f0989ea4dec"


# --- edges turned inwards ------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "seed"), [(10, 0), (50, 1), (100, 2), (250, 3)])
@pytest.mark.parametrize("echo", [0.0, 0.5, 1.0])
def test_edges_turned_inwards_leave_a_simple_graph_of_the_same_degrees(nodes, seed, echo):
    open_graph = generate(nodes, seed, ECHO.replace(echo=0.0))
    graph = generate(nodes, seed, ECHO.replace(echo=echo))
    np.testing.assert_array_equal(graph.indptr, open_graph.indptr)
    np.testing.assert_array_equal(graph.sensitive, open_graph.sensitive)
    assert is_connected(graph.neighbours, graph.sensitive)
    assert not np.any(graph.sources == graph.indices)
    edges = set(zip(graph.sources.tolist(), graph.indices.tolist(), strict=True))
    assert len(edges) == graph.edges
    before = set(zip(open_graph.sources.tolist(), open_graph.indices.tolist(), strict=True))
    inside = graph.sensitive
    for u, v in before - edges:
        assert inside[u] and not inside[v]  # only what left V_sens was turned
    for u, v in edges - before:
        assert inside[u] and inside[v]
    if echo == 0:
        assert edges == before
    else:
        assert edges != before
    if echo == 1:
        for node in np.flatnonzero(inside):
            targets = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
            leads_out = not inside[targets].all()
            free = inside.sum() - 1 - inside[targets].sum()
            assert not (leads_out and free), node


def test_some_edges_stay_where_v_sens_is_too_small_for_them():
    """A V_sens of three nodes: each has two to lead to and out-degree three or more."""
    small = ECHO.replace(sensitive_low=0.06, sensitive_high=0.06, echo=1.0)
    graph = generate(50, 4, small)
    members = np.flatnonzero(graph.sensitive)
    assert len(members) == 3
    for node in members:
        targets = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        assert graph.sensitive[targets].sum() == 2
        assert len(targets) >= 3


def test_the_share_of_edges_turned_is_the_probability():
    turned = total = 0
    for seed in range(40):
        before = generate(250, seed, ECHO.replace(echo=0.0))
        after = generate(250, seed, ECHO.replace(echo=0.3))
        out = [
            int((g.sensitive[g.sources] & ~g.sensitive[g.indices]).sum()) for g in (before, after)
        ]
        turned, total = turned + out[0] - out[1], total + out[0]
    error = np.sqrt(0.3 * 0.7 / total)
    assert abs(turned / total - 0.3) < 4 * error < 0.06


def test_an_edge_is_turned_to_the_nearest_member_that_is_free():
    #  0, 1, 2, 3 on a line are sensitive, 4 and 5 are not; 1 leads to 0, 4 and 5
    positions = np.array([[0.0, 0], [0.1, 0], [0.3, 0], [0.6, 0], [0.1, 0.5], [0.1, 0.6]])
    sensitive = np.array([True, True, True, True, False, False])
    source, target = np.array([1, 1, 1, 4]), np.array([0, 4, 5, 5])
    out = _turned_inwards(positions, sensitive, source, target, 1.0, np.random.default_rng(0))
    assert out.tolist() == [0, 2, 3, 5]
    assert target.tolist() == [0, 4, 5, 5]  # the caller's own stays


# --- stimuli -------------------------------------------------------------------------------


def test_shares_of_a_setting():
    assert stimulus_shares(ECHO.replace(seeding="ball")) is None
    shares = stimulus_shares(ECHO.replace(inside_share=0.4, inside_spread=0.25))
    assert shares == pytest.approx((0.15, 0.65))


def cloud(n, inside):
    """n nodes in a chain at random places, the first `inside` of them sensitive."""
    u = np.arange(n - 1)
    one_way = sparse.csr_array((np.ones(n - 1), (u, u + 1)), shape=(n, n))
    neighbours = sparse.csr_array((one_way + one_way.T) > 0)
    return neighbours, np.random.default_rng(n).random((n, 2)), np.arange(n) < inside


@given(st.floats(0, 1), st.integers(1, 30), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_the_number_inside_is_the_rounded_share_and_both_sides_are_the_nearest(share, k, seed):
    neighbours, positions, sensitive = cloud(80, 40)
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(seed).permutation(40)[:20]  # the first thing that is drawn
    seeds, weights = draw_stimuli(neighbours, positions, sensitive, k, 20, rng, (share, share))
    assert seeds.shape == weights.shape == (20, k)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert (np.diff(seeds, axis=1) > 0).all()
    want = round(share * k)
    for row, centre in zip(seeds, centres, strict=True):
        assert sensitive[row].sum() == want
        gaps = np.hypot(*(positions - positions[centre]).T)
        for side, count in ((sensitive, want), (~sensitive, k - want)):
            nearest = np.sort(gaps[side])[:count]
            np.testing.assert_allclose(np.sort(gaps[row[side[row]]]), nearest)
        assert want == 0 or centre in row


def test_the_share_is_drawn_for_each_stimulus_between_its_bounds():
    neighbours, positions, sensitive = cloud(400, 200)

    def shares(low, high):
        rng = np.random.default_rng(3)
        seeds, _ = draw_stimuli(neighbours, positions, sensitive, 100, 200, rng, (low, high))
        return sensitive[seeds].mean(axis=1)

    drawn = shares(0.2, 0.6)
    assert 0.2 <= drawn.min() < 0.22
    assert 0.58 < drawn.max() <= 0.6
    assert stats.kstest(drawn, stats.uniform(0.2, 0.4).cdf).pvalue > 1e-3
    cut = shares(-0.5, 0.5)  # half of the draws are below 0
    assert 0.4 < (cut == 0).mean() < 0.6
    assert (shares(0.5, 1.5) == 1).mean() > 0.4


@pytest.mark.parametrize(
    ("inside", "share", "expected"),
    [
        (3, 1.0, 3),  # V_sens has 3 nodes only: 7 from outside
        (3, 0.1, 1),
        (16, 0.0, 6),  # 4 nodes outside only
        (16, 0.9, 9),
        (20, 0.0, 10),  # nothing is outside
    ],
)
def test_too_few_nodes_on_one_side_are_made_up_by_the_other(inside, share, expected):
    neighbours, positions, sensitive = cloud(20, inside)
    rng = np.random.default_rng(0)
    seeds, _ = draw_stimuli(neighbours, positions, sensitive, 10, 20, rng, (share, share))
    assert all(len(set(row)) == 10 for row in seeds.tolist())
    assert (sensitive[seeds].sum(axis=1) == expected).all()


def test_split_seeds_stay_in_the_component_of_their_centre():
    neighbours, positions, sensitive = cloud(30, 6)
    neighbours = neighbours.tolil()
    neighbours[14, 15] = neighbours[15, 14] = 0
    neighbours = sparse.csr_array(neighbours.tocsr())
    neighbours.eliminate_zeros()
    rng = np.random.default_rng(0)
    seeds, _ = draw_stimuli(neighbours, positions, sensitive, 12, 10, rng, (0.25, 0.25))
    assert (seeds < 15).all()
    assert (sensitive[seeds].sum(axis=1) == 3).all()


def test_generated_stimuli_have_the_setting_of_their_shares():
    setting = ECHO.replace(support=20, inside_share=0.5, inside_spread=0.2)
    graph = generate(250, 1, setting)
    inside = graph.sensitive[graph.support].sum(axis=1)
    assert graph.support.shape == (20, 20)
    assert inside.min() >= 6 and inside.max() <= 14
    assert len(set(inside.tolist())) > 4  # the share differs between stimuli
    fixed = generate(250, 1, setting.replace(inside_spread=0.0))
    assert (fixed.sensitive[fixed.support].sum(axis=1) == 10).all()


def test_loaded_stimuli_are_split_too():
    crowd = nx.connected_watts_strogatz_graph(120, 6, 0.2, seed=1)
    setting = ECHO.replace(loaded_support=12, loaded_share=0.25, loaded_spread=0.0)
    graph = from_networkx(crowd, scale=False, setting=setting)
    assert (graph.sensitive[graph.support].sum(axis=1) == 3).all()


# --- readings ------------------------------------------------------------------------------


def test_every_reading_loads_and_makes_graphs():
    found = {name: Setting.named(name) for name in READINGS}
    assert set(found) == {"echo", "compact", "bistable"}
    assert len(set(found.values())) == 3
    assert found["echo"] == Setting.default()
    for setting in found.values():
        assert Setting.from_dict(json.loads(json.dumps(setting.to_dict()))) == setting
        graph = generate(100, 0, setting)
        assert graph.sensitive.any()
        engine = Cascade(graph, 2, setting=setting)
        engine.start([1, 2], [1, 2])
        assert engine.run(0, 50)[:, REACH].max() > 0


@pytest.mark.parametrize("name", ["", "Echo", "first", "setting", "../setting", None, 3])
def test_an_unknown_reading_is_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match=r"^reading must be one of echo, compact, bistable, got "):
        Setting.named(name)


def test_the_constants_of_a_setting_have_its_lower_bound():
    assert COMPACT.params == FieldParams()
    other = DEFAULT.replace(psi_min=0.37)
    assert other.params == FieldParams(psi_min=0.37)
    graph = generate(60, 0, ECHO)
    assert Cascade(graph, 1, setting=other).params.psi_min == 0.37
    own = FieldParams(psi_min=0.2)
    assert Cascade(graph, 1, setting=other, params=own).params == own


# --- what would be served ------------------------------------------------------------------


def tiny_engine(deformation="full"):
    """Two regions, three seeds; nodes 0 and 1 are sensitive and share region 0."""
    graph = Graph(
        indptr=[0, 1, 2, 3, 4],
        indices=[1, 2, 3, 0],
        prob=[0.5, 0.5, 0.5, 0.5],
        positions=[[0, 0], [1, 0], [1, 1], [0, 1]],
        sensitive=[True, True, False, False],
        support=[[0, 2, 3], [1, 2, 3]],
        weights=[[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]],
    )
    setting = COMPACT.replace(
        rates=(0.8, 0.4, 0.2), influence_tilt=0.0, risk_tilt=0.0, horizons=(5, 5, 5), delay=1
    )
    params = FieldParams(w_G=1.0, w_H=2.0, psi_min=0.1)
    engine = Cascade(
        graph, 2, setting=setting, params=params, regions=np.array([0, 0, 1, 1]),
        deformation=deformation,
    )  # fmt: skip
    engine.start([3, 4], [1, 2])
    return engine


def test_served_by_action_by_hand():
    engine = tiny_engine()
    state = engine.snapshot()
    state["G"] = np.array([[np.log(2.0)], [0.0]], np.float32)  # the live region is region 0
    state["H"] = np.array([[0.0], [np.log(2.0)]], np.float32)
    engine.restore(state)
    psi = [0.5, 0.25]  # exp(-G), exp(-2 H)
    weights = [[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]
    expected = [
        [
            sum(
                b * p / (b * p + 1 - b)
                for b, p in zip([rate * w for w in weights[e]], [psi[e], 1, 1], strict=True)
            )
            for rate in (0.8, 0.4, 0.2)
        ]
        for e in range(2)
    ]
    np.testing.assert_allclose(served_by_action(engine), expected, rtol=1e-6)
    # aggressive, first episode: .4 at half odds is .25, and .2 + .2 in the free region
    assert served_by_action(engine)[0, 0] == pytest.approx(0.25 + 0.4, rel=1e-6)
    assert greedy(engine).tolist() == [0, 0]


@pytest.mark.parametrize("action", [0, 1, 2])
def test_without_memory_it_is_what_a_step_serves(action):
    graph = generate(100, 2, ECHO)
    engine = Cascade(graph, 20, setting=ECHO)
    engine.start(np.arange(20), 1 + np.arange(20))
    told = served_by_action(engine)
    assert told.shape == (20, 3)
    np.testing.assert_allclose(told, np.tile(ECHO.rates, (20, 1)), rtol=1e-5)
    served = engine.step(np.full(20, action))[SERVED]
    np.testing.assert_allclose(served, told[:, action], rtol=1e-5)


def test_with_memory_it_is_what_a_step_serves_and_differs_by_action():
    graph = generate(100, 2, ECHO)
    setting = ECHO.replace(horizons=(100, 20, 20), delay=5, rates=(0.7, 0.6, 0.5), risk_tilt=20.0)
    engine = Cascade(graph, 20, setting=setting, params=FieldParams(tau=0.02, psi_min=0.05))
    engine.start(np.arange(20), 1 + np.arange(20))
    engine.run(0, 120)
    assert (engine.phase == REPLAY).all()
    told, best = served_by_action(engine), greedy(engine)
    assert (told < 0.999 * np.array(setting.rates)).any(axis=0).all()
    assert set(best.tolist()) > {0} or set(best.tolist()) > {2}  # it depends on the stimulus
    np.testing.assert_array_equal(best, told.argmax(axis=1))
    state = engine.snapshot()
    for action in range(3):
        engine.restore(state)
        served = engine.step(np.full(20, action))[SERVED]
        np.testing.assert_allclose(served, told[:, action], rtol=1e-4)


def test_it_is_told_while_the_stimulus_is_off_and_the_kernel_nominal():
    engine = tiny_engine("off")
    state = engine.snapshot()
    state["G"] = np.array([[np.log(2.0)], [np.log(2.0)]], np.float32)
    engine.restore(state)
    engine.enter(DECAY)
    told = served_by_action(engine)
    assert told[0, 0] == pytest.approx(0.65, rel=1e-6)
    assert (engine.step([0, 0])[SERVED] == 0).all()


# --- the reward ----------------------------------------------------------------------------


@given(st.floats(0, 3), st.floats(0.1, 3), st.integers(0, 50))
def test_without_saturation_the_reward_is_linear_in_what_is_served(served, most, outside):
    setting = COMPACT.replace(kappa_s=0.0, outside_weight=0.2, kappa=5.0)
    table = np.zeros((len(STATS), 1), np.float32)
    table[SERVED], table[REACH], table[SENSITIVE] = served, outside + 3, 3
    expected = served / most + 0.2 * (1 - np.exp(-outside / 5))
    assert reward_of(table, np.array([most]), setting)[0] == pytest.approx(expected, rel=1e-5)


def test_the_linear_reward_is_the_limit_of_a_weak_saturation():
    table = np.zeros((len(STATS), 4), np.float32)
    table[SERVED] = [0.0, 0.25, 0.5, 1.0]
    linear, weak, strong = (
        reward_of(table, np.ones(4), COMPACT.replace(kappa_s=kappa_s)) for kappa_s in (0, 1e4, 0.1)
    )
    np.testing.assert_allclose(linear, [0, 0.25, 0.5, 1], atol=1e-7)
    np.testing.assert_allclose(weak, linear, atol=1e-4)
    assert (strong[1:3] > 0.9).all()
