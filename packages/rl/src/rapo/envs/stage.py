"""Stages of our environments for RSD: all episodes in one call, or a subclass's own methods."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import ACTION, uniform
from rapo.cascade.engine import Activity
from rapo.cascade.setting import EXPOSURE, PHASES
from rapo.envs.protocol_stage import ProtocolStage, numbers_of, phase_tags

Array = npt.NDArray[Any]


class VectorStage:
    """A vector environment of ours: all episodes in one call.

    Args:
        env: an `EpisodesVectorEnv` with an external schedule.
        seed: of the first episode.
        stimuli: (E,), or None to draw them.
    """

    def __init__(self, env: Any, seed: int, stimuli: npt.NDArray[np.int64] | None) -> None:
        self.env, self.seed, self.stimuli = env, seed, stimuli
        self.episodes: int = env.num_envs
        self.tags = phase_tags(env.engine.coupled)
        self.memory_mask: npt.NDArray[np.bool_] | None = env.memory_mask
        self.knows_memory = True
        self.whole_phases = type(self) is VectorStage and bool(env.runs_whole_phases)
        self.graph = getattr(env, "graph", None)
        self.watched: Any = None if self.graph is None else env  # watchers know graphs alone

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) stimuli of the episodes."""
        return np.asarray(self.env.stimulus)

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Exposure starts the episodes; decay and replay go on with their memory."""
        if phase == EXPOSURE:
            options = None if self.stimuli is None else {"stimulus": self.stimuli}
            return np.asarray(self.env.reset(seed=self.seed, options=options)[0])
        return np.asarray(self.env.begin(PHASES[phase], stimulus))

    def save_state(self) -> Any:
        """A snapshot of all episodes, the keys of their draws included."""
        return self.env.snapshot()

    def restore_state(self, state: Any) -> None:
        """Restore the snapshot."""
        self.env.restore(state)

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step of all episodes."""
        x, reward, _, _, info = self.env.step(actions)
        return x, reward, info

    def draws(self, step: int) -> Array:
        """Keyed by the phase of each episode, so coupled phases share them."""
        return uniform(self.env.engine.keys, step, ACTION)

    def finish(self) -> None:
        """Nothing to undo: the environment is the stage's own."""

    def run(self, action: int, steps: int) -> tuple[Array, dict[str, Array]]:
        """Many steps in one kernel call."""
        rewards, info = self.env.run(action, steps)
        return rewards, info

    def record_activity(self) -> None:
        """Record the active nodes on a graph."""
        if self.graph is not None:
            self.env.engine.record_activity()

    def read_activity(self) -> Activity | None:
        """Return the record on a graph."""
        return None if self.graph is None else self.env.engine.read_activity()

    def scars(self) -> Array | None:
        """(E, R)."""
        return self.env.engine.H  # type: ignore[no-any-return]


class _Driven:
    """Puts a vector environment that we drive behind a single one, and its own back afterwards."""

    def __init__(self, single: Any, vector: Any) -> None:
        self.single, self.vector = single, vector
        self._own: tuple[Any, Any] | None = None

    def put(self) -> None:
        """Drive the single environment."""
        if self._own is None:
            self._own = self.single.vector, self.single._chosen
            self.single.vector = self.vector

    def away(self) -> None:
        """Leave it as it was."""
        if self._own is not None:
            self.single.vector, self.single._chosen = self._own
            self._own = None


class OwnStage(VectorStage):
    """One episode of a subclass of our single environment, through its own methods.

    Draws are keyed as in `VectorStage`, so a subclass that changes nothing finds the same numbers.

    Args:
        single: the subclass.
        vector: one episode to put behind it while it runs.
        seed: of the episode.
        stimuli: (1,), or None to draw it.
    """

    def __init__(
        self, single: Any, vector: Any, seed: int, stimuli: npt.NDArray[np.int64] | None
    ) -> None:
        super().__init__(vector, seed, stimuli)
        self.watched = None
        self.single, self._driven = single, _Driven(single, vector)
        self._driven.put()  # a mask that looks at the vector environment must see this one
        self.memory_mask = single.memory_mask
        self._driven.away()

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """`reset` starts the episode, `begin` moves it on."""
        self._driven.put()
        if phase == EXPOSURE:
            options = None if self.stimuli is None else {"stimulus": int(self.stimuli[0])}
            return np.asarray(self.single.reset(seed=self.seed, options=options)[0])[None]
        other = None if stimulus is None else int(stimulus[0])
        return np.asarray(self.single.begin(PHASES[phase], other))[None]

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step of the subclass."""
        x, reward, _, _, info = self.single.step(actions[0])
        return np.asarray(x)[None], np.array([reward], float), numbers_of(info)

    def save_state(self) -> Any:
        """The snapshot of the subclass."""
        return deepcopy(self.single.snapshot())

    def restore_state(self, state: Any) -> None:
        """Restore it."""
        self._driven.put()
        self.single.restore(state)

    def finish(self) -> None:
        """Give the subclass its own episode back."""
        self._driven.away()


class DrivenStage(ProtocolStage):
    """One episode of a subclass that overrides the protocol's calls, through these."""

    def __init__(
        self,
        single: Any,
        vector: Any,
        seed: int,
        stimulus: int | None,
        *,
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> None:
        self._driven = _Driven(single, vector)
        super().__init__(single, seed, stimulus, coupled=coupled, deformed=deformed)

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """The same calls, on an episode that we drive."""
        self._driven.put()
        return super().begin(phase, stimulus)

    def restore_state(self, state: Any) -> None:
        """Restore the snapshot."""
        self._driven.put()
        super().restore_state(state)

    def finish(self) -> None:
        """Give the subclass its own episode back."""
        super().finish()
        self._driven.away()
