"""Shield: transitions simulated to look ahead, and what a guarded environment step costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.effort import Effort
from benchmarks.table import Row
from benchmarks.timing import Contestant, interleave
from rapo.agents.shield import Shield
from rapo.cascade.draws import ACTION, uniform
from rapo.envs.vector import GraphDiffusionVectorEnv

TITLE = "Shield: 16 rollouts of 100 steps per action, 20 episodes, 250 nodes, one thread"
EPISODES = 20
WARM = 250
"""Steps of the aggressive action before anything is timed: the middle of Exposure."""
LOOK, GUARDED, BARE = "look ahead", "guarded step", "bare step"


class Aggressive:
    """A base policy that costs nothing and always injects most."""

    def reset(self, episodes: int, seed: int) -> None:
        """Nothing to forget."""

    def act(self, x: Any, draws: Any) -> tuple[Any, Any]:
        return np.zeros(len(x), np.int64), np.tile([1.0, 0.0, 0.0], (len(x), 1))


def measure(effort: Effort) -> list[Row]:
    """Simulated transitions a second, and an environment step with and without the shield."""
    env = GraphDiffusionVectorEnv(EPISODES, nodes=250, graph_seed=0, schedule="external")
    env.reset(seed=0)
    env.engine.run(np.zeros(EPISODES, np.int64), WARM)
    middle = env.snapshot()
    shield = Shield(Aggressive(), np.inf, reference=1.0)  # blocks nothing: it stays aggressive
    shield.watch(env)

    def look(repeats: int) -> None:
        for _ in range(repeats):
            shield.estimate()

    def guarded(repeats: int) -> None:
        x = middle["x"]
        for _ in range(repeats):
            draws = uniform(env.engine.keys, env.engine.clock, ACTION)
            x = env.step(shield.act(x, draws)[0])[0]

    def bare(repeats: int) -> None:
        for _ in range(repeats):
            env.step(np.zeros(EPISODES, np.int64))

    def back() -> None:
        env.restore(middle)

    def contestant(name: str, run: Any) -> Contestant:
        return Contestant(name, run, prepare=back, most=WARM)

    times = interleave(
        [contestant(LOOK, look), contestant(GUARDED, guarded), contestant(BARE, bare)],
        effort.rounds,
        effort.progress,
    )
    per_look = EPISODES * 3 * shield.rollouts * shield.horizon
    return [
        Row("simulated transitions", per_look / times.best(LOOK) * 1e9, "/s", at_least=1_000_000,
            note=f"{per_look:,} in one call, mid-Exposure under the aggressive action"),
        Row("environment step with the shield", times.best(GUARDED) / 1e6, "ms",
            note=f"of all {EPISODES} episodes; {times.best(BARE) / 1e6:.3f} ms without"),
        Row("transitions per environment step", per_look / EPISODES,
            note="3 actions x 16 rollouts x 100 steps"),
        Row("processor time / elapsed time, largest", max(times.threads.values()), "x",
            at_most=1.3, note="1 is one thread"),
    ]  # fmt: skip
