"""Runs of the throttle: it injects less while harm arrives, and forgets the harm afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import EXPOSURE, PHASES, REPLAY
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.platforms.cascade.baseline import Throttle

Float = npt.NDArray[np.float64]


UNTHROTTLED = Throttle(levels=(float("inf"), float("inf")))
"""The same bookkeeping, but always aggressive."""


@dataclass(frozen=True)
class ThrottledRun:
    """Episodes of a controller through exposure, washout and replay; arrays are (E, T)."""

    horizons: tuple[int, ...]
    reach: Float
    inside: Float
    """Sensitive mass."""
    penalty: Float
    """At the start of each step."""
    action: npt.NDArray[np.int64]
    reward: Float

    def of_phase(self, values: npt.NDArray[Any], phase: int) -> npt.NDArray[Any]:
        """Columns of one phase, (E, steps)."""
        start = sum(self.horizons[:phase])
        return values[:, start : start + self.horizons[phase]]


def run_throttled(
    graph: Graph,
    controller: Throttle,
    *,
    deformation: str,
    carried: bool = False,
    episodes: int = 64,
    seed: int = 0,
    **options: Any,
) -> ThrottledRun:
    """Drive the environment with a controller that reads harm as it arrives.

    Args:
        graph: the platform.
        controller: its throttle.
        deformation: `off` (`P0`) or `full`.
        carried: whether the penalty goes on into Replay; RSD resets the memory of an agent.
        episodes: number of episodes, with seeds `seed`, `seed + 1`, ...
        seed: of the first.
        options: of the environment.
    """
    env = GraphDiffusionVectorEnv(
        episodes, graph=graph, deformation=deformation, schedule="external", **options
    )
    horizons = env.setting.horizons
    traces: dict[str, list[Any]] = {
        name: [] for name in ("reach", "inside", "penalty", "action", "reward")
    }
    try:
        env.reset(seed=seed)
        penalty = np.zeros(episodes)
        for phase, span in enumerate(horizons):
            env.begin(PHASES[phase])
            if phase == EXPOSURE or (phase == REPLAY and not carried):
                penalty = np.zeros(episodes)
            for _ in range(span):
                action = controller.action(penalty)
                _, reward, _, _, info = env.step(action)
                found = (info["reach"], info["sensitive_mass"], penalty, action, reward)
                for name, value in zip(traces, found, strict=True):
                    traces[name].append(np.array(value))
                penalty = controller.after(penalty, info["harm"])
    finally:
        env.close()
    arrays = {name: np.stack(values, axis=1) for name, values in traces.items()}
    action = arrays.pop("action")
    floats = {name: values.astype(np.float64) for name, values in arrays.items()}
    return ThrottledRun(horizons, action=action, **floats)
