"""`NetworkField`: a small network that learns psi from a bounded reservoir. Experimental."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars.field import Array, ScarField, State
from rapo.scars.isotonic import isotonic
from rapo.scars.kernel import KernelField
from rapo_core.checks import UserError, whole_number
from rapo_core.deformation import conductance
from rapo_core.params import FieldParams

HELD_OUT = 4
"""Every fourth place of the reservoir is never trained on: it judges and calibrates."""
ENOUGH = 8
"""Held-out places from which predictions are calibrated."""


class NetworkField(ScarField):
    """A perceptron on random Fourier features, taught G and H of a bounded reservoir of places.

    The reservoir is a `KernelField`: there scars live, and never fall. The network learns its psi,
    a few steps of Adam an update; weight decay rises while held-out places are told worse than the
    others, and isotonic regression on them calibrates what is told. Away from the reservoir psi is
    exactly 1. Between places it may move either way as it learns. Needs torch.

    Args:
        box: (d, 2), (low, high) per dimension.
        params: constants of the fields.
        width: of a deposit, as a share of the box; features vary on that scale.
        reservoir: places to learn from, at most.
        hidden: units of each of two layers.
        iterations: steps of Adam an update; 0 freezes the network.
        seed: of the features and first weights; the same in every episode of a batch.
        batch: number of episodes, each with a network of its own.
        delay: D >= 0, for `advance`.
    """

    def __init__(
        self,
        box: Any,
        params: FieldParams | None = None,
        *,
        width: float = 0.05,
        reservoir: int = 512,
        hidden: int = 64,
        iterations: int = 4,
        seed: int = 0,
        batch: int | None = None,
        delay: int = 0,
    ) -> None:
        from rapo.scars.perceptron import Perceptron  # torch is imported only here

        super().__init__(box, params, width=width, batch=batch, delay=delay)
        self.hidden = whole_number("hidden", hidden, 1, 4096)
        self.iterations = whole_number("iterations", iterations, 0)
        self.seed = whole_number("seed", seed, 0)
        unit = [(0.0, 1.0)] * self.box.dimensions
        self._reservoir = KernelField(
            unit, self.params, width=self.width, centres=reservoir, batch=self.rows
        )
        self._net = Perceptron(self.box.dimensions, self.width, self.hidden, self.seed)
        self._learned = {
            name: np.repeat(array[None], self.rows, axis=0)
            for name, array in self._net.fresh().items()
        }
        knots = -(-self._reservoir.centres // HELD_OUT)
        self._raw, self._meant = np.zeros((self.rows, knots)), np.zeros((self.rows, knots))
        self._knots = np.zeros(self.rows, np.int64)

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Places of the reservoir in use, () or (batch,)."""
        return self._outside(self._reservoir.size)

    @property
    def numbers(self) -> int:
        """Numbers that one episode takes: reservoir, weights, their moments and the calibration."""
        learned = sum(int(array[0].size) for array in self._learned.values())
        return self._reservoir.numbers + learned + 2 * self._raw.shape[1]

    def _step(self, points: Array, shares: Array) -> None:
        self._reservoir._step(points, shares)
        for e in range(self.rows):
            at, G, H = self._reservoir.places(e)
            if len(at) == 0 or self.iterations == 0:
                continue
            target = conductance(G, H, self.params)
            held = np.arange(len(at)) % HELD_OUT == HELD_OUT - 1
            mine = {name: array[e] for name, array in self._learned.items()}
            self._net.train(mine, at, target, held, self.iterations)
            n = int(held.sum()) if held.sum() >= ENOUGH else 0
            if n:
                predicted = self._net.predict(mine, at[held])
                self._raw[e, :n], self._meant[e, :n] = isotonic(predicted, target[held])
            self._knots[e] = n

    def _psi(self, points: Array) -> Array:
        """The calibrated network where the reservoir has places, fading to exactly 1 elsewhere."""
        known = self._reservoir._coverage(points)
        psi = np.ones(points.shape[:2])
        for e in range(self.rows):
            near = known[e] > 0
            if not near.any():
                continue
            mine = {name: array[e] for name, array in self._learned.items()}
            predicted, n = self._net.predict(mine, points[e, near]), self._knots[e]
            if n:
                predicted = np.interp(predicted, self._raw[e, :n], self._meant[e, :n])
            psi[e, near] = 1 - known[e, near] * (1 - predicted)
        return np.clip(psi, self.params.psi_min, 1)

    def _fields(self, points: Array) -> tuple[Array, Array]:
        """What the network is taught, not what it tells: G and H of the reservoir."""
        return self._reservoir._fields(points)

    def _state(self) -> State:
        return {
            **self._reservoir._state(),
            **self._learned,
            "raw": self._raw,
            "meant": self._meant,
            "knots": self._knots,
        }

    def _take(self, state: State) -> None:
        if not np.all((state["knots"] >= 0) & (state["knots"] <= self._raw.shape[1])):
            raise UserError(f"knots must be in [0, {self._raw.shape[1]}], got {state['knots']}")
        self._reservoir._take({name: state[name] for name in self._reservoir._state()})
        self._learned = {name: state[name] for name in self._learned}
        self._raw, self._meant, self._knots = state["raw"], state["meant"], state["knots"]

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        self._reservoir._forget(rows)
        for name, array in self._net.fresh().items():
            self._learned[name][rows] = array
        for array in (self._raw, self._meant, self._knots):
            array[rows] = 0
