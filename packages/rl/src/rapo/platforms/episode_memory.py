"""`EpisodeMemory`: the memory of a platform's only episode, without the axis of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.deformation import conductance
from rapo_core.memory import HarmMemory

Array = npt.NDArray[Any]


class EpisodeMemory:
    """G, H and psi of the first row of a batch, read-only.

    Args:
        batch: memory of one episode.
    """

    def __init__(self, batch: HarmMemory) -> None:
        self._batch = batch
        self.regions, self.delay, self.params = batch.regions, batch.delay, batch.params

    @property
    def G(self) -> Array:
        """(R,) trace."""
        return self._batch.G[0]  # type: ignore[no-any-return]

    @property
    def H(self) -> Array:
        """(R,) scar."""
        return self._batch.H[0]  # type: ignore[no-any-return]

    def conductance(self) -> Array:
        """(R,) psi."""
        return conductance(self.G, self.H, self.params)

    def snapshot(self) -> dict[str, Array]:
        """G and H (R,), and the harm that waits (D, R), the oldest first."""
        state = self._batch.snapshot()
        return {"G": state["G"][0], "H": state["H"][0], "waiting": np.array(state["waiting"][:, 0])}
