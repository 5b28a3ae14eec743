"""`OneEpisodeEnv`: a vector environment of one episode as an ordinary Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.envs.episodes import EpisodesVectorEnv, Info, Obs
from rapo.envs.stage import OneEpisodeStage
from rapo_core.checks import UserError, whole_number

CALLED = (
    "reset", "step", "memory_mask", "snapshot", "restore", "activate", "deactivate",
    "reset_observable", "set_deformation", "stimuli",
)  # fmt: skip
"""What RSD calls of the protocol."""


class OneEpisodeEnv(gymnasium.Env[Obs, np.int64]):
    """The episode of `vector`, an `EpisodesVectorEnv` of one; RSD's protocol is offered too.

    RSD runs all episodes at once on copies of `vector`. A subclass that overrides a method which
    RSD calls is run through the protocol, one episode at a time, on copies of itself.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's form
    vector: Any

    def _show(self, vector: EpisodesVectorEnv) -> None:
        """Take over an environment of one episode; a subclass's constructor ends with this."""
        self.vector = vector
        self.render_mode = vector.render_mode
        self.metadata = {**self.metadata, "render_modes": vector.metadata["render_modes"]}
        self._chosen: int | None = None
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    @property
    def engine(self) -> Any:
        """What moves the episode: its fields, its state, its draws."""
        return self.vector.engine

    def __repr__(self) -> str:
        return repr(self.vector).replace("VectorEnv(1 x ", "Env(")

    __str__ = __repr__

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Start a new episode; `options`: `stimulus` (1-based), `keep_memory`."""
        if seed is not None:
            seed = whole_number("seed", seed, 0, 2**63 - 2)
        x, info = self.vector.reset(seed=seed, options=options)
        super().reset(seed=seed)
        return x[0], self._of_one(info)

    def begin(self, phase: str, stimulus: int | None = None) -> Obs:
        """Move to the start of `exposure`, `decay` or `replay`; memory stays."""
        return np.asarray(self.vector.begin(phase, stimulus)[0])

    @property
    def stimuli(self) -> int:
        """Number of stimuli, numbered from 1."""
        return int(self.vector.stimuli)

    @property
    def horizons(self) -> tuple[int, int, int]:
        """Steps of exposure, decay and replay."""
        return self.vector.horizons  # type: ignore[no-any-return]

    @property
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the fields; None with `observe="x"`."""
        return self.vector.memory_mask  # type: ignore[no-any-return]

    def activate(self, stimulus: int) -> None:
        """Choose the stimulus (1-based) that `reset_observable` switches on."""
        self._external()
        self._chosen = int(self.engine.check_stimuli(stimulus, 1)[0])

    def deactivate(self) -> None:
        """Switch the stimulus off; the clock of the phase starts anew."""
        self._external()
        self.vector.begin("decay")

    def reset_observable(self, seed: int | None = None) -> Obs:
        """Empty the active set, restart the clock and, with a seed, the draws; memory stays."""
        self._external()
        options: dict[str, Any] = {"keep_memory": True}
        if self._chosen is not None:
            options["stimulus"] = self._chosen
        return np.asarray(self.reset(seed=seed, options=options)[0])

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel, or from `P0`; the fields evolve either way."""
        self.vector.set_deformation(on)

    def _external(self) -> None:
        if self.vector.schedule != "external":
            raise UserError(
                "this environment runs its own schedule; make it with schedule='external' to "
                "drive its phases"
            )

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, Info]:
        """One step; see the vector environment for `info`."""
        x, reward, _, truncated, info = self.vector.step(np.asarray(action).reshape(1))
        return x[0], float(reward[0]), False, bool(truncated[0]), self._of_one(info)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        return self.vector.snapshot()  # type: ignore[no-any-return]

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> tuple[Obs, Info]:
        """Take over a `snapshot`."""
        x, info = self.vector.restore(state)
        return x[0], self._of_one(info)

    def describe(self) -> dict[str, Any]:
        """What the environment is made of, for a manifest."""
        return self.vector.describe()  # type: ignore[no-any-return]

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
        """The stage that RSD runs episodes on; see `EpisodesVectorEnv.stage` for the arguments.

        All episodes run at once on a copy of `vector`. A subclass that overrides a method RSD calls
        runs one episode on a copy of itself, through the protocol.
        """
        how: dict[str, Any] = {"horizons": horizons, "coupled": coupled, "deformed": deformed}
        if self._runs_at_once():
            return self.vector.stage(episodes, seed=seed, stimuli=stimuli, **how)
        copied = copy(self)
        copied.vector, copied._chosen = copied._own_vector().driven(1, **how), None
        own = self.vector.task.deform_phases
        exposure, decay, replay = (a and b for a, b in zip(own, deformed, strict=True))
        return OneEpisodeStage(
            copied,
            seed,
            None if stimuli is None else int(stimuli[0]),
            coupled=coupled,
            deformed=(exposure, decay, replay),
        )

    def _own_vector(self) -> Any:
        """The vector environment that a copy of this one begins with."""
        return self.vector

    def _runs_at_once(self) -> bool:
        """Whether RSD may run copies of `vector`, because no subclass changes what it calls."""
        if self._overrides(("begin",)):
            raise UserError(
                f"{type(self).__name__} overrides begin, which RSD does not call; override "
                "activate, deactivate or reset_observable"
            )
        return not self._overrides(CALLED)

    def _overrides(self, names: Sequence[str]) -> bool:
        """Whether a subclass overrides any of these methods; on the object itself is an error."""
        put = [name for name in names if name in vars(self)]
        if put:
            raise UserError(
                f"{put} were put on this {type(self).__name__} itself, which RSD runs copies of; "
                "write a subclass that overrides them"
            )
        mine = type(self)
        return any(getattr(mine, name) is not getattr(OneEpisodeEnv, name) for name in names)

    def render(self) -> Any:
        """An RGB array (H, W, 3), if `render_mode` is `rgb_array`."""
        frames = self.vector.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Release the renderer."""
        self.vector.close()

    def _of_one(self, info: Info) -> Info:
        """The info of the only sub-environment, as plain numbers."""
        return {name: value[0].item() for name, value in info.items()}
