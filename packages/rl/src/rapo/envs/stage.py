"""Stages of our environments for RSD: all episodes at once, or one of a subclass."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import ACTION, uniform
from rapo.cascade.engine import Activity
from rapo.cascade.setting import EXPOSURE, PHASES
from rapo.envs.protocol_stage import ProtocolStage, phase_tags

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
        self.whole_phases: bool = env.runs_whole_phases
        self.graph = getattr(env, "graph", None)
        self.watched: Any = None if self.graph is None else env  # a `Watcher` reads graphs only

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
        """Do nothing: the environment belongs to the stage."""

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


class OneEpisodeStage(ProtocolStage):
    """One episode of a subclass of our single environment, through the protocol.

    Args:
        env: a copy of the subclass, on a vector environment whose phases RSD moves on.
        seed: of the episode.
        stimulus: 1-based, or None to draw it.
        coupled: whether Replay reuses Exposure's draws.
        deformed: in which phases the kernel is deformed.
    """

    def __init__(
        self,
        env: Any,
        seed: int,
        stimulus: int | None,
        *,
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> None:
        super().__init__(env, seed, stimulus, coupled=coupled, deformed=deformed)
        self.graph = getattr(env.vector, "graph", None)

    def record_activity(self) -> None:
        """Record the active nodes on a graph."""
        if self.graph is not None:
            self.env.engine.record_activity()

    def read_activity(self) -> Activity | None:
        """Return the record on a graph."""
        return None if self.graph is None else self.env.engine.read_activity()

    def scars(self) -> Array | None:
        """(1, R) of the engine."""
        H = self.env.engine.H
        return None if H is None else np.asarray(H)
