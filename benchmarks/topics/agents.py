"""Training steps a second: our PPO beside Stable-Baselines3, and beside the processor's limit."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

import benchmarks
from benchmarks.effort import Effort
from benchmarks.peers import HOW_TO_INSTALL, installed
from benchmarks.peers.sb3_ppo import Sb3PPO, canned_env, single_envs
from benchmarks.table import Row, missing
from benchmarks.timing import Contestant, Timings, interleave

TITLE = "Training: PPO, 16 environments, rollout 2048, minibatch 256, 4 epochs, one thread"

EPISODE = 1200
"""Steps of a canned episode, as many as an RSD episode has."""
FRAMES = 32
"""Prepared observations of each environment, shown again and again."""
ACTIONS = 3
AT_LEAST: dict[int, float | None] = {10: 2.5, 105: None, 510: 1.8}
"""Entries of an observation, and how many times SB3's steps a second we must reach.

10 is what every method sees; 105 adds RAPO's fields at 250 nodes; 510 stands for many regions.
"""
LIMITED = (10, 510)
"""Sizes whose matrix products are held against the processor's limit."""
SQUARE = 256
"""Rows and columns of the product that stands for the limit."""
TOGETHER = 3
"""Rollouts that one of two processes trains for in a round."""
OURS, SB3, SGEMM, RAPO, RNN = "ours", "SB3", "sgemm", "RAPO", "PM-RNN"
RATIO, REAL, PAIR = "steps a second, ours / SB3", "n = 250", "two processes"
SHARE = 0.15
"""The most of training that the environment may take."""
TWICE = 1.7
"""How many times the steps a second of one process two of them must reach."""
NO_TORCH = "torch not installed (pip install -r benchmarks/requirements.txt)"
SAME = "same network, numbers and observations; ours also normalises them"


class Canned:
    """Random observations made beforehand; episodes end at another step in each environment."""

    def __init__(self, size: int, envs: int) -> None:
        self.envs = envs
        frames = np.random.default_rng(0).normal(size=(FRAMES, envs, size))
        self.frames = frames.astype(np.float32)
        self.first = self.frames[0]
        self.at = 0
        self.clock = np.arange(envs) * EPISODE // envs

    def step(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """The next observations, and which episodes are over."""
        self.at = (self.at + 1) % FRAMES
        self.clock += 1
        over = self.clock == EPISODE
        self.clock[over] = 0
        return self.frames[self.at], over


class CannedVectorEnv(VectorEnv[Any, Any, Any]):
    """The same behind Gymnasium's interface: reward 1, autoreset within the step."""

    def __init__(self, size: int, envs: int) -> None:
        self.canned, self.num_envs = Canned(size, envs), envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = spaces(size)
        self.reward = np.ones(envs)
        self.never = np.zeros(envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.canned.first, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        x, over = self.canned.step()
        info = {"final_obs": x, "_final_obs": over} if over.any() else {}
        return x, self.reward, self.never, over, info


def spaces(size: int) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    """Of one environment."""
    box = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
    return box, gymnasium.spaces.Discrete(ACTIONS)


class Training:
    """Our PPO as something to be timed; keeps the environment's share of every block."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.shares: list[float] = []

    def run(self, rollouts: int) -> None:
        inside, start = self.learner.env_seconds, time.perf_counter()
        for _ in range(rollouts):
            self.learner.iterate()
        inside = self.learner.env_seconds - inside
        self.shares.append(inside / (time.perf_counter() - start))

    def contestant(self, name: str) -> Contestant:
        """Timed per environment step."""
        return Contestant(name, self.run, self.learner.config.rollout)


def canned_training(size: int) -> Training:
    """Our PPO on canned observations, all numbers the defaults."""
    from rapo.agents.config import PPOConfig
    from rapo.agents.ppo import PPO

    config = PPOConfig()
    return Training(PPO(CannedVectorEnv(size, config.envs), config))


def real_training(method: str) -> Training:
    """Our PPO on the graph of 250 nodes, as `rapo train` runs it."""
    from rapo.agents.resolve import resolve
    from rapo.agents.run_config import graph_run

    return Training(resolve(graph_run(method)).learner())


def sgemm() -> Contestant:
    """A product of two square matrices, in floating-point operations."""
    import torch

    a, b, out = torch.rand(3, SQUARE, SQUARE).unbind()

    def run(repeats: int) -> None:
        for _ in range(repeats):
            torch.mm(a, b, out=out)

    return Contestant(SGEMM, run, 2 * SQUARE**3)


def flops(config: Any, inputs: int, outputs: tuple[int, ...]) -> int:
    """Floating-point operations in matrix products per environment step.

    In every epoch: forward, gradient of the weights, and gradient of the inputs of all layers but
    the first; before that, one forward to act and one to value.

    Args:
        config: our `PPOConfig`.
        inputs: entries of an observation.
        outputs: of each network.
    """
    total = 0
    for last in outputs:
        first = 2 * inputs * config.hidden
        others = 2 * config.hidden * (config.hidden + last)
        forward, backward = first + others, first + 2 * others
        total += forward + config.epochs * (forward + backward)
    return total


def serve() -> None:
    """Child process: train for as many rollouts as each line of the input says."""
    import torch

    torch.set_num_threads(1)
    training = canned_training(int(sys.argv[1]))
    training.run(2)
    print("warm", flush=True)
    for line in sys.stdin:
        training.run(int(line))
        print("done", flush=True)


class Child:
    """A process that trains on request."""

    def __init__(self, size: int) -> None:
        program = "from benchmarks.topics.agents import serve; serve()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            cwd=Path(benchmarks.__file__).resolve().parent.parent,
        )  # fmt: skip

    def ask(self, rollouts: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rollouts}\n")

    def wait(self) -> None:
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError("a training process ended early; its error is above")

    def close(self) -> None:
        self.process.communicate()  # closes its input, which ends its loop


def measure(effort: Effort) -> list[Row]:
    """All figures; those of SB3 only if it is installed."""
    if not installed("torch"):
        return without_torch()
    import torch

    torch.set_num_threads(1)
    rows, threads = [], {}
    for size in AT_LEAST:
        effort.progress(f"observations of {size}: building")
        found, times = canned_rows(size, effort)
        rows += found
        threads |= {f"{name}, {size}": share for name, share in times.threads.items()}
    effort.progress("graph of 250 nodes: building")
    found, times = real_rows(effort)
    rows += found
    threads |= times.threads
    rows += [pair_row(size, effort) for size in LIMITED]
    busiest = max(threads, key=lambda name: threads[name])
    rows.append(
        Row("processor time / elapsed time, largest", threads[busiest], "x", case="all",
            at_most=1.3, note=f"{busiest}; 1 is one thread")
    )  # fmt: skip
    return rows


def without_torch() -> list[Row]:
    """Every figure that has a target, not measured."""
    targets = [
        *((RATIO, canned_case(size), {"unit": "x", "at_least": least})
          for size, least in AT_LEAST.items() if least is not None),
        *((share_figure(method), REAL, {"at_most": SHARE}) for method in ("GE", RAPO)),
        *((pair_figure(size), PAIR, {"unit": "x", "at_least": TWICE}) for size in LIMITED),
    ]  # fmt: skip
    return [missing(figure, NO_TORCH, case=case, **target) for figure, case, target in targets]


def canned_case(size: int) -> str:
    return f"canned, {size} entries"


def share_figure(method: str) -> str:
    return f"environment's share of training, {method}"


def pair_figure(size: int) -> str:
    return f"steps a second, two / one, {size} entries"


def canned_rows(size: int, effort: Effort) -> tuple[list[Row], Timings]:
    """Ours beside SB3 and beside the limit, where the environment costs nothing."""
    training = canned_training(size)
    learner = training.learner
    contestants = [training.contestant(OURS)]
    if installed("stable_baselines3"):
        peer = Sb3PPO(canned_env(Canned(size, learner.config.envs), *spaces(size)), learner.config)
        if peer.weights != len(learner.buffer.values):
            raise RuntimeError(f"{peer.weights} and {len(learner.buffer.values)} weights differ")
        contestants.append(Contestant(SB3, peer.run, learner.config.rollout))
    contestants.append(sgemm())
    times = interleave(contestants, effort.rounds, effort.progress)
    case = canned_case(size)
    rows = [ratio_row(times, case, AT_LEAST[size], SAME)]
    if size in LIMITED:
        work = flops(learner.config, size, (ACTIONS, 1))
        rows.append(
            Row("share of the sgemm limit", work * times.ratio(SGEMM, OURS), case=case,
                note=f"{work / 1e6:.2f} Mflop a step in matrix products; limit at best "
                     f"{1 / times.best(SGEMM):.0f} Gflop/s in {SQUARE} x {SQUARE}; the prototype "
                     "reached 0.52 to 0.63")
        )  # fmt: skip
    return rows, times


def real_rows(effort: Effort) -> tuple[list[Row], Timings]:
    """GE, RAPO and PM-RNN on 250 nodes; GE beside SB3."""
    trainings = {name: real_training(m) for name, m in ((OURS, "GE"), (RAPO, RAPO), (RNN, RNN))}
    config = trainings[OURS].learner.config
    contestants = [training.contestant(name) for name, training in trainings.items()]
    if installed("stable_baselines3"):
        env = single_envs(config.envs, nodes=250, graph_seed=0, deformation="off")
        contestants.insert(1, Contestant(SB3, Sb3PPO(env, config).run, config.rollout))
    rounds = min(effort.rounds, 9)
    times = interleave(contestants, rounds, effort.progress)
    rows = [ratio_row(times, REAL, None, "GE; SB3 steps 16 single environments in turn")]
    for name, method in ((OURS, "GE"), (RAPO, RAPO)):
        share = statistics.median(trainings[name].shares[-rounds:])  # without the warm-up
        rows.append(
            Row(share_figure(method), share, case=REAL, at_most=SHARE,
                note=f"{1e9 / times.best(name):,.0f} steps/s")
        )  # fmt: skip
    rows.append(
        Row("training, PM-RNN", 1e9 / times.best(RNN), "steps/s", case=REAL,
            note="128 GRU units, unrolled over 50 steps")
    )  # fmt: skip
    return rows, times


def ratio_row(times: Timings, case: str, at_least: float | None, note: str) -> Row:
    """Our steps a second over those of SB3."""
    if SB3 not in times.ns:
        return missing(RATIO, HOW_TO_INSTALL, unit="x", case=case, at_least=at_least)
    speed = [f"{1e9 / times.best(name):,.0f}" for name in (OURS, SB3)]
    return Row(
        RATIO,
        times.ratio(SB3, OURS),
        "x",
        case=case,
        at_least=at_least,
        note=f"{speed[0]} and {speed[1]} steps/s; {note}",
    )


def pair_row(size: int, effort: Effort) -> Row:
    """Two processes at once over one alone, in turn."""
    target: dict[str, Any] = {"unit": "x", "case": PAIR, "at_least": TWICE}
    figure = pair_figure(size)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (cores or 1) < 2:
        return missing(figure, "needs two processors", **target)
    effort.progress(f"two processes, {size} entries: warming up")
    children = [Child(size), Child(size)]
    try:
        for child in children:
            child.wait()
        ratios, alone = [], []
        for i in range(min(effort.rounds, 9)):
            effort.progress(f"two processes, {size} entries: round {i + 1}")
            one = _elapsed([children[i % 2]])
            ratios.append(2 * one / _elapsed(children))
            alone.append(one)
    finally:
        for child in children:
            child.close()
    from rapo.agents.config import PPOConfig

    speed = TOGETHER * PPOConfig().rollout / min(alone)
    note = f"until the slower is done; {speed:,.0f} steps/s alone"
    return Row(figure, statistics.median(ratios), note=note, **target)


def _elapsed(children: list[Child]) -> float:
    """Seconds until all of them have trained for a round."""
    start = time.perf_counter()
    for child in children:
        child.ask(TOGETHER)
    for child in children:
        child.wait()
    return time.perf_counter() - start
