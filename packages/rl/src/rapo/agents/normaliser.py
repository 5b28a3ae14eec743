"""`Normaliser`: observations to zero mean and unit variance, frozen together with the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError

LIMIT = 10.0
"""Normalised observations are cut off here."""
SMALLEST_STD = 0.01
"""Entries that hardly move in training (fields of regions that never scar) are not blown up."""


class Normaliser:
    """Running mean and variance of observations, merged in once per rollout.

    Args:
        size: number of entries of an observation, d.
    """

    def __init__(self, size: int) -> None:
        self.count = 0.0
        self.mean = np.zeros(size)
        self.square = np.zeros(size)  # sum of squared deviations
        self._set_scale()

    def __call__(self, x: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
        """Normalised observations, float32, of the shape of `x` (..., d)."""
        out = (x - self._shift) * self._scale
        return np.clip(out, -LIMIT, LIMIT, out=out)

    def update(
        self, x: npt.NDArray[np.floating[Any]]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Merge a batch (B, d) in (Chan's parallel formula).

        Returns:
            (d,) ratio and (d,) move: what was normalised as `ratio x + move` is now x. The ratio of
            an entry that had hardly moved is 1: no one has learned how much it matters.
        """
        shift, scale = self._shift, self._scale
        known = scale < 1 / SMALLEST_STD
        count = len(x)
        mean = x.mean(axis=0, dtype=np.float64)
        square = np.square(x - mean).sum(axis=0, dtype=np.float64)
        total = self.count + count
        gap = mean - self.mean
        self.mean = self.mean + gap * (count / total)
        self.square = self.square + square + np.square(gap) * (self.count * count / total)
        self.count = total
        self._set_scale()
        ratio = np.where(known, scale / self._scale, 1).astype(np.float32)
        return ratio, (self._shift - shift) * self._scale * ratio

    def state(self) -> dict[str, Any]:
        """What `load` takes."""
        return {"count": self.count, "mean": self.mean.copy(), "square": self.square.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a `state`."""
        if set(state) != {"count", "mean", "square"}:
            raise UserError(f"a normaliser's state has count, mean and square, got {list(state)}")
        self.count = float(state["count"])
        self.mean = np.asarray(state["mean"], np.float64)
        self.square = np.asarray(state["square"], np.float64)
        self._set_scale()

    def _set_scale(self) -> None:
        std = np.sqrt(self.square / self.count) if self.count else np.ones_like(self.mean)
        self._shift = self.mean.astype(np.float32)
        self._scale = (1 / np.maximum(std, SMALLEST_STD)).astype(np.float32)
