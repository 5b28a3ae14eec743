"""`HarmMemory`: the update, the delay buffer, batches, snapshots and refused input."""

import copy
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

R = 3
quick = settings(deadline=None, max_examples=60)

params = st.builds(
    FieldParams,
    lam=st.floats(0.01, 1),
    alpha=st.floats(0, 2),
    eta=st.floats(0, 0.5),
    tau=st.floats(0, 1),
    delta=st.one_of(st.just(1.0), st.floats(0.5, 1)),
    w_G=st.floats(0, 3),
    w_H=st.floats(0, 5),
    psi_min=st.floats(0.01, 1),
)
counts = st.lists(st.integers(0, 6), min_size=R, max_size=R)


@st.composite
def arrivals(draw):
    """(harm, weights): weights are shares of counts; all zero only where harm is 0."""
    share = np.array(draw(counts), float)
    harm = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.floats(0, 1e6)))
    if not share.any():
        return 0.0, share
    return harm, share / share.sum()


histories = st.lists(arrivals(), min_size=1, max_size=40)


def obvious(p, history):
    """SPEC section 2, step 4, one region at a time in plain Python."""
    G, H = [0.0] * R, [0.0] * R
    for harm, weights in history:
        for r in range(R):
            H[r] = p.delta * H[r] + p.eta * max(0.0, G[r] - p.tau)
            G[r] = (1 - p.lam) * G[r] + p.alpha * harm * float(weights[r])
    return G, H


def used(*, batch=None, delay=3, steps=5, dtype=np.float64):
    """A memory in the middle of a run, its ring not at position 0."""
    memory = HarmMemory(R, FieldParams(delta=0.99), batch=batch, delay=delay, dtype=dtype)
    rng = np.random.default_rng(5)
    for _ in range(steps):
        memory.advance(rng.integers(0, 9, memory.G.shape))
    return memory


def assert_same_state(a, b):
    a, b = (m.snapshot() if isinstance(m, HarmMemory) else m for m in (a, b))
    for name in ("G", "H", "waiting"):
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# --- the update ----------------------------------------------------------------------------


def test_one_step_by_hand():
    memory = HarmMemory(regions=5, params=FieldParams())
    memory.step(harm=0.8, weights=np.array([0.5, 0.5, 0, 0, 0]))
    np.testing.assert_allclose(memory.G, [0.2, 0.2, 0, 0, 0], rtol=1e-15)
    assert not memory.H.any()
    memory.step(harm=0.8, weights=np.array([1.0, 0, 0, 0, 0]))
    np.testing.assert_allclose(memory.G, [0.58, 0.18, 0, 0, 0], rtol=1e-15)
    assert not memory.H.any()  # the scar sees the trace before the update: 0.2 < tau
    memory.step(harm=0, weights=np.zeros(5))
    np.testing.assert_allclose(memory.H, [0.05 * 0.28, 0, 0, 0, 0], rtol=1e-14)
    assert memory.G.dtype == memory.H.dtype == np.float64


@quick
@given(params, histories)
def test_the_update_equals_a_slow_obvious_one(p, history):
    memory = HarmMemory(R, p)
    for harm, weights in history:
        memory.step(harm, weights)
    G, H = obvious(p, history)
    # the absolute slack is the flush of fields below 1e-30, at most once a step
    np.testing.assert_allclose(memory.G, G, rtol=1e-13, atol=1e-28)
    np.testing.assert_allclose(memory.H, H, rtol=1e-13, atol=1e-28)


@quick
@given(params, histories)
def test_fields_stay_finite_and_nonnegative_and_psi_in_range(p, history):
    for dtype in (np.float32, np.float64):
        memory = HarmMemory(R, p, dtype=dtype)
        for harm, weights in history:
            memory.step(harm, weights)
            for field in (memory.G, memory.H):
                assert np.all(np.isfinite(field) & (field >= 0))
            psi = memory.conductance()
            assert psi.dtype == dtype
            assert np.all((psi >= dtype(p.psi_min)) & (psi <= 1))


@quick
@given(params, histories)
def test_scars_never_shrink_when_irreversible(p, history):
    memory = HarmMemory(R, FieldParams.from_dict({**p.to_dict(), "delta": 1.0}))
    before = memory.H.copy()
    for harm, weights in history:
        memory.step(harm, weights)
        assert np.all(before <= memory.H)
        before = memory.H.copy()


def test_scars_fade_by_delta_when_the_trace_is_gone():
    memory = HarmMemory(1, FieldParams(delta=0.95, lam=1.0))
    memory.step(1.0, [1.0])
    memory.step(0.0, [0.0])
    scar = float(memory.H[0])
    assert scar == pytest.approx(0.05 * 0.2)
    for _ in range(10):
        memory.step(0.0, [0.0])
    assert memory.H[0] == pytest.approx(scar * 0.95**10, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_harm_that_would_overflow_the_fields_is_refused_and_changes_nothing(dtype):
    memory = HarmMemory(2, FieldParams(alpha=1.0), batch=2, dtype=dtype)
    huge = 0.9 * float(np.finfo(dtype).max)
    memory.step([0.5, huge], [[1, 0], [0, 1]])
    before = memory.snapshot()
    with pytest.raises(ValueError, match=r"overflow with harm .*e\+30?\d; bound the harm"):
        memory.step([0.5, huge], [[1, 0], [0, 1]])
    assert_same_state(memory, before)
    assert np.isfinite(memory.G).all()
    assert memory.conductance()[1, 1] == dtype(memory.params.psi_min)
    memory.step([0.5, 0.0], [[1, 0], [0, 0]])  # and it goes on


def test_counts_that_overflow_are_refused_and_do_not_move_the_buffer_on():
    memory = HarmMemory(2, delay=2)
    for k in (10, 9, 0):
        memory.advance([k, 1])
    before = memory.snapshot()
    with pytest.raises(ValueError, match="affected must have a finite sum, got 1e\\+308"):
        memory.advance([1e308, 1e308])
    assert_same_state(memory, before)


def test_arrays_handed_out_stay_as_they_were():
    memory = used()
    state, seen = memory.snapshot(), memory.H
    kept = seen.copy()
    memory.reset()
    np.testing.assert_array_equal(seen, kept)
    zero = memory.H
    memory.restore(state)
    assert not zero.any()


def test_conductance_follows_the_formula_and_the_clip():
    p = FieldParams(w_G=0.5, w_H=1.5, psi_min=0.2)
    memory = HarmMemory(3, p)
    memory.restore({"G": [0.0, 1.0, 2.0], "H": [0.0, 0.25, 4.0], "waiting": np.zeros((0, 1, 3))})
    np.testing.assert_allclose(memory.conductance(), [1.0, math.exp(-0.875), 0.2], rtol=1e-15)


def test_fields_are_read_only_from_outside():
    for memory in (used(), used(batch=2)):
        for field in (memory.G, memory.H):
            with pytest.raises(ValueError, match="read-only"):
                field[...] = 0
    assert used(batch=2).G.shape == (2, R)
    assert used().H.shape == (R,)


def test_read_only_and_strided_input_is_taken():
    memory, plain = HarmMemory(2), HarmMemory(2)
    weights = np.array([[0.25, 9.0], [0.75, 9.0]])[:, 0]
    weights.setflags(write=False)
    memory.step(1.0, weights)
    plain.step(1.0, [0.25, 0.75])
    assert_same_state(memory, plain)


# --- batches -------------------------------------------------------------------------------


@quick
@given(params, st.lists(st.lists(counts, min_size=3, max_size=3), min_size=1, max_size=15))
def test_rows_of_a_batch_equal_single_systems(p, affected):
    for dtype in (np.float32, np.float64):
        together = HarmMemory(R, p, batch=3, delay=2, dtype=dtype)
        alone = [HarmMemory(R, p, delay=2, dtype=dtype) for _ in range(3)]
        for now in affected:
            harm = together.advance(now)
            assert harm.shape == (3,)
            for row, single in enumerate(alone):
                assert single.advance(now[row]) == harm[row]
                np.testing.assert_array_equal(together.G[row], single.G)
                np.testing.assert_array_equal(together.H[row], single.H)
                np.testing.assert_array_equal(together.conductance()[row], single.conductance())


@quick
@given(params, histories, histories)
def test_a_row_does_not_feel_the_others(p, mine, others):
    memory, alone = HarmMemory(R, p, batch=2), HarmMemory(R, p)
    for i, (harm, weights) in enumerate(mine):
        other_harm, other_weights = others[i % len(others)]
        memory.step([other_harm, harm], [other_weights, weights])
        alone.step(harm, weights)
    np.testing.assert_array_equal(memory.G[1], alone.G)
    np.testing.assert_array_equal(memory.H[1], alone.H)


def test_a_batch_of_one_keeps_its_axis():
    memory = HarmMemory(R, batch=1)
    assert memory.advance([[1, 0, 0]]).shape == (1,)
    assert memory.G.shape == (1, R)


# --- the delay buffer ----------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 1, 2, 7])
def test_harm_arrives_exactly_delay_steps_later_where_it_arose(delay):
    memory = HarmMemory(R, delay=delay)
    rounds = {0: [3, 0, 1], 3: [0, 2, 0]}  # two pulses, more than one lap of a short ring apart
    arrived = {}
    for t in range(20):
        before = memory.G.copy()
        harm = memory.advance(rounds.get(t, [0, 0, 0]))
        inflow = memory.G - 0.9 * before
        if harm:
            arrived[t] = float(harm)
            expected = 0.5 * harm * np.array(rounds[t - delay]) / sum(rounds[t - delay])
            np.testing.assert_allclose(inflow, expected, atol=1e-15)
        else:
            np.testing.assert_allclose(inflow, 0, atol=1e-15)
    assert arrived == pytest.approx({delay: 0.4, 3 + delay: 0.2})


@quick
@given(st.integers(0, 6), st.lists(counts, min_size=1, max_size=25))
def test_advance_is_a_step_with_what_was_affected_delay_steps_ago(delay, affected):
    delayed, direct = HarmMemory(R, delay=delay), HarmMemory(R)
    for t, now in enumerate(affected):
        harm = delayed.advance(now)
        then = np.array(affected[t - delay] if t >= delay else [0] * R, float)
        assert harm == pytest.approx(min(0.1 * then.sum(), 1.0), abs=1e-15)
        direct.step(harm, then / (then.sum() or 1))
        np.testing.assert_array_equal(delayed.G, direct.G)
        np.testing.assert_array_equal(delayed.H, direct.H)


def test_the_buffer_keeps_its_own_copy():
    memory = HarmMemory(2, delay=1)
    now = np.array([4.0, 0.0])
    memory.advance(now)
    now[:] = [0.0, 9.0]
    assert memory.advance([0, 0]) == pytest.approx(0.4)
    np.testing.assert_allclose(memory.G, [0.2, 0.0])


def test_step_leaves_the_buffer_alone():
    memory = HarmMemory(2, delay=1)
    memory.advance([5, 0])
    memory.step(0.0, [0.0, 0.0])
    assert memory.advance([0, 0]) == pytest.approx(0.5)


# --- reset, snapshot, restore --------------------------------------------------------------


def test_reset_forgets_fields_and_buffer():
    memory = used(steps=30)
    assert memory.H.any()
    memory.reset()
    for array in memory.snapshot().values():
        assert not array.any()
    fresh = HarmMemory(R, FieldParams(delta=0.99), delay=3)
    for now in ([5, 0, 0], [0, 0, 2], [0, 1, 0], [0, 0, 0], [0, 0, 0]):
        assert memory.advance(now) == fresh.advance(now)
    assert_same_state(memory, fresh)


@pytest.mark.parametrize("chosen", [[1], np.array([False, True, False]), np.array([1])])
def test_reset_of_some_rows_leaves_the_others(chosen):
    memory = used(batch=3, steps=30)
    before = memory.snapshot()
    memory.reset(chosen)
    after = memory.snapshot()
    for name, axis in (("G", 0), ("H", 0), ("waiting", 1)):
        assert before[name].take(1, axis).any()
        assert not after[name].take(1, axis).any()
        np.testing.assert_array_equal(
            after[name].take([0, 2], axis), before[name].take([0, 2], axis)
        )


def test_reset_of_no_rows_changes_nothing():
    memory = used(batch=3)
    before = memory.snapshot()
    for none in (np.zeros(3, bool), np.array([], int), []):
        memory.reset(none)
        assert_same_state(memory, before)


@pytest.mark.parametrize("chosen", [[3], [-1], [0.5], [True, False], "all"])
def test_reset_of_rows_that_do_not_exist_is_refused(chosen):
    memory = used(batch=3)
    before = memory.snapshot()
    with pytest.raises(ValueError, match=r"episodes|batch"):
        memory.reset(chosen)
    assert_same_state(memory, before)


def test_reset_of_rows_needs_a_batch():
    memory = used()
    before = memory.snapshot()
    with pytest.raises(ValueError, match=r"only a batch .* got \[0\]"):
        memory.reset([0])
    assert_same_state(memory, before)


@quick
@given(
    st.integers(0, 5),
    st.lists(counts, min_size=0, max_size=12),
    st.lists(counts, min_size=0, max_size=12),
    st.lists(counts, min_size=1, max_size=12),
)
def test_a_snapshot_continues_the_run_in_any_other_memory(delay, before, elsewhere, after):
    memory, other = HarmMemory(R, delay=delay), HarmMemory(R, delay=delay)
    for now in before:
        memory.advance(now)
    for now in elsewhere:  # the receiving ring stands somewhere else
        other.advance(now)
    other.restore(memory.snapshot())
    assert_same_state(memory, other)
    for now in after:
        assert memory.advance(now) == other.advance(now)
        assert_same_state(memory, other)


def test_a_snapshot_is_a_copy_and_lists_the_oldest_entry_first():
    memory = HarmMemory(2, delay=3)
    for k in range(1, 6):
        memory.advance([k, 0])
    state = memory.snapshot()
    assert state["waiting"][:, 0, 0].tolist() == [3, 4, 5]
    frozen = copy.deepcopy(state)
    memory.advance([9, 9])
    assert_same_state(state, frozen)
    memory.restore(state)
    memory.advance([0, 0])
    assert_same_state(state, frozen)  # and restoring did not adopt its arrays


def test_a_batch_round_trips_too():
    memory = used(batch=2, delay=4, steps=6, dtype=np.float32)
    other = HarmMemory(R, memory.params, batch=2, delay=4, dtype=np.float32)
    other.restore(memory.snapshot())
    for now in np.arange(30).reshape(5, 2, R):
        np.testing.assert_array_equal(memory.advance(now), other.advance(now))
    assert_same_state(memory, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"G": np.zeros(2)}, r"G must have shape \(3,\), got \(2,\); restore a snapshot"),
        ({"H": np.zeros((1, R))}, r"H must have shape \(3,\), got \(1, 3\)"),
        ({"waiting": np.zeros((2, 1, R))}, r"waiting must have shape \(3, 1, 3\), got \(2, 1, 3\)"),
        ({"G": [0, 0, math.nan]}, r"G must hold finite float64 values, got nan"),
        ({"H": [0, -0.5, 0]}, r"H must be finite and >= 0, got -0.5"),
        (
            {"waiting": np.full((3, 1, R), math.inf)},
            r"waiting must hold finite float64 values, got inf",
        ),
        ({"extra": 1}, r"a snapshot has \['G', 'H', 'waiting'\], got \['G', 'H', 'extra'"),
    ],
)
def test_a_bad_snapshot_changes_nothing(change, message):
    memory = used()
    before = memory.snapshot()
    good = {"G": np.ones(R), "H": np.ones(R), "waiting": np.ones((3, 1, R))}
    with pytest.raises(ValueError, match=message):
        memory.restore({**good, **change})
    assert_same_state(memory, before)
    with pytest.raises(ValueError, match="got"):
        memory.restore({"G": np.ones(R), "H": np.ones(R)})
    assert_same_state(memory, before)
    memory.restore(good)  # the rest of it was fine


# --- refused input -------------------------------------------------------------------------

EVEN = [0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    ("harm", "weights", "message"),
    [
        (math.nan, EVEN, r"harm must be finite and >= 0, got nan; leave such reports out"),
        (math.inf, EVEN, r"harm must be finite and >= 0, got inf"),
        (-0.25, EVEN, r"harm must be finite and >= 0, got -0.25"),
        ([0.5], EVEN, r"harm must have shape \(\), got \(1,\)"),
        (0.5, [1.0, 0.0], r"weights must have shape \(3,\), got \(2,\)"),
        (0.5, [EVEN], r"weights must have shape \(3,\), got \(1, 3\)"),
        (0.5, 1.0, r"weights must have shape \(3,\), got \(\)"),
        (0.5, [0.5, math.nan, 0.5], r"weights must be finite and >= 0, got nan"),
        (0.5, [math.inf, 0, 0], r"weights must be finite and >= 0, got inf"),
        (0.5, [1.5, -0.5, 0], r"weights must be finite and >= 0, got -0.5"),
        (0.5, [0.5, 0.25, 0], r"weights must sum to 1, got 0.75 with harm 0.5; divide them by"),
        (0.5, [1.0, 0.5, 0], r"weights must sum to 1, got 1.5 with harm 0.5"),
        (0.5, [0, 0, 0], r"sum to 1, got 0.0 with harm 0.5; .*allowed only where harm is 0"),
        (0.0, [0.5, 0, 0], r"weights must sum to 1, got 0.5 with harm 0.0"),
        (0.5, [1.00001, 0, 0], r"weights must sum to 1, got 1.00001"),
        ("much", EVEN, r"much"),
    ],
)
def test_a_bad_step_is_refused_by_value_and_changes_nothing(harm, weights, message):
    memory = used()
    before = memory.snapshot()
    with pytest.raises(ValueError, match=message):
        memory.step(harm, weights)
    assert_same_state(memory, before)


def test_one_bad_row_refuses_the_whole_batch():
    memory = used(batch=2)
    before = memory.snapshot()
    with pytest.raises(ValueError, match=r"sum to 1, got 0.5 with harm 0.25"):
        memory.step([0.5, 0.25], [EVEN, [0.5, 0, 0]])
    with pytest.raises(ValueError, match=r"harm must have shape \(2,\), got \(\)"):
        memory.step(0.5, [EVEN, EVEN])
    with pytest.raises(ValueError, match=r"weights must have shape \(2, 3\), got \(3,\)"):
        memory.step([0.5, 0.5], EVEN)
    with pytest.raises(ValueError, match=r"got 0.0 with harm 0.25"):
        memory.step([0.0, 0.25], np.zeros((2, R)))
    assert_same_state(memory, before)
    memory.step([0.0, 0.25], [[0, 0, 0], EVEN])  # each row by itself may be silent


def test_float32_shares_of_many_regions_are_accepted():
    shares = np.random.default_rng(0).random(5000).astype(np.float32)
    HarmMemory(5000).step(1.0, shares / shares.sum())


@pytest.mark.parametrize(
    ("affected", "message"),
    [
        ([1, 2], r"affected must have shape \(3,\), got \(2,\)"),
        ([[1, 2, 3]], r"affected must have shape \(3,\), got \(1, 3\)"),
        ([1, math.nan, 0], r"affected must be finite and >= 0, got nan"),
        ([1, -2, 0], r"affected must be finite and >= 0, got -2"),
        ([1, math.inf, 0], r"affected must be finite and >= 0, got inf"),
    ],
)
@pytest.mark.parametrize("delay", [0, 3])
def test_bad_affected_counts_are_refused_and_change_nothing(affected, message, delay):
    memory = used(delay=delay)
    before = memory.snapshot()
    with pytest.raises(ValueError, match=message):
        memory.advance(affected)
    assert_same_state(memory, before)
    memory.advance([0, 0, 0])
    np.testing.assert_array_equal(
        memory.snapshot()["waiting"][:-1], before["waiting"][1:]
    )  # the ring did not move on at the refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"regions": 0}, "regions must be a whole number >= 1, got 0"),
        ({"regions": 2.0}, "regions must be a whole number >= 1, got 2.0"),
        ({"regions": True}, "regions must be a whole number >= 1, got True"),
        ({"regions": 2, "batch": 0}, "batch must be a whole number >= 1, got 0"),
        ({"regions": 2, "delay": -1}, "delay must be a whole number >= 0, got -1"),
        ({"regions": 2, "delay": 0.5}, "delay must be a whole number >= 0, got 0.5"),
        ({"regions": 2, "dtype": np.int32}, "float32 or numpy.float64, got <class 'numpy.int32'>"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        HarmMemory(**arguments)


def test_numpy_integers_count_as_whole_numbers():
    memory = HarmMemory(np.int64(2), batch=np.int32(3), delay=np.uint8(1))
    assert memory.G.shape == (3, 2)
    assert memory.snapshot()["waiting"].shape == (1, 3, 2)


def test_repr_says_what_it_is():
    text = repr(HarmMemory(4, FieldParams(eta=0.25), batch=2, delay=7))
    assert "4 regions x 2" in text
    assert "delay=7" in text
    assert "eta=0.25" in text
