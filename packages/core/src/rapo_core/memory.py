"""`HarmMemory`: the trace `G` and the scar `H` per region, for one system or a batch of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError, checked_state, rows_of, whole_number
from rapo_core.deformation import conductance
from rapo_core.fields import HARM_PER_NODE, harm_and_shares, step_fields
from rapo_core.params import FieldParams

Array = npt.NDArray[np.floating[Any]]

WEIGHT_TOLERANCE = 1e-6
"""How far attribution weights may miss a sum of 1: float32 shares of many regions need it."""


class HarmMemory:
    """Region-indexed fields fed by delayed, attributed harm.

    One system has fields of shape (regions,); `batch=B` keeps B of them side by side, (B, regions).
    `step` takes harm and weights as they are. With `delay=D`, `advance` takes who is affected
    *now*, and applies the harm of who was affected D steps ago: delay buffer and attribution rule.

    >>> memory = HarmMemory(regions=2)
    >>> for _ in range(20):
    ...     memory.step(harm=1.0, weights=np.array([1.0, 0.0]))
    >>> memory.conductance().round(2)
    array([0.1, 1. ])

    Raises:
        ValueError: bad input, by name and value; the fields stay as they were.
    """

    def __init__(
        self,
        regions: int,
        params: FieldParams | None = None,
        *,
        batch: int | None = None,
        delay: int = 0,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        self.regions = whole_number("regions", regions, 1)
        self.batch = None if batch is None else whole_number("batch", batch, 1)
        self.delay = whole_number("delay", delay, 0)
        self.params = FieldParams() if params is None else params
        if not isinstance(self.params, FieldParams):
            raise UserError(f"params must be FieldParams, got {params!r}")
        if dtype not in (np.float32, np.float64):
            raise UserError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
        self.dtype = dtype
        rows = self.batch or 1
        self._G = np.zeros((rows, self.regions), self.dtype)
        self._H = np.zeros((rows, self.regions), self.dtype)
        self._waiting = np.zeros((self.delay, rows, self.regions), self.dtype)
        self._slot = 0  # ring index of the oldest entry, which the next `advance` applies

    @property
    def G(self) -> Array:
        """Harm trace, >= 0; read-only, (regions,) or (batch, regions)."""
        return self._outside(self._G)

    @property
    def H(self) -> Array:
        """Scar, >= 0; read-only, (regions,) or (batch, regions)."""
        return self._outside(self._H)

    def conductance(self) -> Array:
        """`psi` per region in [psi_min, 1], shaped like `G`."""
        return conductance(self.G, self.H, self.params)

    def step(self, harm: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Apply harm that has arrived, attributed to regions.

        Args:
            harm: `c_t` >= 0; scalar, or (batch,).
            weights: `w_t(r)` >= 0 with sum 1, (regions,) or (batch, regions); may be all zero
                where harm is 0.
        """
        rows = self.batch or 1
        c = np.asarray(harm, self.dtype)
        w = np.asarray(weights, self.dtype)
        harm_shape = () if self.batch is None else (rows,)
        if c.shape != harm_shape:
            raise UserError(f"harm must have shape {harm_shape}, got {c.shape}")
        if w.shape != self.G.shape:
            raise UserError(f"weights must have shape {self.G.shape}, got {w.shape}")
        if not np.all((c >= 0) & np.isfinite(c)):
            bad = c[~((c >= 0) & np.isfinite(c))].flat[0]
            raise UserError(f"harm must be finite and >= 0, got {bad}; leave such reports out")
        if not np.all((w >= 0) & np.isfinite(w)):
            bad = w[~((w >= 0) & np.isfinite(w))].flat[0]
            raise UserError(f"weights must be finite and >= 0, got {bad}")
        c, w = c.reshape(rows), w.reshape(rows, self.regions)
        total = w.sum(axis=1, dtype=np.float64)
        wrong = (np.abs(total - 1) > WEIGHT_TOLERANCE) & ~((total == 0) & (c == 0))
        if wrong.any():
            raise UserError(
                f"weights must sum to 1, got {total[wrong][0]} with harm {c[wrong][0]}; "
                "divide them by their sum (all zero is allowed only where harm is 0)"
            )
        self._apply(c, w)

    def advance(self, affected: npt.ArrayLike) -> Array:
        """One step of delayed harm: remember who is affected now, apply what is `delay` steps old.

        Args:
            affected: affected members per region now (>= 0), shaped like `G`.

        Returns:
            The harm `c_t = min(0.1 k, 1)` that arrived, with k the number affected `delay` steps
            ago; () or (batch,). Its attribution is each region's share of those k.
        """
        rows = self.batch or 1
        now = np.asarray(affected, self.dtype)
        if now.shape != self.G.shape:
            raise UserError(f"affected must have shape {self.G.shape}, got {now.shape}")
        least, most = now.min(), now.max()  # NaN if any is: one look, and no array of flags
        if not (least >= 0 and most < np.inf):
            bad = now[~((now >= 0) & np.isfinite(now))].flat[0]
            raise UserError(f"affected must be finite and >= 0, got {bad}")
        now = now.reshape(rows, self.regions)
        if most > np.finfo(self.dtype).max / self.regions:
            raise UserError(f"affected must have a finite sum, got {most} in a region")
        then = self._waiting[self._slot] if self.delay else now
        harm, weights = np.empty(rows, self.dtype), np.empty_like(then)
        harm_and_shares(then, self.dtype(HARM_PER_NODE), harm, weights)
        self._apply(harm, weights)
        if self.delay:
            self._waiting[self._slot] = now
            self._slot = (self._slot + 1) % self.delay
        return harm if self.batch is not None else harm[0]

    def reset(self, episodes: npt.ArrayLike | None = None) -> None:
        """Forget everything, or only the given rows of a batch (indices or a mask)."""
        if self.batch is None and episodes is not None:
            raise UserError(f"only a batch has episodes to choose from, got {episodes!r}")
        rows = rows_of(episodes, self.batch or 1)
        G, H = self._G.copy(), self._H.copy()  # arrays handed out before stay as they were
        G[rows] = 0
        H[rows] = 0
        self._G, self._H = G, H
        self._waiting[:, rows] = 0

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as a plain dict of arrays; `waiting[0]` is the oldest entry."""
        return {
            "G": self.G.copy(),
            "H": self.H.copy(),
            "waiting": np.roll(self._waiting, -self._slot, axis=0),
        }

    def restore(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Take over a `snapshot`; one of another shape or with bad values changes nothing."""
        arrays = checked_state(state, self.snapshot())
        for name, array in arrays.items():
            if not np.all(array >= 0):
                raise UserError(f"{name} must be finite and >= 0, got {array.min()}")
        self._G = np.array(arrays["G"].reshape(self._G.shape))
        self._H = np.array(arrays["H"].reshape(self._H.shape))
        self._waiting[...] = arrays["waiting"]
        self._slot = 0

    def __repr__(self) -> str:
        size = f"{self.regions} regions" + (f" x {self.batch}" if self.batch else "")
        return f"HarmMemory({size}, delay={self.delay}, {self.params})"

    def _apply(self, harm: Array, weights: Array) -> None:
        rates = (self.dtype(rate) for rate in self.params.rates)
        G, H = np.empty_like(self._G), np.empty_like(self._H)
        step_fields(self._G, self._H, harm, weights, *rates, G, H)
        if not (G.max() < np.inf and H.max() < np.inf):  # NaN is not, either
            raise UserError(f"the fields overflow with harm {harm.max()}; bound the harm of a step")
        self._G, self._H = G, H

    def _outside(self, field: Array) -> Array:
        view = field[0] if self.batch is None else field[:]
        view.setflags(write=False)
        return view
