"""`View`: what decisions are made from. It never changes; a new one replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rapo.core.deformation import SUM_TOLERANCE, reweight_into
from rapo.core.jit import kernel
from rapo.gate.events import DecisionBody
from rapo.gate.names import Names
from rapo.gate.state import State

_ROUNDING = 1e-12
_SMALLEST = 1e-300
"""Below this floats lose digits, and a ratio of two of them says nothing."""
_BLOCK = 128


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The gate's answer. n candidates, in the order of the request."""

    q: npt.NDArray[np.float64]
    """The distribution to serve, (n,), summing to 1; `p` itself in shadow mode."""
    psi: npt.NDArray[np.float64]
    """Conductance of each candidate's region, (n,), whatever the mode."""
    decision_id: str
    revision: int
    """Of the state that it was made from; never falls."""
    mode: str
    """`shadow`, or `enforce` if `q` is the gated law."""


@kernel
def _bounded(p: Any, q: Any, total: float, psi_min: float) -> bool:
    """Whether `q` is a law whose every probability lies in [psi_min p, p / psi_min]."""
    whole = 0.0
    for start in range(0, p.size, _BLOCK):
        block = 0.0
        for i in range(start, min(start + _BLOCK, p.size)):
            before = p[i] / total
            low = psi_min * before * (1 - _ROUNDING) - _SMALLEST
            high = before / psi_min * (1 + _ROUNDING) + _SMALLEST
            if not low <= q[i] <= high:
                return False
            block += q[i]
        whole += block
    return abs(whole - 1) <= _ROUNDING


class View:
    """psi of every region, the mode, and the revision of both."""

    def __init__(self, state: State) -> None:
        self.revision, self.tick = state.revision, state.tick
        self.mode, self.percent = state.mode, state.percent
        self.psi_min = state.config.params.psi_min
        self.tick_seconds = state.config.tick_seconds
        self._regions, self._psi = state.regions, state.psi()

    def enforces(self, decision_id: str) -> bool:
        """Whether a decision is gated for real; the same decision is, on every replica."""
        if self.mode != "enforce":
            return False
        return crc32(decision_id.encode()) % 10_000 < self.percent * 100

    def psi(self, regions: npt.NDArray[np.int64] | Names) -> npt.NDArray[np.float64]:
        """Conductance of each candidate, 1 for a region that is not known."""
        return self._regions.reals(regions, self._psi)

    def decide(
        self,
        regions: npt.NDArray[np.int64] | Names,
        p: npt.NDArray[np.float64],
        tick: int,
        decision_id: str,
        stimulus: str | None,
    ) -> tuple[Decision, DecisionBody]:
        """The answer to a request, and what the log keeps of it.

        Raises:
            ValueError: `p` is not a distribution over the regions.
        """
        psi = self.psi(regions)
        enforced = self.enforces(decision_id)
        decision, passed = answer(p, psi, enforced, self.psi_min, decision_id, self.revision)
        body = DecisionBody(regions, p, psi, passed, tick, self.revision, enforced, stimulus)
        return decision, body


def answer(
    p: npt.NDArray[np.float64],
    psi: npt.NDArray[np.float64],
    enforced: bool,
    psi_min: float,
    decision_id: str,
    revision: int,
) -> tuple[Decision, float]:
    """The decision that `p` and `psi` give, and the mass `Z` that passes."""
    q = np.empty(p.size)
    total, passed = reweight_into(p, psi, q)
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise ValueError(_why_not(p, total))
    if not _bounded(p, q, total, psi_min):
        raise RuntimeError(
            f"decision {decision_id} would leave its bounds with psi_min = {psi_min}; not served"
        )
    if not enforced:
        q = p / total  # a copy also where nothing changes: p is the caller's
    mode = "enforce" if enforced else "shadow"
    return Decision(q, psi, decision_id, revision, mode), passed


def _why_not(p: npt.NDArray[np.float64], total: float) -> str:
    bad = p[~(np.isfinite(p) & (p >= 0))]
    if bad.size:
        return f"p must be finite and >= 0, got {bad[0]}"
    if not p.any():
        return "p must sum to 1, got all zeros"
    return f"p must sum to 1, got {total!r}; divide it by its sum"
