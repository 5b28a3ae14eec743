"""`Agent`: a trained policy, frozen, with its normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rapo.agents.model import Model
from rapo.agents.normaliser import Normaliser
from rapo_core.action_probs import sample
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


class Agent:
    """A trained policy that tells its action probabilities and learns nothing more.

    `reset` clears the memory of a recurrent policy.

    Args:
        model: the networks.
        normaliser: the normalisation of observations.
    """

    def __init__(self, model: Model, normaliser: Normaliser) -> None:
        self.model, self.normaliser = model, normaliser
        self._memory = model.start(0)

    def reset(self, episodes: int, seed: int = 0) -> None:
        """Forget everything; `seed` is not used, actions are drawn with the caller's draws."""
        self._memory = self.model.start(episodes)

    @torch.no_grad()
    def law(self, x: Float) -> npt.NDArray[np.float64]:
        """Action probabilities (E, A) for observations (E, d); a recurrent memory moves on."""
        if x.ndim != 2 or x.shape[1] != self.model.inputs:
            raise UserError(
                f"this policy sees observations of {self.model.inputs} entries, got shape {x.shape}"
            )
        if len(self._memory) != len(x):
            self.reset(len(x))
        seen = torch.from_numpy(self.normaliser(x.astype(np.float32, copy=False)))
        logits, self._memory, _ = self.model.act(seen, self._memory)
        return np.asarray(torch.softmax(logits.double(), dim=1).numpy())

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], Float]:
        """Actions (E,) by the draws (E,) in [0, 1), and the probabilities (E, A) they follow."""
        law = self.law(x)
        return sample(law, draws), law
