"""What every kind of field promises: bounds, order, batches, snapshots, delay, odds."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo.scars import FullWarning, make
from rapo_core.deformation import gate_odds, reweight
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

quick = settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
unit = st.floats(0, 1, width=32)
seeds = st.integers(0, 10_000)
QUERIES = np.random.default_rng(7).random((60, 2))

pytestmark = pytest.mark.filterwarnings("ignore::rapo.scars.FullWarning")


def feed(field, points, shares, visits=True):
    for x, share in zip(points, shares, strict=True):
        if field.batch is None:
            x, share = x[0], share[0]
        field.deposit(x, share)
        if visits:
            field.visit(x)
        field.step()
    return field


@quick
@given(seeds, st.floats(0.01, 1), st.floats(0, 5), st.floats(0, 5))
def test_psi_stays_within_its_bounds(kind, build, stream, seed, psi_min, w_G, w_H):
    params = FieldParams(psi_min=psi_min, w_G=w_G, w_H=w_H, eta=0.5)
    field = feed(build(kind, params=params), *stream(seed))
    psi = field.conductance(QUERIES)
    assert np.all((psi >= psi_min) & (psi <= 1))
    G, H = field.fields(QUERIES)
    assert np.all(G >= 0) and np.all(H >= 0)


@quick
@given(seeds)
def test_the_order_of_a_steps_points_does_not_matter(kind, build, stream, seed):
    points, shares = stream(seed, k=8)
    shuffled = np.random.default_rng(seed).permutation(8)
    one = feed(build(kind), points, shares)
    other = feed(build(kind), points[:, :, shuffled], shares[:, :, shuffled])
    assert np.array_equal(one.conductance(QUERIES), other.conductance(QUERIES))
    parts = build(kind)
    for x, share in zip(points[:, 0], shares[:, 0], strict=True):
        parts.visit(x)
        parts.deposit(x[4:], share[4:])
        parts.deposit(x[:4], share[:4])
        parts.step()
    assert np.array_equal(one.conductance(QUERIES), parts.conductance(QUERIES))


@quick
@given(seeds)
def test_a_batch_is_its_episodes_one_by_one(kind, build, stream, seed):
    points, shares = stream(seed, episodes=3)
    batch = feed(build(kind, batch=3), points, shares)
    psi = batch.conductance(np.stack([QUERIES] * 3))
    for e in range(3):
        single = feed(build(kind), points[:, e : e + 1], shares[:, e : e + 1])
        assert np.array_equal(psi[e], single.conductance(QUERIES))
        assert batch.size[e] == single.size


@quick
@given(seeds)
def test_harm_of_zero_changes_nothing(kind, build, stream, seed):
    points, shares = stream(seed, k=6)
    roomy = {"centres": 100} if kind == "kernel" else {}
    field, twin = (feed(build(kind, **roomy), points, shares, visits=False) for _ in range(2))
    field.deposit(np.random.default_rng(seed).random((30, 2)), np.zeros(30))
    field.step()
    twin.step()
    before, after = twin.snapshot(), field.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_without_harm_psi_is_one_everywhere(kind, build, stream):
    points, shares = stream(3)
    field = feed(build(kind), points, 0 * shares)
    assert np.array_equal(field.conductance(QUERIES), np.ones(60))


@quick
@given(seeds)
def test_far_from_harm_psi_is_exactly_one(kind, build, stream, seed):
    points, shares = stream(seed, steps=30)
    field = feed(build(kind, width=0.05), 0.3 * points, shares)
    far = 0.3 + 3 * 0.05 + 2 / 24 + (0.7 - 0.15 - 2 / 24) * QUERIES  # and two knots of the grid
    psi = field.conductance(np.concatenate([far, 0.3 * QUERIES]))
    assert psi[:60].tolist() == [1.0] * 60
    assert psi[60:].min() < 1


@quick
@given(hnp.arrays(float, (8, 2), elements=unit), st.floats(0.2, 1))
def test_scars_never_fall_when_they_do_not_fade(kind, build, places, share):
    """Also when full: the harm moves on, and what is scarred stays in some place as deep."""
    field = build(kind, params=FieldParams(tau=0.05))
    deepest = 0.0
    for place in np.repeat(places, 6, axis=0):
        field.deposit(place[None], [share])
        field.step()
        H = field.snapshot()["H"]
        assert H.max() >= deepest
        deepest = H.max()
    idle = field.snapshot()["H"]
    for _ in range(5):
        field.step()
    assert np.all(field.snapshot()["H"] >= idle)


@quick
@given(seeds, st.floats(0.9, 0.999))
def test_slow_decay_lets_scars_fade(kind, build, stream, seed, delta):
    field = feed(build(kind, params=FieldParams(tau=0.01, delta=delta)), *stream(seed))
    for _ in range(60):  # until no trace is above tau and feeds them
        field.step()
    scarred = field.snapshot()["H"].max()
    for _ in range(20):
        field.step()
    assert scarred > 0
    assert field.snapshot()["H"].max() < scarred


@quick
@given(seeds, st.integers(0, 3))
def test_a_snapshot_restores_bit_for_bit(kind, build, stream, seed, delay):
    points, shares = stream(seed, steps=16, episodes=2)
    field = build(kind, batch=2, delay=delay)
    for x, share in zip(points[:8], shares[:8], strict=True):
        field.advance(x, share)
    field.deposit(points[8], shares[8])  # what waits for the next step is kept too
    state = field.snapshot()
    twin = build(kind, batch=2, delay=delay)
    twin.restore(state)
    for f in (field, twin):
        for x, share in zip(points[8:], shares[8:], strict=True):
            f.advance(x, share)
    mine, other = field.snapshot(), twin.snapshot()
    assert all(np.array_equal(mine[name], other[name]) for name in mine)
    everywhere = np.stack([QUERIES] * 2)
    assert np.array_equal(field.conductance(everywhere), twin.conductance(everywhere))
    field.restore(state)
    assert all(np.array_equal(state[name], field.snapshot()[name]) for name in state)


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_harm_arrives_as_in_a_harm_memory(kind, build, delay):
    """A region is a place that nothing else is near: same harm, same delay, same G and H."""
    places = np.array([[0.1, 0.1], [0.9, 0.9]])
    exact = {"resolution": 11} if kind == "grid" else {}  # knots on both places
    field = build(kind, delay=delay, **exact)
    memory = HarmMemory(2, delay=delay)
    rng = np.random.default_rng(1)
    for _ in range(40):
        affected = rng.integers(0, 8, 2) * (rng.random(2) < 0.8)
        assert field.advance(places, affected) == memory.advance(affected)
    G, H = field.fields(places)
    np.testing.assert_allclose(G, memory.G, rtol=1e-6)
    np.testing.assert_allclose(H, memory.H, rtol=1e-6)
    assert H.max() > 0


def test_nothing_arrives_before_the_delay_is_over(kind, build):
    field = build(kind, delay=3)
    harm = [float(field.advance([[0.5, 0.5]], [4.0])) for _ in range(5)]
    assert harm == [0, 0, 0, 0.4, 0.4]


def test_harm_that_waits_is_forgotten_too(kind, build):
    field = build(kind, batch=2, delay=1)
    place = np.full((2, 1, 2), 0.5)
    field.advance(place, [[4.0], [4.0]])
    field.reset([1])
    assert field.advance(place, [[0.0], [0.0]]).tolist() == [0.4, 0.0]


def test_a_row_of_a_batch_is_forgotten_alone(kind, build, stream):
    points, shares = stream(5, episodes=2)
    field = feed(build(kind, batch=2), points, shares)
    twin = build(kind, batch=2)
    twin.restore(field.snapshot())
    everywhere = np.stack([QUERIES] * 2)
    field.deposit(points[0], shares[0])
    field.reset([0])
    field.step()
    twin.deposit(points[0], shares[0])
    twin.step()
    psi = field.conductance(everywhere)
    assert psi[0].tolist() == [1.0] * 60
    assert np.array_equal(psi[1], twin.conductance(everywhere)[1])
    field.reset()
    assert np.all(field.conductance(everywhere) == 1)
    fresh, empty = build(kind, batch=2).snapshot(), field.snapshot()
    assert all(np.array_equal(fresh[name], empty[name]) for name in fresh)


@quick
@given(seeds)
def test_odds_contract_by_exactly_psi(kind, build, stream, seed):
    field = feed(build(kind), *stream(seed))
    psi = field.conductance(QUERIES[:2])
    p = reweight([0.5, 0.5], psi)
    assert p[0] / p[1] == pytest.approx(psi[0] / psi[1], rel=1e-12)
    q = gate_odds(np.full(2, 0.4), psi)
    np.testing.assert_allclose(q / (1 - q), psi * 0.4 / 0.6, rtol=1e-12)


def test_units_of_the_box_do_not_matter(kind, build, stream, small):
    points, shares = stream(2)
    plain = feed(build(kind), points, shares)
    low, side = np.array([-5.0, 300.0]), np.array([10.0, 200.0])
    box = np.stack([low, low + side], axis=1)
    scaled = feed(make(kind, box, width=0.12, **small[kind]), low + side * points, shares)
    np.testing.assert_allclose(
        scaled.conductance(low + side * QUERIES), plain.conductance(QUERIES), atol=1e-5
    )


def test_a_full_kernel_field_tells_once_and_counts(build, stream):
    points, shares = stream(0, steps=40)
    field = build("kernel")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feed(field, points, shares)
    assert [w.category for w in caught] == [FullWarning]
    assert field.size == 12
    assert field.merges > 1
