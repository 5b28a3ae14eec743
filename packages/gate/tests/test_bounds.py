"""Every answer is a law within its bounds, whatever comes in.

`python packages/gate/tests/test_bounds.py 1000000` tries a million cases.
"""

from __future__ import annotations

import sys
import time
from math import fsum

import numpy as np
import numpy.typing as npt
import pytest

from rapo_gate.decide import answer

Real = npt.NDArray[np.float64]

EXTREMES = (0.0, 5e-324, 1e-315, 1e-308, 1e-200, 1e-17, 1e-9)


def worst(p: Real, q: Real, psi_min: float) -> tuple[float, float, float]:
    """Largest and smallest q/p where floats have all their digits, and the exact sum of q."""
    normal = p > 1e-290
    assert np.all((q[~normal] >= 0) & (q[~normal] <= 1e-290 / psi_min))
    ratio = q[normal] / (p[normal] / fsum(p))
    return float(ratio.max()), float(ratio.min()), fsum(q)


def laws(rng: np.random.Generator, size: int) -> Real:
    """A distribution of one of many shapes, zeros and denormals among them."""
    kind = rng.integers(6)
    if kind == 0:
        p = rng.dirichlet(np.full(size, 0.05))
    elif kind == 1:
        p = np.full(size, 1 / size)
    elif kind == 2:
        p = rng.random(size) ** 50 + 1e-300
    elif kind == 3:
        p = np.where(rng.random(size) < 0.5, rng.choice(EXTREMES, size), rng.random(size))
    elif kind == 4:
        p = np.eye(1, size, int(rng.integers(size)))[0]
    else:
        p = rng.choice(EXTREMES, size)
    if not p.sum() > 1e-290:
        p[rng.integers(size)] = 1.0
    p = p / p.sum()
    return np.asarray(
        p * (1 + rng.choice([0.0, 9e-7, -9e-7]))
    )  # sums within the tolerance are taken


def conductances(rng: np.random.Generator, size: int, psi_min: float) -> Real:
    """Values in [psi_min, 1]: all equal, at both ends, or anything."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(size, psi_min ** rng.random())
    if kind == 1:
        return np.where(rng.random(size) < 0.5, psi_min, 1.0)
    if kind == 2:
        return np.full(size, psi_min)
    return np.asarray(np.maximum(psi_min, psi_min ** rng.random(size)))


def run_bounds(cases: int, seed: int = 0) -> dict[str, float]:
    """Check answers to `cases` requests; returns how far the worst of them went."""
    rng = np.random.default_rng(seed)
    seen = {"sum": 0.0, "ratio of bound": 0.0}
    for i in range(cases):
        size = int(rng.integers(1, 12)) if i % 100 else int(rng.integers(1, 2000))
        psi_min = float(rng.choice([1.0, 0.5, 0.1, 1e-3, 1e-9]))
        p, psi = laws(rng, size), conductances(rng, size, psi_min)
        enforced = bool(rng.random() < 0.9)
        decision, passed = answer(p, psi, enforced, psi_min, "d", 1)
        high, low, total = worst(p, decision.q, psi_min)
        told = f"case {i} of seed {seed}"
        assert abs(total - 1) <= 1e-12, f"{told}: sum {total!r}"
        assert low >= psi_min * (1 - 1e-12), f"{told}: ratio {low!r}"
        assert high <= (1 + 1e-12) / psi_min, f"{told}: ratio {high!r}"
        assert psi_min * (1 - 1e-12) <= passed <= 1 + 1e-12, f"{told}: Z {passed!r}"
        seen["sum"] = max(seen["sum"], abs(total - 1))
        seen["ratio of bound"] = max(seen["ratio of bound"], psi_min / low, high * psi_min)
    return seen


@pytest.mark.parametrize("seed", range(2))
def test_bounds(seed: int) -> None:
    run_bounds(3_000, seed)


@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 99_999, 100_000])
@pytest.mark.parametrize("value", [1.0, 0.1])
def test_equal_candidates(size: int, value: float) -> None:
    """A plain sum of 100,000 equal numbers misses 1 by 2e-12; NumPy's own check would see it."""
    p = np.full(size, 1 / size)
    decision, _ = answer(p, np.full(size, value), True, 0.1, "d", 1)
    assert abs(fsum(decision.q) - 1) <= 1e-12
    assert abs(decision.q.sum() - 1) <= 1e-12
    np.testing.assert_allclose(decision.q, p, rtol=1e-12)


def test_denormals_are_served() -> None:
    """Where floats have few digits left, rounding is no reason to refuse."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        tiny = rng.integers(1, 2**40, size=20) * 5e-324
        p = np.concatenate(([1 + float(rng.choice([9e-7, -9e-7]))], tiny))
        psi = np.concatenate(([1.0], np.full(20, 0.3)))
        decision, _ = answer(p, psi, True, 0.3, "d", 1)
        assert (decision.q >= 0).all()


def test_one_candidate_is_served_whatever_its_scar() -> None:
    decision, passed = answer(np.ones(1), np.array([0.1]), True, 0.1, "d", 1)
    assert decision.q.tolist() == [1.0]
    assert passed == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        ([0.5, np.nan], "finite"), ([1.5, -0.5], ">= 0"), ([np.inf, 0.0], "finite"),
        ([0.0, 0.0], "all zeros"), ([0.5, 0.6], "divide it by its sum"),
        ([5e-324, 0.0], "sum to 1"),
    ],
)  # fmt: skip
def test_what_is_no_law_is_refused(p: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        answer(np.array(p), np.ones(2), True, 0.1, "d", 1)


def test_an_answer_outside_its_bounds_is_not_served() -> None:
    with pytest.raises(RuntimeError, match="bounds"):
        answer(np.array([0.5, 0.5]), np.array([1.0, 0.01]), True, 0.1, "d", 1)


def test_the_callers_array_stays_the_callers() -> None:
    p = np.array([0.5, 0.5])
    decision, _ = answer(p, np.ones(2), False, 0.1, "d", 1)
    p[0] = 7.0
    assert decision.q.tolist() == [0.5, 0.5]


def test_answers_can_be_compared_and_kept_in_sets() -> None:
    one, other = (answer(np.array([0.5, 0.5]), np.ones(2), True, 0.1, "d", 1)[0] for _ in "ab")
    same = one
    assert (one == same, one == other, one != same, one != other) == (True, False, False, True)
    assert len({one, other, same}) == 2


@pytest.mark.parametrize("at", [0, 130, 1001])
@pytest.mark.parametrize("bad", [np.nan, -0.1, np.inf])
def test_one_bad_probability_among_many_is_refused(at: int, bad: float) -> None:
    p = np.full(1002, 1 / 1002)
    p[at] = bad
    with pytest.raises(ValueError, match="finite and >= 0"):
        answer(p, np.ones(1002), True, 0.1, "d", 1)


@pytest.mark.parametrize("at", [0, 130, 1001])
def test_one_candidate_among_many_outside_its_bounds_stops_the_answer(at: int) -> None:
    psi = np.ones(1002)
    psi[at] = 0.01
    with pytest.raises(RuntimeError, match="bounds"):
        answer(np.full(1002, 1 / 1002), psi, True, 0.1, "d", 1)
    with pytest.raises(RuntimeError, match="bounds"):
        answer(np.full(1002, 1 / 1002), psi, False, 0.1, "d", 1)


if __name__ == "__main__":
    begun = time.perf_counter()
    found = run_bounds(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(f"{sys.argv[1]} cases hold: {found}, {time.perf_counter() - begun:.0f} s")
