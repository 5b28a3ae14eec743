"""The throttle: inject less while harm arrives, and forget the harm soon afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Throttle:
    """A controller with a penalty `p_{t+1} = beta p_t + harm`; the larger p, the fewer injections.

    The paper asks of a transient penalty only that it shrinks by `beta` in (0, 1) without harm.
    Harm is at most 1, so p stays below `1 / (1 - beta)`.
    """

    beta: float = 0.95
    """The paper names no value; this one halves p in 14 steps, so a washout of 200 is ample."""
    levels: tuple[float, float] = (2.0, 5.0)
    """Penalties above which injection is moderate, and conservative: a tenth and a quarter of the
    largest p that is possible with beta 0.95."""

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise UserError(f"beta must be in (0, 1), got {self.beta}")
        if not 0 <= self.levels[0] <= self.levels[1]:
            raise UserError(f"levels must be >= 0 and ascend, got {self.levels}")

    def action(self, penalty: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Actions (E,) under penalties (E,): aggressive, moderate or conservative."""
        return np.searchsorted(self.levels, penalty, side="left").astype(np.int64)

    def after(
        self, penalty: npt.NDArray[np.float64], harm: npt.NDArray[Any]
    ) -> npt.NDArray[np.float64]:
        """Penalties (E,) once the harm (E,) of a step is known."""
        return np.asarray(self.beta * penalty + harm, np.float64)


class ThrottlePolicy:
    """The throttle as a policy that watches the environment.

    Only the memory is told the harm. Its trace gives the harm back:
    `sum G' = (1 - lambda) sum G + alpha harm`.
    """

    def __init__(self) -> None:
        self.throttle = Throttle()
        self._env: GraphDiffusionVectorEnv | None = None
        self._penalty = np.zeros(0)
        self._trace: npt.NDArray[np.float64] | None = None

    def watch(self, env: GraphDiffusionVectorEnv) -> None:
        """Watch the episodes of `env` from now on."""
        self._env = env

    def reset(self, episodes: int, seed: int = 0) -> None:
        """Forget the penalty; harm that the trace holds already is not charged."""
        self._penalty, self._trace = np.zeros(episodes), None

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], None]:
        """Actions (E,) once the harm of the last step is known; there is no law to tell."""
        if self._env is None:
            raise UserError("the throttle watches no environment yet; call watch(env) first")
        engine = self._env.engine
        trace = engine.G.sum(axis=1, dtype=np.float64)
        if self._trace is not None:
            left = (1 - engine.params.lam) * self._trace
            harm = np.maximum(trace - left, 0) / engine.params.alpha
            self._penalty = self.throttle.after(self._penalty, harm)
        self._trace = trace
        return self.throttle.action(self._penalty), None
