"""`ReplayEnv`: what an environment must offer so that RSD can run on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.rsd.stage import chooses_stage
from rapo_core.checks import UserError

REQUIRED = ("stimuli", "activate", "deactivate", "reset_observable", "reset", "step")
"""Without these there is no RSD."""
OPTIONAL = ("snapshot", "restore", "memory_mask", "set_deformation")
"""With these `check` can look deeper, ASD can be told, and off@rep can be run."""


@runtime_checkable
class ReplayEnv(Protocol):
    """A Gymnasium environment (one episode) whose memory outlives its observable state.

    An RSD episode calls `reset(seed=...)` once, which forgets everything. Exposure is
    `activate(z)` and `reset_observable(seed)`; Decay is `deactivate()`; Replay is again
    `activate(z)` and `reset_observable(seed)`, with the memory of harm as Decay left it.

    Every `info` that `step` returns has `reach` and `sensitive_mass` (numbers >= 0), and may have
    `odds_ratio`, `scar_mass`, and `entry_nominal` with `entry_deformed` (harmful mass of the next
    step under `P0` and as sampled); what is missing is reported as not available.
    """

    stimuli: int
    """Number of stimuli, numbered from 1."""
    action_space: gymnasium.Space[Any]
    observation_space: gymnasium.Space[Any]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Forget everything, memory included."""
        ...

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; `terminated` and `truncated` are ignored while a phase lasts."""
        ...

    def activate(self, stimulus: int) -> None:
        """Switch a stimulus on (1-based)."""
        ...

    def deactivate(self) -> None:
        """Switch the stimulus off; nothing else changes."""
        ...

    def reset_observable(self, seed: int | None = None) -> Any:
        """Bring the observable state and its clock to `x*`, keep the memory; the observation.

        `seed` restarts the draws: two calls with one seed must see the same randomness.
        """
        ...


class ReplayEnvExtras(Protocol):
    """What else an environment may offer."""

    memory_mask: npt.NDArray[np.bool_] | None
    """Which entries of a flat observation show the memory on purpose; None for none. Without the
    attribute nobody knows, and ASD is not available."""
    harm_memory: Any
    """An object whose `H`, (R,) or (1, R), holds the scars by region: results record these scars,
    and `check` looks whether `reset_observable` keeps them. An attribute `memory` is your own."""

    def snapshot(self) -> Mapping[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        ...

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Take over a `snapshot`."""
        ...

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel, or from `P0`; fields keep evolving."""
        ...


HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Gymnasium's own wrappers that change nothing RSD looks at."""


def protocol_layer(env: Any) -> Any:
    """The outermost layer of a wrapped environment that offers the protocol.

    RSD talks to that layer directly, so a wrapper outside it that changes observations, actions or
    rewards would be passed over: such a one is refused.
    """
    outside: list[str] = []
    layer = env
    while not (all(hasattr(layer, name) for name in REQUIRED) or chooses_stage(layer)):
        inner = getattr(layer, "env", None)
        if inner is None:
            missing = [name for name in REQUIRED if not hasattr(layer, name)]
            raise UserError(
                f"{type(layer).__name__} lacks {missing} of the ReplayEnv protocol; add them, wrap "
                "it with rapo.rsd.TabularReplayEnv or rapo.rsd.CandidateReplayEnv, and see "
                "rapo.rsd.check(env)"
            )
        outside.append(type(layer).__name__)
        layer = inner
    changing = [name for name in outside if name not in HARMLESS]
    if changing:
        raise UserError(
            f"the wrappers {changing} stand outside the ReplayEnv protocol and would be passed "
            "over; remove them, or give the outermost one the protocol's methods"
        )
    space = getattr(layer, "observation_space", None)
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        raise UserError(f"observations must be arrays, got {space}; flatten them")
    return layer
