"""The factor that gives comparable cascades: found quickly, and the one that bisection finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.setting import MODERATE, Setting
from rapo.cascade.stats import REACH
from rapo.graphs import scale
from rapo.graphs.generate import generate
from rapo.graphs.scale import FIRST, LAST, Size, cascade_size, scale_to_target, scaled, size_up_to
from rapo_core.checks import UserError

COMPACT = Setting.named("compact")
"""The reading whose graphs are scaled to the cascade target."""


class OutOfReachError(Exception):
    pass


def plain_search(size, target):
    """The search as one would write it: every comparison asks for the size itself."""
    if size(0.0) >= target:
        raise OutOfReachError
    low, high = 0.0, 0.01
    while size(high) < target:
        if high >= 100:
            raise OutOfReachError
        low, high = high, 1.6 * high
    for _ in range(40):
        middle = (low + high) / 2
        reached = size(middle)
        if abs(reached / target - 1) <= 0.005:
            break
        low, high = (middle, high) if reached < target else (low, middle)
    return middle


def counted(monkeypatch, graph, setting, seed=0):
    """The factor that is found, and how often the engine ran for it."""
    runs = []

    def size(*args, **options):
        runs.append(args)
        return size_up_to(*args, **options)

    monkeypatch.setattr(scale, "size_up_to", size)
    factor = scale_to_target(graph, setting, seed=seed).meta["scale"]
    monkeypatch.undo()
    return factor, len(runs)


# --- the same factor -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "seed", "changes"),
    [
        (50, 0, {}),
        (50, 3, {"persistence": 0.0}),
        (100, 1, {"cascade_target": 20.0}),
        (100, 2, {"persistence": 0.6, "edge_cap": 0.4}),
        (250, 1000, {"edge_cap": 1.0}),
        (250, 4, {"cascade_target": 3.0}),
        (100, 5, {"stretch": 3.0, "echo": 0.6, "leaving_weight": 0.5, "seeding": "split"}),
    ],
)
def test_the_factor_is_that_of_the_plain_search_in_fewer_runs(monkeypatch, nodes, seed, changes):
    setting = COMPACT.replace(**changes)
    graph = generate(nodes, seed, setting, scale=0.3)
    asked = []

    def size(factor):
        asked.append(factor)
        return cascade_size(scaled(graph, factor, setting.edge_cap), setting, seed=seed)

    expected = plain_search(size, setting.cascade_target)
    factor, runs = counted(monkeypatch, graph, setting, seed)
    assert factor == expected  # to the last bit: hashes depend on it
    assert runs < len(asked)


def test_generated_graphs_have_the_hashes_of_version_0_1():
    """Checkpoints and published results name graphs by these."""
    hashes = {
        (50, 0): "5e6f1e9ebd0148f3",
        (60, 3): "e8ba1f0989ea4dec",
        (100, 1001): "47c1e3bff123b208",
        (250, 0): "df01822e2ecd44d2",
        (500, 7): "4a8a5a898f42a671",
    }
    assert {key: generate(*key, COMPACT).hash for key in hashes} == hashes
    old = COMPACT.replace(edge_cap=1.0)
    assert {key: generate(*key, old).hash for key in hashes} == hashes


@st.composite
def curves(draw):
    """A size that never falls with the factor: any steps and slopes, from 0.1 nodes up."""
    knots = draw(st.lists(st.floats(-5, 5), min_size=2, max_size=8, unique=True).map(sorted))
    rises = draw(st.lists(st.floats(0, 3), min_size=len(knots), max_size=len(knots)).map(np.cumsum))
    jump = draw(st.floats(-5, 5))
    height = draw(st.sampled_from([0.0, 0.0, 2.0]))

    def curve(factor):
        at = np.log(max(factor, 1e-9))
        return float(0.1 * np.exp(np.interp(at, knots, rises) + height * (at >= jump)))

    return curve


@settings(max_examples=200, deadline=None)
@given(curves(), st.floats(0.05, 0.99))
def test_whatever_the_sizes_the_answers_are_those_of_the_plain_search(curve, share):
    """Also where runs end early, and where the target is out of reach on either side."""
    base = generate(10, 0, COMPACT, scale=0.0).replace(
        prob=np.full(generate(10, 0, COMPACT, scale=0.0).edges, 1e-3)
    )
    weak = base.prob.min()

    def factor_of(graph):
        return float(graph.prob.min()) / float(weak)

    def measured(graph, setting, enough, *, seed=0, rounds=10, engines=None):
        size = curve(factor_of(graph))
        if size <= enough:
            return Size(size, size, True)
        return Size(enough + share * (size - enough), 1.1 * size, False)

    def size(factor):
        return curve(factor_of(scaled(base, factor)))

    try:
        expected = plain_search(size, COMPACT.cascade_target)
    except OutOfReachError:
        expected = None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scale, "size_up_to", measured)
        if expected is None:
            with pytest.raises(ValueError, match="cascade_target"):
                scale_to_target(base, COMPACT)
        else:
            assert scale_to_target(base, COMPACT).meta["scale"] == expected


# --- what it rests on ----------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["lanes", "push"])
@pytest.mark.parametrize("persistence", [0.0, 0.19])
def test_active_sets_grow_with_the_factor_to_the_last_bit(backend, persistence):
    """Neighbouring factors, some a rounding apart: no set may lose a node as the factor grows."""
    setting = COMPACT.replace(persistence=persistence)
    graph = generate(100, 5, COMPACT)
    close = [1.0]
    for _ in range(6):
        close.append(float(np.nextafter(np.float32(close[-1]), np.float32(2))))
    factors = [0.0, 0.3, 0.99, *close, 1.0001, 1.01, 1.1, 1.7, 3.0, 50.0]
    before = None
    for factor in factors:
        engine = Cascade(
            scaled(graph, factor, 0.95), 40, setting=setting, deformation="off", backend=backend
        )
        engine.start(derive(7, np.arange(40)), 1 + np.arange(40) % graph.stimuli)
        for _ in range(8):
            engine.run(np.full(40, MODERATE), 25)
        now = engine.active
        assert before is None or np.all(now >= before)
        before = now
    assert before.any()


def test_a_size_in_pieces_is_the_size_in_one_run():
    graph = generate(100, 6, COMPACT)
    episodes = 10 * graph.stimuli
    engine = Cascade(
        graph, episodes, setting=COMPACT.replace(horizons=(LAST, 1, 1)), deformation="off"
    )
    engine.start(
        derive(derive(3, 0xCA5CADE), np.arange(episodes)),
        1 + np.arange(episodes) % graph.stimuli,
    )
    reach = engine.run(np.full(episodes, MODERATE), LAST)[FIRST - 1 :, REACH]
    assert cascade_size(graph, COMPACT, seed=3) == float(reach.mean(dtype=np.float64))


def test_runs_end_once_the_size_is_certainly_enough(monkeypatch):
    graph = scaled(generate(100, 6, COMPACT), 1.4)
    size = cascade_size(graph, COMPACT)
    steps = []
    run = Cascade.run

    def counting(self, actions, number):
        steps.append(number * self.episodes)
        return run(self, actions, number)

    monkeypatch.setattr(Cascade, "run", counting)
    whole = size_up_to(graph, COMPACT, size)
    assert whole == Size(size, size, True)
    assert sum(steps) == 200 * LAST
    steps.clear()
    stopped = size_up_to(graph, COMPACT, size / 8)
    assert not stopped.finished
    assert size / 8 < stopped.least < size
    assert 0.5 * size < stopped.guess < 2 * size
    assert sum(steps) < 200 * LAST / 4


def test_no_run_of_the_search_goes_far_above_the_target(monkeypatch):
    limits = []

    def size(graph, setting, enough, **options):
        limits.append(enough)
        return size_up_to(graph, setting, enough, **options)

    monkeypatch.setattr(scale, "size_up_to", size)
    scale_to_target(generate(100, 3, COMPACT), COMPACT)
    assert limits
    assert all(1.005 < limit / COMPACT.cascade_target < 1.02 for limit in limits)


# --- the cap -------------------------------------------------------------------------------


def test_scaling_caps_and_counts():
    graph = generate(50, 1, COMPACT, scale=0.5)
    free = 10 * graph.prob.astype(float)
    ten = scaled(graph, 10.0, 0.9)
    assert ten.meta["capped_edges"] == int((free > 0.9).sum()) > int((free > 1).sum()) > 0
    np.testing.assert_array_equal(ten.prob, np.minimum(free, 0.9).astype(np.float32))
    assert scaled(graph, 1.0, 0.9) == graph
    assert scaled(graph, 1.0, 0.9).meta["capped_edges"] == 0


def test_generated_graphs_keep_to_the_cap():
    capped = COMPACT.replace(edge_cap=0.3)
    for graph in (generate(50, 0, capped), generate(50, 0, capped, scale=0.9)):
        assert graph.prob.max() == np.float32(0.3)
        assert graph.meta["capped_edges"] == (graph.prob == np.float32(0.3)).sum() > 0
    size = cascade_size(generate(50, 0, capped), capped)
    assert size == pytest.approx(capped.cascade_target, rel=0.0051)


def test_all_factors_run_on_one_engine_of_each_number_of_episodes(monkeypatch):
    graph = generate(120, 3)
    expected = scale_to_target(graph, COMPACT)
    built = []
    build = Cascade.__init__

    def counted(self, graph, episodes, **options):
        built.append(episodes)
        build(self, graph, episodes, **options)

    monkeypatch.setattr(Cascade, "__init__", counted)
    again = scale_to_target(graph, COMPACT)
    assert len(built) == len(set(built)) == 2
    np.testing.assert_array_equal(again.prob, expected.prob)
    assert cascade_size(again, COMPACT) == pytest.approx(COMPACT.cascade_target, rel=0.006)


def test_an_engine_takes_the_probabilities_of_a_graph_of_the_same_edges():
    graph = generate(120, 3)
    other = graph.replace(prob=graph.prob / 2)
    for episodes in (3, 40):
        keys, stimuli = np.arange(episodes), 1 + np.arange(episodes) % graph.stimuli
        fresh, engine = Cascade(other, episodes), Cascade(graph, episodes)
        engine.start(keys, stimuli)
        engine.run(0, 30)
        engine.reweight(other)
        traces = []
        for each in (fresh, engine):
            each.start(keys, stimuli)
            traces.append(each.run(1, 40))
        np.testing.assert_array_equal(*traces)
    with pytest.raises(UserError, match="edges, V_sens and stimuli"):
        engine.reweight(generate(120, 4))
