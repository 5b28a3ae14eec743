"""Stages: an environment as the protocol sees it, all episodes at once or one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo.cascade.rng import ACTION, STIMULUS, derive, uniform
from rapo.cascade.setting import DECAY, EXPOSURE, PHASES
from rapo.envs.single import GraphDiffusionEnv
from rapo.envs.vector import GraphDiffusionVectorEnv

Array = npt.NDArray[Any]


class Stage(Protocol):
    """`episodes` RSD episodes side by side."""

    episodes: int
    seed: int
    """Of the first episode."""
    tags: tuple[int, int, int]
    """Which phases share draws: equal numbers do."""
    memory_mask: npt.NDArray[np.bool_] | None
    knows_memory: bool
    """Whether the environment says which entries show its memory (perhaps none)."""

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) of the running episodes."""
        ...

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Enter a phase; observations (E, d). Replay may be of another stimulus, (E,)."""
        ...

    def keep(self) -> Any:
        """Everything that evolves, for `back`; None if the environment cannot tell."""
        ...

    def back(self, state: Any) -> None:
        """Return to what `keep` gave."""
        ...

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """Observations (E, d), rewards (E,), info of (E,) each."""
        ...

    def draws(self, step: int) -> Array:
        """(E,) uniform draws for the actions of a step of the present phase."""
        ...

    def finish(self) -> None:
        """Undo what the stage switched in the environment."""
        ...

    def active(self) -> npt.NDArray[np.bool_] | None:
        """(E, n) active sets, or None without a graph."""
        ...

    def scars(self) -> Array | None:
        """(E, R) scars, or None if the environment does not tell."""
        ...


class VectorStage:
    """Our vector environment: all episodes in one call."""

    def __init__(
        self,
        env: GraphDiffusionVectorEnv,
        seed: int,
        stimuli: npt.NDArray[np.int64] | None,
    ) -> None:
        self.env, self.seed, self.stimuli = env, seed, stimuli
        self.episodes = env.num_envs
        self.tags = phase_tags(env.engine.coupled)
        self.memory_mask = env.memory_mask
        self.knows_memory = True

    def finish(self) -> None:
        """Nothing to undo: the environment is the stage's own."""

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) stimuli of the episodes."""
        return self.env.stimulus

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Exposure starts the episodes; decay and replay go on with their memory."""
        if phase == EXPOSURE:
            options = None if self.stimuli is None else {"stimulus": self.stimuli}
            return self.env.reset(seed=self.seed, options=options)[0]
        return self.env.begin(PHASES[phase], stimulus)

    def keep(self) -> Any:
        """A snapshot of all episodes, the keys of their draws included."""
        return self.env.snapshot()

    def back(self, state: Any) -> None:
        """Restore the snapshot."""
        self.env.restore(state)

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step of all episodes."""
        x, reward, _, _, info = self.env.step(actions)
        return x, reward, info

    def draws(self, step: int) -> Array:
        """Keyed by the phase of each episode, so coupled phases share them."""
        return uniform(self.env.engine.keys, step, ACTION)

    def active(self) -> npt.NDArray[np.bool_] | None:
        """(E, n)."""
        return self.env.engine.active

    def scars(self) -> Array | None:
        """(E, R)."""
        return self.env.engine.H


class OwnStage(VectorStage):
    """One episode of a subclass of our single environment, through its own methods.

    Draws are keyed as in `VectorStage`, so a subclass that changes nothing finds the same numbers.
    """

    def __init__(self, env: GraphDiffusionEnv, seed: int, stimulus: int | None) -> None:
        super().__init__(env.vector, seed, None if stimulus is None else np.array([stimulus]))
        self.single = env
        self.memory_mask = env.memory_mask

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """`reset` starts the episode, `begin` moves it on."""
        if phase == EXPOSURE:
            options = None if self.stimuli is None else {"stimulus": int(self.stimuli[0])}
            return _batch(self.single.reset(seed=self.seed, options=options)[0])
        other = None if stimulus is None else int(stimulus[0])
        return _batch(self.single.begin(PHASES[phase], other))

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step of the subclass."""
        x, reward, _, _, info = self.single.step(actions[0])
        return _batch(x), np.array([reward], float), _numbers(info)

    def keep(self) -> Any:
        """The snapshot of the subclass."""
        return deepcopy(self.single.snapshot())

    def back(self, state: Any) -> None:
        """Restore it."""
        self.single.restore(state)


class SingleStage:
    """Any `ReplayEnv`: one episode.

    `deformed` says for each phase whether the kernel is; None leaves the environment's own choice.
    """

    episodes = 1

    def __init__(
        self,
        env: Any,
        seed: int,
        stimulus: int | None,
        *,
        coupled: bool,
        deformed: tuple[bool, bool, bool] | None = None,
    ) -> None:
        self.env, self.seed, self.deformed = env, seed, deformed
        self.tags = phase_tags(coupled)
        self._episode_key = derive(derive(seed, 0), 0)
        if stimulus is None:
            u = float(uniform(self._episode_key, 0, STIMULUS))
            stimulus = 1 + int(u * env.stimuli)
        self._stimulus = np.array([stimulus])
        self.knows_memory = hasattr(env, "memory_mask")
        self.memory_mask = getattr(env, "memory_mask", None)
        self._phase_key = self._episode_key
        self._x: Array = np.zeros((1, 0))

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(1,) stimulus of the episode."""
        return self._stimulus

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Drive the environment through the protocol's calls."""
        self._phase_key = derive(self._episode_key, self.tags[phase])
        draws = int(self._phase_key) % 2**31
        if phase == EXPOSURE:
            self.env.reset(seed=self.seed)
        if self.deformed is not None:
            self.env.set_deformation(self.deformed[phase])
        if phase == DECAY:
            self.env.deactivate()
            return self._x
        self.env.activate(int((self._stimulus if stimulus is None else stimulus)[0]))
        self._x = _batch(self.env.reset_observable(draws))
        return self._x

    def keep(self) -> Any:
        """The environment's snapshot, if it has one; a copy, for others may hold their arrays."""
        if not (hasattr(self.env, "snapshot") and hasattr(self.env, "restore")):
            return None
        return deepcopy(self.env.snapshot())

    def back(self, state: Any) -> None:
        """Restore the snapshot."""
        self.env.restore(state)

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step; the environment's own ends of episodes do not end a phase."""
        x, reward, _, _, info = self.env.step(actions[0])
        self._x = _batch(x)
        missing = [name for name in ("reach", "sensitive_mass") if name not in info]
        if missing:
            raise ValueError(
                f"the info of step() lacks {missing}, it has {sorted(info)}; see ReplayEnv"
            )
        for name in ("reach", "sensitive_mass"):
            value = info[name]
            if np.ndim(value) != 0 or not (np.isfinite(value) and value >= 0):
                raise ValueError(f"info[{name!r}] must be a number >= 0, got {value!r}")
        return self._x, np.array([reward], float), _numbers(info)

    def draws(self, step: int) -> Array:
        """Keyed by the phase, so coupled phases share them."""
        return np.atleast_1d(uniform(self._phase_key, step, ACTION))

    def finish(self) -> None:
        """Leave the kernel deformed, as the protocol has it."""
        if self.deformed is not None:
            self.env.set_deformation(True)

    def active(self) -> npt.NDArray[np.bool_] | None:
        """Unknown here."""
        return None

    def scars(self) -> Array | None:
        """(1, R) where the environment has a `memory` with `H`."""
        memory = getattr(self.env, "memory", None)
        return None if memory is None else np.atleast_2d(np.asarray(memory.H))


def phase_tags(coupled: bool) -> tuple[int, int, int]:
    """Coupled, Replay shares the draws of Exposure."""
    return (0, 1, 0) if coupled else (0, 1, 2)


def _batch(x: Any) -> Array:
    return np.atleast_1d(np.asarray(x))[None]


def _numbers(info: dict[str, Any]) -> dict[str, Array]:
    """The numbers of one episode's info, (1,) each."""
    return {name: np.atleast_1d(value) for name, value in info.items() if np.ndim(value) == 0}


def checked_stimuli(
    stimuli: int | Sequence[int] | None, episodes: int, known: int
) -> npt.NDArray[np.int64] | None:
    """(E,) 1-based stimuli from one or one per episode, or None to draw them."""
    if stimuli is None:
        return None
    z = np.asarray(stimuli)
    if (
        z.dtype.kind not in "iu"
        or z.shape not in ((), (episodes,))
        or z.min() < 1
        or z.max() > known
    ):
        raise ValueError(f"stimuli must be in 1..{known}, one or one per episode, got {stimuli!r}")
    return np.broadcast_to(z, (episodes,)).astype(np.int64)
