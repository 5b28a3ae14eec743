"""`EpisodesVectorEnv`: RSD episodes side by side behind Gymnasium's vector interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

from rapo.cascade.draws import STIMULUS, derive, uniform
from rapo.cascade.setting import PHASES, REPLAY
from rapo.envs.stage import VectorStage
from rapo_core.checks import UserError, checked_state, truth, whole_number

Obs = npt.NDArray[np.float32]
Info = dict[str, Any]
_OPTIONS = ("stimulus", "keep_memory", "reset_mask")


class EpisodesVectorEnv(VectorEnv[Obs, npt.NDArray[Any], npt.NDArray[Any]]):
    """Seeds, phases, autoreset and snapshots of an `engine` of `num_envs` episodes.

    The engine has `start`, `enter`, `check_stimuli`, `rows_of`, `set_deformation`, `snapshot`,
    `restore` and the (E,) properties phase, clock, stimulus and keys, as `Cascade` has them. A
    subclass makes it, tells what a step observes, pays and reports (`_advance`) and where episodes
    stand when a phase begins (`_entered`), and ends its constructor with `_open`.
    """

    runs_whole_phases = False
    """Whether `run(action, steps)` gives what as many calls of `step` give."""
    engine: Any
    task: Any
    """Everything that makes this environment but the number of episodes, a frozen dataclass."""

    @abstractmethod
    def _make(self, num_envs: int, task: Any) -> None:
        """Set all attributes from a task; constructors and copies end with this."""

    @abstractmethod
    def _task_with(self, changes: Mapping[str, Any]) -> Any:
        """The task with some values changed; an unknown name is an error."""

    def _open(
        self, num_envs: int, schedule: str, autoreset_mode: AutoresetMode | str, width: int
    ) -> None:
        """Set up episodes that are not started yet; `width` is the size of the observable `x`."""
        self.num_envs, self.schedule = num_envs, schedule
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": 10,
            "autoreset_mode": self.autoreset_mode,
        }
        self._seeds = np.zeros(num_envs, np.uint64)
        self._episode = np.full(num_envs, -1, np.int64)  # -1: not seeded yet
        self._done = np.ones(num_envs, np.bool_)
        self._x = np.zeros((num_envs, width), np.float32)

    @property
    @abstractmethod
    def stimuli(self) -> int:
        """Number of stimuli, numbered from 1."""

    @property
    @abstractmethod
    def horizons(self) -> tuple[int, int, int]:
        """Steps of exposure, decay and replay."""

    @property
    @abstractmethod
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the memory; None if none do."""

    @abstractmethod
    def _advance(
        self, actions: npt.NDArray[Any], pending: npt.NDArray[np.bool_]
    ) -> tuple[Obs, npt.NDArray[np.float64], Info]:
        """Step the engine and return `x`, rewards and info; `pending` episodes report nothing."""

    @abstractmethod
    def _entered(self, phase: int, rows: npt.NDArray[np.int64]) -> None:
        """Set `_x` of some episodes to the observable at the start of a phase."""

    @abstractmethod
    def _observation(self) -> Obs:
        """Return what policies observe: `_x`, and the memory where the environment shows it."""

    @abstractmethod
    def _changed(
        self, horizons: tuple[int, int, int], deformed: tuple[bool, bool, bool]
    ) -> dict[str, Any]:
        """Changes of the task for a copy with these horizons and phases of deformation."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe the environment for a manifest; `graph_hash` is None without a graph."""

    @property
    def phase(self) -> npt.NDArray[np.int64]:
        """(num_envs,) 0 exposure, 1 decay, 2 replay."""
        return np.asarray(self.engine.phase)

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(num_envs,) stimulus of each episode, 1-based."""
        return np.asarray(self.engine.stimulus)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Obs, Info]:
        """Start new episodes.

        Args:
            seed: sub-environment i takes `seed + i`; or one seed each.
            options: `stimulus` (1-based, one or one per environment; else drawn), `keep_memory`
                (leave fields and delay buffer as they are), `reset_mask` (which to reset).
        """
        options = {} if options is None else options
        if not isinstance(options, Mapping) or set(options) - set(_OPTIONS):
            unknown = sorted(set(options) - set(_OPTIONS))
            raise UserError(f"unknown reset options {unknown}; known are {list(_OPTIONS)}")
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise UserError(f"reset_mask must be bool of shape ({self.num_envs},), got {mask}")
        stimulus = options.get("stimulus")
        if stimulus is not None:
            self.engine.check_stimuli(stimulus, self.num_envs)
        keep_memory = truth("keep_memory", options.get("keep_memory", False))
        each = self._checked_seeds(seed)
        super().reset(seed=int(seed) if isinstance(seed, int | np.integer) else None)
        self._seed(each, mask)
        self._start(mask, stimulus, keep_memory=keep_memory)
        return self._observation(), {**self._info(), **self._reset_info()}

    def begin(
        self,
        phase: str,
        stimulus: npt.ArrayLike | None = None,
        episodes: npt.ArrayLike | None = None,
    ) -> Obs:
        """Move episodes to the start of `exposure`, `decay` or `replay`; memory stays.

        Exposure and replay reset the observable state and switch the stimulus on; decay switches
        it off.
        """
        if phase not in PHASES:
            raise UserError(f"phase must be one of {PHASES}, got {phase!r}")
        if (self._episode < 0).any():
            raise UserError("call reset() before begin(): there is no episode yet")
        number = PHASES.index(phase)
        self.engine.enter(number, episodes, stimuli=stimulus)
        rows = self.engine.rows_of(episodes)
        self._done[rows] = False
        self._entered(number, rows)
        return self._observation()

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Obs, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]:
        """One step of every episode; see the class for `info`."""
        pending = self._done.copy()
        resets_itself = self.autoreset_mode is AutoresetMode.NEXT_STEP
        if pending.any() and not (resets_itself and (self._episode >= 0).all()):
            raise UserError(
                f"episodes {np.flatnonzero(pending)[:5].tolist()} are over or not begun; "
                "call reset() first"
            )
        self._x, reward, seen = self._advance(actions, pending)
        truncated = (self.engine.phase == REPLAY) & (self.engine.clock >= self.horizons[REPLAY])
        if self.schedule == "external":
            truncated[:] = False
        if pending.any():  # these episodes were over: their step is the reset
            self._episode[pending] += 1
            self._start(pending, None, keep_memory=False)
            reward[pending] = 0
            truncated[pending] = False
        info = {**seen, **self._info()}
        self._done = truncated.copy()
        if self.autoreset_mode is AutoresetMode.SAME_STEP and truncated.any():
            final = np.full(self.num_envs, None, object)
            last = self._observation()
            for i in np.flatnonzero(truncated):
                final[i] = last[i]
            self._episode[truncated] += 1
            self._start(truncated, None, keep_memory=False)
            info = {
                **info,
                **self._info(),
                "final_obs": final,
                "_final_obs": truncated,
                "final_info": info,
                "_final_info": truncated,
            }
        return self._observation(), reward, np.zeros_like(truncated), truncated, info

    def set_deformation(self, on: bool) -> None:
        """Deform the kernel in all phases, or in none; the fields evolve either way."""
        self.engine.set_deformation(on)
        self.task = replace(self.task, deform_phases=(bool(on),) * 3)

    def like(self, num_envs: int, **changes: Any) -> Self:
        """A copy with another number of episodes, and with `changes` of the task.

        The copy is of the same class and shares all other attributes: a subclass keeps its own.
        """
        put = [n for n in vars(self) if callable(getattr(type(self), n, None))]
        if put:
            raise UserError(
                f"{put} were put on this {type(self).__name__} itself, which RSD runs copies of; "
                "write a subclass that overrides them"
            )
        copied = copy(self)
        copied._np_random, copied._np_random_seed = None, None
        copied._make(whole_number("num_envs", num_envs, 1), self._task_with(changes))
        return copied

    def driven(
        self,
        episodes: int,
        *,
        horizons: tuple[int, int, int],
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> Self:
        """A copy whose phases RSD moves on; `deformed` phases that are not so here stay nominal.

        One that is deformed in no phase samples from `P0`.
        """
        own = self.task.deform_phases
        exposure, decay, replay = (a and b for a, b in zip(own, deformed, strict=True))
        return self.like(
            episodes,
            coupled=coupled,
            schedule="external",
            autoreset_mode="Disabled",
            **self._changed(horizons, (exposure, decay, replay)),
        )

    def stage(
        self,
        episodes: int,
        *,
        seed: int,
        stimuli: npt.NDArray[np.int64] | None,
        horizons: tuple[int, int, int],
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> Any:
        """The stage that RSD runs episodes on: all of them at once, on a copy.

        Args:
            episodes: how many are left to run.
            seed: of the first.
            stimuli: (episodes,), or None to draw them.
            horizons: steps of the phases.
            coupled: whether Replay reuses Exposure's draws.
            deformed: in which phases the kernel may be deformed; none: a `P0` reference run.
        """
        driven = self.driven(episodes, horizons=horizons, coupled=coupled, deformed=deformed)
        return VectorStage(driven, seed, stimuli)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        mine = {
            "seeds": self._seeds.copy(),
            "episode": self._episode.copy(),
            "done": self._done.copy(),
            "x": self._x.copy(),
        }
        return {**mine, **{f"engine.{k}": v for k, v in self.engine.snapshot().items()}}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> tuple[Obs, Info]:
        """Take over a `snapshot` of an environment of the same configuration."""
        like = self.snapshot()
        if not isinstance(state, Mapping) or set(state) != set(like):
            checked_state(state, like)  # which says what is wrong
        own = {name: value for name, value in like.items() if not name.startswith("engine.")}
        taken = checked_state({name: state[name] for name in own}, own)
        if taken["episode"].min() < -1:
            raise UserError(f"episode must be >= -1, got {taken['episode'].min()}")
        self.engine.restore(
            {k.removeprefix("engine."): v for k, v in state.items() if k.startswith("engine.")}
        )
        self._seeds, self._episode = taken["seeds"], taken["episode"]
        self._done, self._x = taken["done"], taken["x"]
        return self._observation(), self._info()

    def _checked_seeds(
        self, seed: int | Sequence[int | None] | None
    ) -> Sequence[int | None] | None:
        """A seed, or None, for every sub-environment."""
        if seed is None:
            return None
        if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            if len(seed) != self.num_envs:
                raise UserError(f"seed needs {self.num_envs} whole numbers, got {seed!r}")
            return [None if s is None else whole_number("seed", s, 0) for s in seed]
        first = whole_number("seed", seed, 0, 2**63 - 1 - self.num_envs)
        return [first + i for i in range(self.num_envs)]

    def _seed(self, each: Sequence[int | None] | None, mask: npt.NDArray[np.bool_]) -> None:
        if each is None:
            fresh = mask & (self._episode < 0)
            self._seeds[fresh] = self.np_random.integers(2**63, size=int(fresh.sum()))
            self._episode[mask] += 1  # from -1 for the fresh ones
            return
        for i in np.flatnonzero(mask).tolist():
            value = each[i]
            self._seeds[i] = self.np_random.integers(2**63) if value is None else value
            self._episode[i] = 0

    def _start(
        self, mask: npt.NDArray[np.bool_], stimulus: npt.ArrayLike | None, *, keep_memory: bool
    ) -> None:
        rows = np.flatnonzero(mask)
        keys = derive(derive(self._seeds[rows], 0), self._episode[rows])
        if stimulus is None:
            u = uniform(keys, 0, STIMULUS)
            z = 1 + (u.astype(np.float64) * self.stimuli).astype(np.int64)
        else:
            z = np.broadcast_to(np.asarray(stimulus), (self.num_envs,))[rows]
        self.engine.start(keys, z, rows, keep_memory=keep_memory)
        self._entered(0, rows)
        self._done[rows] = False

    def _reset_info(self) -> Info:
        """Info of `reset` besides stimulus, phase and clock."""
        return {}

    def _info(self) -> Info:
        return {
            "stimulus": self.engine.stimulus,
            "phase": self.engine.phase,
            "clock": self.engine.clock,
        }
