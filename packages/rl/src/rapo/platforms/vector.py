"""`PlatformVectorEnv`: many episodes of a platform behind Gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from rapo.envs.episodes import EpisodesVectorEnv, Info, Obs
from rapo.envs.field_summary import SUMMARY, field_summary
from rapo.names import import_named
from rapo.platforms.platform import BatchPlatform
from rapo.platforms.report import RATIOS
from rapo_core.checks import UserError, one_of, whole_number

MakePlatform = Callable[..., BatchPlatform]


@dataclass(frozen=True, eq=False)
class PlatformTask:
    """Everything that makes a platform's environment but the number of episodes."""

    platform: MakePlatform | str
    observe: str
    schedule: str
    autoreset_mode: AutoresetMode | str
    deform_phases: tuple[bool, bool, bool]
    coupled: bool
    render_mode: str | None
    options: Mapping[str, Any]
    """Options of the platform itself."""


_TASK_FIELDS = frozenset(field.name for field in fields(PlatformTask)) - {"options"}


class PlatformVectorEnv(EpisodesVectorEnv):
    """`num_envs` RSD episodes of a platform side by side.

    A plain `reset` draws a stimulus; exposure, decay and replay follow by themselves, and the
    episode is truncated at their end. With `schedule="external"` the caller begins phases.
    Sub-environment i of `reset(seed=s)` equals a single environment with seed `s + i` bit by bit.

    `info` describes the step taken, each (num_envs,): harm (also as `cost`), reach, sensitive_mass,
    served (nominal mass that psi lets through), entry_nominal and entry_deformed (probability of a
    harmful choice under `P0` and as sampled, summed over walkers), odds_ratio (the factor on a
    walker's odds of a harmful choice, weighted by its nominal probability), event_odds_ratio (the
    factor on the odds that any walker makes one), gating_rate (share of the moving walkers with
    psi < 1 on some candidate), with regions also cost_G, cost_H and scar_mass, and the platform's
    own entries; then the present stimulus, phase and clock.

    Args:
        num_envs: number of episodes.
        platform: a `BatchPlatform` class, or "package.module:Class".
        observe: `x`, `xGH` to append the fields of all regions, or `xsummary` to append ten
            numbers that sum the fields up (`field_summary`), the same ten on every platform.
        schedule: `rsd` or `external`.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled` (Gymnasium's `AutoresetMode`).
        deform_phases: whether the deformation is on in exposure, decay and replay.
        coupled: whether Replay reuses Exposure's draws.
        render_mode: None, or `rgb_array` for a platform that has a `frame`.
        options: of the platform.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        platform: MakePlatform | str,
        observe: str = "x",
        schedule: str = "rsd",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        deform_phases: tuple[bool, bool, bool] = (True, True, True),
        coupled: bool = False,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        task = PlatformTask(
            platform,
            observe,
            schedule,
            autoreset_mode,
            deform_phases,
            coupled,
            render_mode,
            options,
        )
        self._make(whole_number("num_envs", num_envs, 1), task)

    def _make(self, num_envs: int, task: PlatformTask) -> None:
        one_of("observe", task.observe, ("x", "xGH", "xsummary"))
        one_of("schedule", task.schedule, ("rsd", "external"))
        one_of("render_mode", task.render_mode, (None, "rgb_array"))
        self.task = task
        self.engine: BatchPlatform = platform_of(task.platform)(
            num_envs,
            scheduled=task.schedule == "rsd",
            deform_phases=task.deform_phases,
            coupled=task.coupled,
            **task.options,
        )
        if not isinstance(self.engine, BatchPlatform):
            raise UserError(f"platform must make a BatchPlatform, got {self.engine!r}")
        self.observe, self.render_mode = task.observe, task.render_mode
        shown = self._fields()
        x = self.engine.x_space
        low = np.concatenate([x.low, np.zeros(shown, np.float32)])
        high = np.concatenate([x.high, np.full(shown, np.inf, np.float32)])
        self.single_observation_space = gymnasium.spaces.Box(low, high)
        self.single_action_space = gymnasium.spaces.Discrete(self.engine.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._open(num_envs, task.schedule, task.autoreset_mode, x.shape[0])
        if type(self.engine).frame is BatchPlatform.frame:
            self.metadata = {**self.metadata, "render_modes": []}
            if task.render_mode is not None:
                raise UserError(f"{type(self.engine).__name__} has no frame() to render")

    def _task_with(self, changes: Mapping[str, Any]) -> PlatformTask:
        own = {name: value for name, value in changes.items() if name in _TASK_FIELDS}
        others = {name: value for name, value in changes.items() if name not in _TASK_FIELDS}
        changed: PlatformTask = replace(self.task, **own, options={**self.task.options, **others})
        return changed

    def __repr__(self) -> str:
        kind = f"{self.num_envs} x {type(self.engine).__name__}, {self.engine.walkers} walkers"
        return f"{type(self).__name__}({kind}, deformation {self.engine.scope})"

    __str__ = __repr__

    @property
    def stimuli(self) -> int:
        """Number of stimuli, numbered from 1."""
        return self.engine.stimuli

    @property
    def horizons(self) -> tuple[int, int, int]:
        """Steps of exposure, decay and replay."""
        return self.engine.horizons

    @property
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the fields; None with `observe="x"`."""
        size, fields = self.engine.x_space.shape[0], self._fields()
        return np.arange(size + fields) >= size if fields else None

    def describe(self) -> dict[str, Any]:
        """Plain values for a manifest: what the environment is made of."""
        return {
            "platform": type(self.engine).__name__,
            "walkers": self.engine.walkers,
            "params": self.engine.params.to_dict(),
            "deformation": str(self.engine.scope),
            "deform_phases": list(self.task.deform_phases),
            "observe": self.observe,
            **self.engine.describe(),
        }

    def render(self) -> tuple[Any, ...] | None:
        """An RGB array (H, W, 3) of every episode; None unless `render_mode` is `rgb_array`."""
        if self.render_mode is None:
            return None
        return tuple(self.engine.frame(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the platform."""
        self.engine.close()

    def _advance(
        self, actions: npt.NDArray[Any], pending: npt.NDArray[np.bool_]
    ) -> tuple[Obs, npt.NDArray[np.float64], Info]:
        step = self.engine.step(actions)
        if pending.any():
            for name, values in step.info.items():
                silent = np.array(values)
                silent[pending] = np.nan if name in RATIOS else 0
                step.info[name] = silent
        return step.x, step.reward, step.info

    def _entered(self, phase: int, rows: npt.NDArray[np.int64]) -> None:
        self._x = self.engine.observe()

    def _observation(self) -> Obs:
        if self.observe == "x":
            return self._x.copy()
        G, H = np.asarray(self.engine.G), np.asarray(self.engine.H)
        shown = [G.astype(np.float32), H.astype(np.float32)]
        if self.observe == "xsummary":
            shown = [field_summary(G, H, self.engine.params)]
        return np.concatenate([self._x, *shown], axis=1)

    def _changed(
        self, horizons: tuple[int, int, int], deformed: tuple[bool, bool, bool]
    ) -> dict[str, Any]:
        return {"horizons": horizons, "deform_phases": deformed}

    def _fields(self) -> int:
        """How many entries of the observation show the memory."""
        if self.observe == "x":
            return 0
        if self.engine.G is None:
            raise UserError(
                f"observe={self.observe!r} shows the fields of regions; a scar field has none"
            )
        if self.observe == "xsummary":
            return SUMMARY
        return 2 * int(self.engine.G.shape[1])


def platform_of(platform: MakePlatform | str) -> MakePlatform:
    """The class that "package.module:Class" names; a class is returned as it is."""
    if callable(platform):
        return platform
    made: MakePlatform = import_named(str(platform), "platform")
    return made
