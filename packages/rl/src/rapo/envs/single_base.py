"""`OneEpisodeEnv`: a vector environment of one episode as an ordinary Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.envs.episodes import EpisodesVectorEnv, Info, Obs
from rapo.envs.stage import DrivenStage, OwnStage
from rapo_core.checks import UserError, whole_number

_STEPPING = ("reset", "begin", "step", "memory_mask", "snapshot", "restore")
_PROTOCOL = ("activate", "deactivate", "reset_observable", "set_deformation", "stimuli")


class OneEpisodeEnv(gymnasium.Env[Obs, np.int64]):
    """The episode of `vector`, an `EpisodesVectorEnv` of one; RSD's protocol is offered too.

    RSD runs it as what a subclass overrides wants it: one episode at a time through `reset`,
    `begin` and `step`, or through the protocol if that is overridden; one that overrides neither
    runs all episodes at once on copies of `vector`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's form
    vector: Any
    plain: ClassVar[type | None] = None
    """The class of ours whose methods count as not overridden; None for this one."""

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

        All episodes at once, or the first of them through what a subclass overrides.
        """
        how: dict[str, Any] = {"horizons": horizons, "coupled": coupled, "deformed": deformed}
        way = self._way()
        if way == "vector":
            return self.vector.stage(episodes, seed=seed, stimuli=stimuli, **how)
        vector = self.vector.driven(1, **how)
        first = None if stimuli is None else stimuli[:1]
        if way == "own":
            return OwnStage(self, vector, seed, first)
        own = self.vector.options["deform_phases"]
        exposure, decay, replay = (a and b for a, b in zip(own, deformed, strict=True))
        return DrivenStage(
            self,
            vector,
            seed,
            None if first is None else int(first[0]),
            coupled=coupled,
            deformed=(exposure, decay, replay),
        )

    def _way(self) -> str:
        """How episodes run: all at once (`vector`), or by what is overridden."""
        stepping, protocol = self._overridden(_STEPPING), self._overridden(_PROTOCOL)
        if protocol and "begin" in stepping:
            raise UserError(
                f"{type(self).__name__} overrides begin and {protocol}: RSD moves phases on by the "
                "one or by the others; override begin alone, or the protocol without begin"
            )
        return "protocol" if protocol else "own" if stepping else "vector"

    def _overridden(self, names: Sequence[str]) -> list[str]:
        """Which of our methods a subclass, or an attribute put on the instance, replaces."""
        ours, theirs = self.plain or OneEpisodeEnv, type(self)
        return [n for n in names if n in vars(self) or getattr(theirs, n) is not getattr(ours, n)]

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
