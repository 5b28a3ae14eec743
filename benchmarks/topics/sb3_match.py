"""Returns of our PPO beside Stable-Baselines3's, each with its own numbers and with the same ones.

Two environments, two lengths, ten seeds: hours on one core, so it is run only when named. Every run
goes to `results/sb3_match/runs.csv` as it ends, and the same command goes on with what is there;
`--rounds 3` looks at three seeds. LunarLander needs Box2D (benchmarks/requirements.txt).
"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from benchmarks.effort import Effort
from benchmarks.peers import HOW_TO_INSTALL, installed
from benchmarks.table import Row, missing

TITLE = "Returns of PPO over 20 episodes of evaluation, ours beside Stable-Baselines3's"
OUT = Path(__file__).resolve().parents[2] / "results" / "sb3_match"
SOLVED = {"CartPole-v1": 475.0, "LunarLander-v3": 200.0}
"""Mean return from which an environment counts as solved."""
SEEDS = 10
EPISODES = 20
FIRST = 10_000
"""Seed of the first episode of an evaluation; trainings of SB3 have small ones, ours from 2^40."""
COLUMNS = ("env", "contestant", "length", "seed", "steps", "stochastic", "greedy", "seconds")
"""`seconds` are the processor's."""
SB3, OURS, SAME, PAPER = "SB3", "ours", "ours, not steady", "ours, paper's numbers"
"""Ours is `PPOConfig.for_gymnasium()`, which has SB3's numbers; not steady is what it mends."""
NAMES = {25_000: (SB3, OURS, SAME, PAPER), 200_000: (SB3, OURS)}
"""Who trains, by steps of a training, which are rounded up to rollouts; SB3 comes first."""

Act = Callable[[npt.NDArray[np.float32], bool], npt.NDArray[np.int64]]


class Theirs:
    """SB3's PPO with all its defaults."""

    def __init__(self, env: str, seed: int) -> None:
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import Logger

        self.model = PPO("MlpPolicy", env, seed=seed, device="cpu")
        self.model.set_logger(Logger(None, []))

    @property
    def steps(self) -> int:
        return int(self.model.num_timesteps)

    def train(self, steps: int) -> None:
        """Until there are at least so many."""
        self.model.learn(steps - self.steps, log_interval=None, reset_num_timesteps=False)

    def act(self, x: npt.NDArray[np.float32], greedy: bool) -> npt.NDArray[np.int64]:
        return np.asarray(self.model.predict(x, deterministic=greedy)[0])


class Mine:
    """Our PPO."""

    def __init__(self, config: Any, env: str, seed: int) -> None:
        from rapo.agents.agent import Agent
        from rapo.agents.ppo import PPO

        self.learner = PPO(copies(env, config.envs), config, seed=seed)
        self.agent = Agent(self.learner.model, self.learner.normaliser)
        self.rng = np.random.default_rng(seed)

    @property
    def steps(self) -> int:
        return self.learner.steps

    def train(self, steps: int) -> None:
        """Until there are at least so many."""
        while self.steps < steps:
            self.learner.iterate()

    def act(self, x: npt.NDArray[np.float32], greedy: bool) -> npt.NDArray[np.int64]:
        if greedy:
            return np.asarray(self.agent.law(x).argmax(axis=1))
        return self.agent.act(x, self.rng.random(len(x)))[0]


def copies(env: str, count: int) -> SyncVectorEnv:
    """So many copies side by side, autoreset within the step."""
    return SyncVectorEnv(
        [lambda: gymnasium.make(env)] * count, autoreset_mode=AutoresetMode.SAME_STEP
    )


def contestants() -> dict[str, Callable[[str, int], Any]]:
    """Made from an environment and a seed."""
    from rapo.agents.config import PPOConfig

    configs = {
        OURS: PPOConfig.for_gymnasium(), SAME: PPOConfig.for_gymnasium(steady=False),
        PAPER: PPOConfig(),
    }  # fmt: skip
    return {SB3: Theirs, **{name: partial(Mine, config) for name, config in configs.items()}}


def evaluate(env: str, act: Act, greedy: bool) -> float:
    """Mean return of one episode of each copy."""
    played = copies(env, EPISODES)
    x, _ = played.reset(seed=[FIRST + i for i in range(EPISODES)])
    running, returns = np.ones(EPISODES, np.bool_), np.zeros(EPISODES)
    while running.any():
        x, reward, terminated, truncated, _ = played.step(act(np.asarray(x, np.float32), greedy))
        returns += running * reward
        running &= ~(terminated | truncated)
    played.close()
    return float(returns.mean())


def run(seeds: int, progress: Callable[[str], object] = print) -> None:
    """Train and evaluate what is not yet in the file; the shorter trainings come first."""
    made = contestants()
    done = {(r["env"], r["contestant"], int(r["length"]), int(r["seed"])) for r in read()}
    every = [(env, name, length, seed) for length, names in NAMES.items() for seed in range(seeds)
             for env in SOLVED for name in names]  # fmt: skip
    for env, name, length, seed in every:
        if (env, name, length, seed) in done:
            continue
        progress(f"sb3_match: {env}, {name}, {length:,} steps, seed {seed}")
        start = time.process_time()
        contestant = made[name](env, seed)
        contestant.train(length)
        seconds = time.process_time() - start
        returns = [evaluate(env, contestant.act, greedy) for greedy in (False, True)]
        add((env, name, length, seed, contestant.steps, *(f"{r:.2f}" for r in returns),
             f"{seconds:.1f}"))  # fmt: skip


def measure(effort: Effort) -> list[Row]:
    """Mean returns and how many seeds solve the environment; ours must not be below SB3's."""
    import torch

    torch.set_num_threads(1)
    if not installed("stable_baselines3", "Box2D"):
        return [missing("all", HOW_TO_INSTALL)]
    run(min(effort.rounds, SEEDS), effort.progress)
    return [row for env in SOLVED for length, names in NAMES.items()
            for row in compared(env, length, names)]  # fmt: skip


def compared(env: str, length: int, names: Sequence[str]) -> list[Row]:
    """Rows of one environment and length, over the seeds that all contestants have."""
    found: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in names}
    for r in read():
        if (r["env"], int(r["length"])) == (env, length) and r["contestant"] in found:
            returns = float(r["stochastic"]), float(r["greedy"])
            found[r["contestant"]][int(r["seed"])] = returns
    seeds = sorted(set.intersection(*(set(runs) for runs in found.values())))
    if not seeds:
        return []
    rows, bar = [], {}
    for name in names:
        for kind, words in enumerate(("stochastic", "greedy")):
            returns = [found[name][seed][kind] for seed in seeds]
            solved = sum(value >= SOLVED[env] for value in returns)
            mean = statistics.fmean(returns)
            bar.setdefault(words, mean)  # of SB3, which comes first
            rows.append(
                Row(f"{name}, {words}", mean, case=f"{env}, {length:,} steps",
                    at_least=bar[words] if name == OURS else None,
                    note=f"{solved} of {len(seeds)} seeds solve it; lowest {min(returns):.0f}")
            )  # fmt: skip
    return rows


def read() -> list[dict[str, str]]:
    path = OUT / "runs.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(row: tuple[Any, ...]) -> None:
    """A row more in the file."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "runs.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, row] if fresh else [row])
