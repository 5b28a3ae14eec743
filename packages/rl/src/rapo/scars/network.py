"""`NetworkField`: a small network that learns psi from a bounded reservoir. Experimental."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from rapo.scars.field import Array, ScarField, State
from rapo.scars.kernel import KernelField
from rapo_core.checks import UserError, whole_number
from rapo_core.deformation import conductance
from rapo_core.params import FieldParams

HELD_OUT = 4
"""The network is not trained on every fourth place of the reservoir: these places are held out to
steer the weight decay and to calibrate predictions."""
ENOUGH = 8
"""Predictions are calibrated if at least so many places are held out."""


class NetworkField(ScarField):
    """A perceptron on random Fourier features that learns psi from a bounded reservoir of places.

    The reservoir is a `KernelField`: scars live there and never fall. The network takes a few steps
    of Adam towards the reservoir's psi at every update. Its weight decay rises while the error of
    held-out places is larger than that of the others, and isotonic regression on the held-out
    places calibrates its predictions. Away from the reservoir psi is exactly 1. Between places psi
    may rise and fall as the network learns. Needs torch.

    Args:
        box: (d, 2), (low, high) per dimension.
        params: constants of the fields.
        width: of a deposit, as a share of the box; features vary on this scale.
        reservoir: places to learn from, at most.
        hidden: units of each of two layers.
        iterations: steps of Adam an update; 0 freezes the network.
        seed: of the features and first weights, which all episodes of a batch share.
        options: of `ScarField`; every episode of a batch has a network of its own.
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
        **options: Any,
    ) -> None:
        from rapo.scars.perceptron import Perceptron  # torch is imported only here

        super().__init__(box, params, width=width, **options)
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
        """How many numbers one episode takes: reservoir, weights, moments of Adam, calibration."""
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
                self._raw[e, :n], self._meant[e, :n] = calibration(predicted, target[held])
            self._knots[e] = n

    def _psi(self, points: Array) -> Array:
        """The calibrated network where the reservoir has places, fading to exactly 1 elsewhere."""
        coverage = self._reservoir._coverage(points)
        psi = np.ones(points.shape[:2])
        for e in range(self.rows):
            near = coverage[e] > 0
            if not near.any():
                continue
            mine = {name: array[e] for name, array in self._learned.items()}
            predicted, n = self._net.predict(mine, points[e, near]), self._knots[e]
            if n:
                predicted = np.interp(predicted, self._raw[e, :n], self._meant[e, :n])
            psi[e, near] = 1 - coverage[e, near] * (1 - predicted)
        return np.clip(psi, self.params.psi_min, 1)

    def _fields(self, points: Array) -> tuple[Array, Array]:
        """G and H of the reservoir, from which the network learns; the network itself has none."""
        return self._reservoir._fields(points)

    def _state(self) -> State:
        fitted = {"raw": self._raw, "meant": self._meant, "knots": self._knots}
        return {**self._reservoir._state(), **self._learned, **fitted}

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


def calibration(predicted: Array, target: Array) -> tuple[Array, Array]:
    """Knots of the non-decreasing least-squares fit of target on predicted, (n,) each, sorted.

    Points with the same prediction share one fitted value.

    >>> calibration(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0]))[1]
    array([0. , 1.5, 1.5, 3. ])
    """
    _, group = np.unique(predicted, return_inverse=True)
    weights = np.bincount(group).astype(np.float64)
    fitted = isotonic_regression(np.bincount(group, target) / weights, weights=weights).x
    return np.sort(predicted), fitted[np.sort(group)]
