"""From an environment to the stages that its episodes run on, subclasses of ours included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.envs.single import GraphDiffusionEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.rsd.protocol import protocol_layer
from rapo.rsd.stage import OwnStage, SingleStage, Stage, VectorStage

_STEPPING = ("reset", "begin", "step", "memory_mask", "snapshot", "restore")
_PROTOCOL = ("activate", "deactivate", "reset_observable", "set_deformation", "stimuli")


@dataclass(frozen=True)
class Place:
    """An environment, and how episodes run on it.

    Ours run all at once. A subclass of our single environment runs as what it overrides wants it:
    one episode at a time through `reset`, `begin` and `step`, or through the protocol if it
    overrides that; one that overrides neither runs all at once. Others run through the protocol.
    """

    base: Any
    """The layer that offers the protocol."""
    vector: GraphDiffusionVectorEnv | None
    """Our vector environment behind it, if it is ours."""
    way: str
    """`vector`, `own` or `protocol`."""

    @classmethod
    def of(cls, env: Any) -> Place:
        """Look through harmless wrappers; what cannot be run is refused."""
        base = protocol_layer(env)
        if isinstance(base, GraphDiffusionVectorEnv):
            return cls(base, base, "vector")
        if not isinstance(base, GraphDiffusionEnv):
            return cls(base, None, "protocol")
        stepping, protocol = _overridden(base, _STEPPING), _overridden(base, _PROTOCOL)
        if protocol and "begin" in stepping:
            raise ValueError(
                f"{type(base).__name__} overrides begin and {protocol}: RSD moves phases on by the "
                "one or by the others; override begin alone, or the protocol without begin"
            )
        return cls(base, base.vector, "protocol" if protocol else "own" if stepping else "vector")

    @property
    def fast(self) -> bool:
        """Whether all episodes run at once."""
        return self.way == "vector"

    @property
    def graph(self) -> Graph | None:
        """The graph, where the active set on it is known at every step."""
        return None if self.vector is None or self.way == "protocol" else self.vector.graph

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Of one episode."""
        whole = isinstance(self.base, GraphDiffusionVectorEnv)
        space: gymnasium.Space[Any] = getattr(
            self.base, "single_action_space" if whole else "action_space"
        )
        return space

    @property
    def setting(self) -> Setting:
        """Whose horizons are the default."""
        return Setting.default() if self.vector is None else self.vector.setting

    @property
    def stimuli(self) -> int:
        """How many there are."""
        whole = isinstance(self.base, GraphDiffusionVectorEnv)
        return int(self.base.graph.stimuli if whole else self.base.stimuli)

    @property
    def restores(self) -> bool:
        """Whether episodes can be brought back to the start of Replay."""
        return self.vector is not None or all(
            hasattr(self.base, name) for name in ("snapshot", "restore")
        )

    @contextmanager
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
    ) -> Iterator[Sequence[Stage]]:
        """Stages of all episodes, in their order; the environment is left as it was.

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
        each = [None] * episodes if stimuli is None else stimuli.tolist()
        if self.vector is None:
            given = None if all(deformed) else deformed
            yield [
                SingleStage(self.base, seed + i, z, coupled=coupled, deformed=given)
                for i, z in enumerate(each)
            ]
            return
        own = self.vector.options["deform_phases"]
        exposure, decay, replay = (a and b for a, b in zip(own, deformed, strict=True))
        twin = self.vector.like(
            episodes if self.fast else 1,
            setting=self.setting.replace(horizons=spans),
            deform_phases=(exposure, decay, replay),
            coupled=coupled,
            schedule="external",
            autoreset_mode="Disabled",
            **({"deformation": "off"} if P0 else {}),
        )
        if self.fast:
            yield [VectorStage(twin, seed, stimuli)]
            return
        with _driving(self.base, twin):
            if self.way == "own":
                yield [OwnStage(self.base, seed + i, z) for i, z in enumerate(each)]
                return
            yield [
                SingleStage(
                    self.base, seed + i, z, coupled=coupled, deformed=(exposure, decay, replay)
                )
                for i, z in enumerate(each)
            ]


def _overridden(env: GraphDiffusionEnv, names: Sequence[str]) -> list[str]:
    """Which of our methods a subclass, or an attribute put on the instance, replaces."""
    ours, theirs = GraphDiffusionEnv, type(env)
    return [n for n in names if n in vars(env) or getattr(theirs, n) is not getattr(ours, n)]


@contextmanager
def _driving(env: GraphDiffusionEnv, vector: GraphDiffusionVectorEnv) -> Iterator[None]:
    """Put a vector environment that we drive behind a single one, and its own back afterwards."""
    kept = env.vector, env._chosen
    env.vector = vector
    try:
        yield
    finally:
        env.vector, env._chosen = kept
