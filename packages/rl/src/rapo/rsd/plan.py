"""From an environment to the stages that its episodes run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import Setting
from rapo.envs.protocol_stage import ProtocolStage
from rapo.rsd.protocol import protocol_layer
from rapo.rsd.stage import Stage, chooses_stage
from rapo_core.checks import UserError


@dataclass(frozen=True)
class Place:
    """An environment, and how episodes run on it: by the stage it chooses, else the protocol."""

    base: Any
    """The layer that offers a stage or the protocol."""
    chooses: bool
    """Whether it chooses its stage."""

    @classmethod
    def of(cls, env: Any) -> Place:
        """Look through harmless wrappers; what cannot be run is refused."""
        base = protocol_layer(env)
        return cls(base, chooses_stage(base))

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Of one episode."""
        space: gymnasium.Space[Any] | None = getattr(self.base, "single_action_space", None)
        return self.base.action_space if space is None else space

    @property
    def horizons(self) -> tuple[int, int, int]:
        """Steps of the phases, unless others are asked for."""
        return self.base.horizons if self.chooses else Setting.default().horizons

    @property
    def restores(self) -> bool:
        """Whether episodes can be brought back to the start of Replay."""
        return all(hasattr(self.base, name) for name in ("snapshot", "restore"))

    def need_switch(self, options: Sequence[str]) -> None:
        """Refuse options for which the deformation has to be switched off where it cannot be."""
        if options and not (self.chooses or hasattr(self.base, "set_deformation")):
            kind = type(self.base).__name__
            raise UserError(f"{options[0]} needs {kind}.set_deformation(on), see ReplayEnv")

    def describe(self, graph: Any) -> dict[str, Any]:
        """What the environment is made of; `graph` is that of its stages."""
        tells = self.chooses and hasattr(self.base, "describe")
        about = self.base.describe() if tells else {}
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
        """Stages of all episodes, in their order.

        Args:
            episodes: how many.
            seed: of the first.
            stimuli: (E,), or None to draw them.
            spans: steps of the phases.
            coupled: whether Replay reuses Exposure's draws.
            off_at_replay: sample Replay from `P0`.
            P0: sample all phases from it, with the same keys.
        """
        deformed = (not P0, not P0, not (P0 or off_at_replay))
        if not self.chooses:
            each = [None] * episodes if stimuli is None else stimuli.tolist()
            given = None if all(deformed) else deformed
            return [
                ProtocolStage(self.base, seed + i, z, coupled=coupled, deformed=given)
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
