"""Environment steps a second of the vector environment, observations and rewards included."""

from __future__ import annotations

import gymnasium
import numpy as np

import rapo  # noqa: F401  # registers the environments
from benchmarks.effort import Effort
from benchmarks.table import Row
from benchmarks.timing import Contestant, interleave
from rapo.cascade.setting import Setting

TITLE = "Vector environment: 1024 episodes, 250 nodes, one thread"

ENVS, NODES = 1024, 250


def measure(effort: Effort) -> list[Row]:
    """Steps a second with and without fields in the observation.

    A block is a whole episode and one step more, so that truncation and autoreset have their share.
    """
    steps = 1 + sum(Setting.default().horizons)
    actions = np.random.default_rng(0).integers(3, size=(steps, ENVS))
    contestants = []
    for observe in ("x", "xGH"):
        env = gymnasium.make_vec(
            "rapo/GraphDiffusion-v0",
            num_envs=ENVS,
            vectorization_mode="vector_entry_point",
            nodes=NODES,
            graph_seed=0,
            observe=observe,
        )

        def run(repeats: int, env: gymnasium.vector.VectorEnv = env) -> None:
            for _ in range(repeats):
                for chosen in actions:
                    env.step(chosen)

        def reset(env: gymnasium.vector.VectorEnv = env) -> None:
            env.reset(seed=0)

        contestants.append(Contestant(observe, run, ENVS * steps, reset, most=1))
    times = interleave(contestants, min(effort.rounds, 7), effort.progress)
    return [
        Row("environment steps a second, observing x", 1e9 / times.best("x"), at_least=1e6,
            note=f"{times.best('x'):,.0f} ns a step; observations, rewards, info and autoreset"),
        Row("environment steps a second, observing x, G and H", 1e9 / times.best("xGH"),
            note=f"{times.best('xGH'):,.0f} ns a step"),
    ]  # fmt: skip
