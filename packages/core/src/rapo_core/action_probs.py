"""Action laws: distributions over the actions that a policy tells, checked and sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


def sample(law: Float, draws: Float) -> npt.NDArray[np.int64]:
    """Actions by inverting the law's distribution function; law (E, A), draws (E,) in [0, 1)."""
    edges = np.cumsum(np.asarray(law, np.float64), axis=1)
    chosen = (draws[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return np.asarray(np.minimum(chosen, law.shape[1] - 1))


def checked_law(law: Float, episodes: int) -> Float:
    """(E, A) a distribution in every row; whatever else a policy tells is refused."""
    fits = law.ndim == 2 and len(law) == episodes
    if not fits or not np.all(law >= 0) or not np.allclose(law.sum(axis=1), 1, atol=1e-5):
        first = law.reshape(-1)[:6].tolist()
        raise UserError(
            f"a policy's law must be {episodes} distributions over the actions, got shape "
            f"{law.shape}: {first}"
        )
    return law
