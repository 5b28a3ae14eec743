"""`ProtocolStage`: one episode of any environment that offers RSD's calls."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import ACTION, STIMULUS, derive, uniform
from rapo.cascade.engine import Activity
from rapo.cascade.setting import DECAY, EXPOSURE
from rapo_core.checks import UserError

Array = npt.NDArray[Any]


class ProtocolStage:
    """One episode, driven by `activate`, `deactivate`, `reset_observable` and `step`.

    `deformed` says for each phase whether the kernel is; None leaves the environment's own choice.
    """

    episodes = 1
    watched: Any = None
    whole_phases = False
    graph: Any = None

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
            self._same_mask()
        if self.deformed is not None:
            self.env.set_deformation(self.deformed[phase])
        if phase == DECAY:
            self.env.deactivate()
            return self._x
        self.env.activate(int((self._stimulus if stimulus is None else stimulus)[0]))
        self._x = _batch(self.env.reset_observable(draws))
        return self._x

    def save_state(self) -> Any:
        """The environment's snapshot, if it has one; a copy, for others may hold their arrays."""
        if not (hasattr(self.env, "snapshot") and hasattr(self.env, "restore")):
            return None
        return deepcopy(self.env.snapshot())

    def restore_state(self, state: Any) -> None:
        """Restore the snapshot."""
        self.env.restore(state)

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """One step; the environment's own ends of episodes do not end a phase."""
        x, reward, _, _, info = self.env.step(actions[0])
        self._x = _batch(x)
        missing = [name for name in ("reach", "sensitive_mass") if name not in info]
        if missing:
            raise UserError(
                f"the info of step() lacks {missing}, it has {sorted(info)}; see ReplayEnv"
            )
        for name in ("reach", "sensitive_mass"):
            value = info[name]
            if np.ndim(value) != 0 or not (np.isfinite(value) and value >= 0):
                raise UserError(f"info[{name!r}] must be a number >= 0, got {value!r}")
        return self._x, np.array([reward], float), numbers_of(info)

    def draws(self, step: int) -> Array:
        """Keyed by the phase, so coupled phases share them."""
        return np.atleast_1d(uniform(self._phase_key, step, ACTION))

    def finish(self) -> None:
        """Leave the kernel deformed, as the protocol has it."""
        if self.deformed is not None:
            self.env.set_deformation(True)

    def run(self, action: int, steps: int) -> tuple[Array, dict[str, Array]]:
        """Refuse: the protocol takes one step at a time."""
        raise NotImplementedError

    def record_activity(self) -> None:
        """Record nothing: the protocol shows no active nodes."""

    def read_activity(self) -> Activity | None:
        """The protocol shows no active nodes."""
        return None

    def scars(self) -> Array | None:
        """(1, R) scars of the environment's `harm_memory`; None without one."""
        memory = getattr(self.env, "harm_memory", None)
        return None if memory is None else np.atleast_2d(np.asarray(memory.H))

    def _same_mask(self) -> None:
        """ASD rests on what the mask was before the first reset: one that comes later is told."""
        now = getattr(self.env, "memory_mask", None)
        if not np.array_equal(np.asarray(self.memory_mask), np.asarray(now)):
            raise UserError(
                f"memory_mask was {self.memory_mask!r} before reset() and is {now!r} after it; "
                "set it when the environment is made"
            )


def phase_tags(coupled: bool) -> tuple[int, int, int]:
    """Which phases share draws: coupled, Replay those of Exposure."""
    return (0, 1, 0) if coupled else (0, 1, 2)


def numbers_of(info: dict[str, Any]) -> dict[str, Array]:
    """The numbers of one episode's info, (1,) each."""
    return {name: np.atleast_1d(value) for name, value in info.items() if np.ndim(value) == 0}


def _batch(x: Any) -> Array:
    return np.atleast_1d(np.asarray(x))[None]
