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

EPISODES = 64
FREE, RESET, CARRIED = "no penalty", "penalty, reset", "penalty, carried on"
KERNELS = {"off": "P0", "full": "deformed"}
"""What tables call the kernel under each deformation."""
UNTHROTTLED = Throttle(levels=(float("inf"), float("inf")))
"""A controller that keeps the same penalty and is aggressive all the same."""
Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ThrottledRun:
    """Episodes of a controller through exposure, washout and replay; arrays are (E, T)."""

    horizons: tuple[int, ...]
    reach: Float
    penalty: Float
    """Penalty at the start of each step."""
    action: Float
    reward: Float

    def of_phase(self, values: npt.NDArray[Any], phase: int) -> npt.NDArray[Any]:
        """Cut out the columns of one phase, (E, steps)."""
        start = sum(self.horizons[:phase])
        return values[:, start : start + self.horizons[phase]]


Runs = dict[str, ThrottledRun]
"""Runs by kernel and controller, such as `P0, no penalty`."""


def throttled_runs(graph: Graph, controller: Throttle, **options: Any) -> Runs:
    """Run each controller under each kernel; `options` are those of `run_throttled`."""
    controllers = {FREE: UNTHROTTLED, RESET: controller, CARRIED: controller}
    return {
        f"{kernel}, {name}": run_throttled(
            graph, each, deformation=deformation, carried=name == CARRIED, **options
        )
        for deformation, kernel in KERNELS.items()
        for name, each in controllers.items()
    }


def run_throttled(
    graph: Graph,
    controller: Throttle,
    *,
    deformation: str,
    carried: bool = False,
    episodes: int = EPISODES,
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
        seed: seed of the first episode.
        options: options of the environment.
    """
    env = GraphDiffusionVectorEnv(
        episodes, graph=graph, deformation=deformation, schedule="external", **options
    )
    horizons = env.setting.horizons
    steps: list[tuple[npt.NDArray[Any], ...]] = []
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
                steps.append((np.array(info["reach"]), penalty, action, np.array(reward)))
                penalty = controller.after(penalty, info["harm"])
    finally:
        env.close()
    reach, penalties, actions, rewards = (
        np.stack(trace, axis=1).astype(np.float64) for trace in zip(*steps, strict=True)
    )
    return ThrottledRun(horizons, reach, penalties, actions, rewards)
