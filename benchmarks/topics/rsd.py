"""RSD: all episodes at once against stepping the single environment through the same policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import rapo
from benchmarks.effort import Effort
from benchmarks.table import Row, missing

TITLE = "RSD: 200 episodes of 500/200/500 steps, 250 nodes, a network of 2x256, one thread"
EPISODES = 200
STEPS = 1200


def measure(effort: Effort) -> list[Row]:
    """Time of the diagnostic, of the single environment, and of the recording."""
    try:
        import torch
    except ImportError:
        return [missing("the diagnostic", "torch is not installed (pip install torch)")]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(5, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256),
              torch.nn.ReLU(), torch.nn.Linear(256, 3)]  # fmt: skip
    network = torch.nn.Sequential(*layers)
    env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=250, graph_seed=0)
    rapo.rsd.evaluate(env, network, episodes=2, horizons=(5, 5, 5))  # compile
    whole, bare, single = [], [], []
    for _ in range(max(2, effort.rounds // 5)):
        whole.append(_timed(lambda: rapo.rsd.evaluate(env, network, episodes=EPISODES)))
        bare.append(_timed(lambda: _bare(env, network)))
        single.append(_timed(lambda: _single(env, network)) * EPISODES)
    ratio = float(np.median(np.divide(single, whole)))
    recording = float(np.median(1 - np.divide(bare, whole)))
    return [
        Row("the diagnostic", min(whole), "s", note=f"{EPISODES * STEPS:,} episode-steps"),
        Row("single environment / diagnostic", ratio, "x", at_least=50,
            note=f"{min(single):.0f} s, scaled up from one episode a round"),
        Row("share of the run that is recording", recording, at_most=0.2,
            note=f"the same steps and actions alone take {min(bare):.2f} s"),
    ]  # fmt: skip


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _bare(env: Any, network: Any) -> None:
    """The steps and the actions of the diagnostic, with nothing written down."""
    from rapo.envs.stage import VectorStage
    from rapo.rsd.policy import as_actor

    vector = env.unwrapped.vector.like(EPISODES, schedule="external", autoreset_mode="Disabled")
    stage = VectorStage(vector, 0, None)
    actor = as_actor(network, vector.single_action_space)
    for phase, span in enumerate(vector.setting.horizons):
        x = stage.begin(phase)
        actor.reset(EPISODES, 0)
        for step in range(span):
            x, _, _ = stage.step(actor.act(x, stage.draws(step))[0])


def _single(env: Any, network: Any) -> None:
    """One episode, a step and an action at a time."""
    import torch

    x, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    done = False
    while not done:
        with torch.no_grad():
            law = torch.softmax(network(torch.as_tensor(x)[None]), -1).numpy()[0]
        action = int((rng.random() >= np.cumsum(law)[:-1]).sum())
        x, _, _, done, _ = env.step(action)
