"""What is done about cascades without a memory of places: hold back while harm is coming in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.paper.throttle import Throttle
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


class ThrottlePolicy:
    """The controller of the paper's motivation as a policy: a transient penalty, fewer seeds.

    Harm is told to nobody but the memory, and its trace gives it back:
    `sum G' = (1 - lambda) sum G + alpha harm`.
    """

    def __init__(self) -> None:
        self.throttle = Throttle()
        self._env: GraphDiffusionVectorEnv | None = None
        self._penalty = np.zeros(0)
        self._trace: npt.NDArray[np.float64] | None = None

    def watch(self, env: GraphDiffusionVectorEnv) -> None:
        """Look at the episodes of `env` from now on."""
        self._env = env

    def reset(self, episodes: int, seed: int = 0) -> None:
        """Forget the penalty; what is in the environment's trace by now is no news."""
        self._penalty, self._trace = np.zeros(episodes), None

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], None]:
        """Actions (E,) once the harm of the last step is known."""
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
