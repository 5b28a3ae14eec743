"""What RSD runs on: the protocol of an environment, the stage of its episodes, and the adapter.

- `ReplayEnv` is the protocol that an environment of one episode offers.
- A `Stage` is some RSD episodes side by side; an environment that has `stage(...)` makes its own.
- `EnvAdapter` finds out which of the two an environment offers and makes its stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.engine import Activity
from rapo.cascade.setting import Setting
from rapo.envs.protocol_stage import ProtocolStage
from rapo_core.checks import UserError

Array = npt.NDArray[Any]
STAGE_ARGUMENTS = ("seed", "stimuli", "horizons", "coupled", "deformed")
"""Arguments of an environment's `stage(episodes, ...)`, beside the number of episodes."""
REQUIRED = ("stimuli", "activate", "deactivate", "reset_observable", "reset", "step")
"""Members without which RSD cannot run."""
OPTIONAL = ("snapshot", "restore", "memory_mask", "set_deformation")
"""Members with which `check` looks deeper, ASD is known, and off@rep can be run."""
HARMLESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Wrappers of Gymnasium that change nothing that RSD looks at."""


@runtime_checkable
class ReplayEnv(Protocol):
    """A Gymnasium environment (one episode) whose memory outlives its observable state.

    An RSD episode calls `reset(seed=...)` once, which forgets everything. Exposure is
    `activate(z)` and `reset_observable(seed)`; Decay is `deactivate()`; Replay is again
    `activate(z)` and `reset_observable(seed)`, with the memory of harm as Decay left it.

    Every `info` that `step` returns has `reach` and `sensitive_mass` (numbers >= 0), and may have
    `odds_ratio`, `scar_mass`, and `entry_nominal` with `entry_deformed` (harmful mass of the next
    step under `P0` and as sampled); a number that is missing is reported as not available.
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
    """Members that an environment may also offer."""

    memory_mask: npt.NDArray[np.bool_] | None
    """Which entries of a flat observation show the memory on purpose; None if none does. Without
    this attribute ASD is not available."""
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


class Stage(Protocol):
    """`episodes` RSD episodes side by side, as `run_phases` drives them.

    Everything but `stimulus` is known when the stage is made, before `begin`. The runner needs
    `memory_mask` then: the mask decides what is written down from the first step on.
    """

    episodes: int
    seed: int
    """Seed of the first episode."""
    tags: tuple[int, int, int]
    """A number per phase; phases with equal numbers share their draws."""
    memory_mask: npt.NDArray[np.bool_] | None
    """(d,) which entries of an observation show the memory on purpose; None if none does."""
    knows_memory: bool
    """Whether the environment declares which entries show its memory (perhaps none)."""
    watched: Any
    """The environment that a `Watcher` reads, with all its episodes on this stage; or None."""
    whole_phases: bool
    """Whether `run` gives what as many calls of `step` give."""
    graph: Any
    """The graph whose active nodes are recorded; None without a graph."""

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) stimuli of the running episodes."""
        ...

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Enter a phase and return observations (E, d); Replay may take other stimuli, (E,)."""
        ...

    def save_state(self) -> Any:
        """Return everything that evolves, for `restore_state`; None without a snapshot."""
        ...

    def restore_state(self, state: Any) -> None:
        """Go back to a state that `save_state` returned."""
        ...

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """Take a step; return observations (E, d), rewards (E,), and info of (E,) each."""
        ...

    def draws(self, step: int) -> Array:
        """(E,) uniform draws for the actions of a step of the present phase."""
        ...

    def finish(self) -> None:
        """Undo what the stage changed in the environment."""
        ...

    def run(self, action: int, steps: int) -> tuple[Array, dict[str, Array]]:
        """Take one action in many steps; return rewards (steps, E), and info of (steps, E) each."""
        ...

    def record_activity(self) -> None:
        """Record from now on which nodes of the graph are active."""
        ...

    def read_activity(self) -> Activity | None:
        """Return the record since `record_activity`, and end it; None without a graph."""
        ...

    def scars(self) -> Array | None:
        """(E, R) scars, or None if the environment does not show them."""
        ...


class Staged(Protocol):
    """An environment that makes the stage of its episodes; ours and all platforms do.

    It also has `stimuli` (their number), `horizons` (steps of the phases where the caller asks for
    no others), an action space (`single_action_space` or `action_space`) and `describe()` for the
    manifest.
    """

    def stage(
        self,
        episodes: int,
        *,
        seed: int,
        stimuli: npt.NDArray[np.int64] | None,
        horizons: tuple[int, int, int],
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> Stage:
        """Make a stage of the first of `episodes`, or of all; the rest is asked for again.

        Args:
            episodes: how many are left to run.
            seed: of the first.
            stimuli: (episodes,) 1-based, or None to draw them.
            horizons: steps of the phases.
            coupled: whether Replay reuses Exposure's draws.
            deformed: in which phases the kernel may be deformed; none: a `P0` reference run.
        """
        ...


def makes_stage(env: Any) -> bool:
    """Whether an environment has a `stage` that takes the arguments of `Staged.stage`.

    Other environments may use the name for something else, so the arguments are looked at. The
    method must be one of the environment's class: a proxy that passes on every attribute would
    pass on the stage of the environment behind it, and RSD would miss the proxy's own methods.
    """
    if not callable(getattr(type(env), "stage", None)):
        return False
    try:
        taken = signature(env.stage).parameters
    except (TypeError, ValueError):  # the method has no signature
        return False
    rest = any(p.kind is Parameter.VAR_KEYWORD for p in taken.values())
    return bool(taken) and (rest or all(name in taken for name in STAGE_ARGUMENTS))


def protocol_layer(env: Any) -> Any:
    """Return the outermost layer of a wrapped environment that offers a stage or the protocol.

    RSD calls that layer directly and would miss what a wrapper outside it changes in observations,
    actions or rewards. Such a wrapper is refused.
    """
    outside: list[str] = []
    layer = env
    while not (all(hasattr(layer, name) for name in REQUIRED) or makes_stage(layer)):
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


@dataclass(frozen=True)
class EnvAdapter:
    """An environment, and how its episodes run: on a stage of its own, or by the protocol."""

    base: Any
    """The layer of the environment that offers a stage or the protocol."""
    makes_stage: bool
    """Whether that layer makes its own stage."""

    @classmethod
    def of(cls, env: Any) -> EnvAdapter:
        """Look through harmless wrappers; an environment that RSD cannot run is an error."""
        base = protocol_layer(env)
        return cls(base, makes_stage(base))

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Action space of one episode."""
        space: gymnasium.Space[Any] | None = getattr(self.base, "single_action_space", None)
        return self.base.action_space if space is None else space

    @property
    def horizons(self) -> tuple[int, int, int]:
        """Steps of the phases where the caller asks for no others."""
        return self.base.horizons if self.makes_stage else Setting.default().horizons

    @property
    def restores(self) -> bool:
        """Whether episodes can be brought back to the start of Replay."""
        return all(hasattr(self.base, name) for name in ("snapshot", "restore"))

    def need_switch(self, options: Sequence[str]) -> None:
        """Refuse options that switch the deformation off where the environment has no switch."""
        if options and not (self.makes_stage or hasattr(self.base, "set_deformation")):
            kind = type(self.base).__name__
            raise UserError(f"{options[0]} needs {kind}.set_deformation(on), see ReplayEnv")

    def describe(self, graph: Any) -> dict[str, Any]:
        """Describe the environment for a manifest; `graph` is the graph of its stages."""
        describes = self.makes_stage and hasattr(self.base, "describe")
        about = self.base.describe() if describes else {}
        return about if graph is not None or not about.get("graph_hash") else {"graph_hash": None}

    def stages(
        self,
        episodes: int,
        seed: int,
        stimuli: npt.NDArray[np.int64] | None,
        spans: tuple[int, int, int],
        *,
        coupled: bool,
        off_at_replay: bool,
        P0: bool = False,
    ) -> Sequence[Stage]:
        """Make the stages of all episodes, in their order.

        Args:
            episodes: how many.
            seed: of the first.
            stimuli: (E,), or None to draw them.
            spans: steps of the phases.
            coupled: whether Replay reuses Exposure's draws.
            off_at_replay: sample Replay from `P0`.
            P0: sample all phases from `P0`, with the same keys.
        """
        deformed = (not P0, not P0, not (P0 or off_at_replay))
        if not self.makes_stage:
            each = [None] * episodes if stimuli is None else stimuli.tolist()
            switched = None if all(deformed) else deformed
            return [
                ProtocolStage(self.base, seed + i, z, coupled=coupled, deformed=switched)
                for i, z in enumerate(each)
            ]
        stages: list[Stage] = []
        done = 0
        while done < episodes:
            stage: Stage = self.base.stage(
                episodes - done,
                seed=seed + done,
                stimuli=None if stimuli is None else stimuli[done:],
                horizons=spans,
                coupled=coupled,
                deformed=deformed,
            )
            if not 1 <= stage.episodes <= episodes - done:
                raise UserError(
                    f"{type(self.base).__name__}.stage() was asked for up to {episodes - done} "
                    f"episodes and gave {stage.episodes}"
                )
            stages.append(stage)
            done += stage.episodes
        return stages
