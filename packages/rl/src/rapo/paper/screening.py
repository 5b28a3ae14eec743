"""Measure a setting of the platform with fixed and greedy policies, which is cheap: no training.

The greedy policy looks at the conductance and serves as much as it can; it stands in for a trained
RAPO, and the constant aggressive action under `P0` for GE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.agents.methods import SLOW_DECAY
from rapo.cascade import stats as row
from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.greedy_policy import greedy
from rapo.cascade.setting import ACTIONS, AGGRESSIVE, EXPOSURE, REPLAY, Setting
from rapo.envs.task import reward_of
from rapo.graphs.generate import generate
from rapo.rsd.frame import hops_from_seeds
from rapo.rsd.metrics import auc_ratio, discounted, rag

Float = npt.NDArray[np.float64]
Policy = Callable[[Cascade], Any]

EPISODES = 40
"""Episodes of RSD for each graph and policy."""
EVERY = 5
"""Steps for which the greedy policy keeps its action, and between two looks at the active set."""


def screen(
    setting: Setting, graph_seeds: Sequence[int], nodes: int = 250, episodes: int = EPISODES
) -> dict[str, float]:
    """Return means over graphs; returns are relative to the aggressive action's under `P0`.

    Returns:
        Of the greedy policy under the deformed kernel: RAG, AUC_R, SM_R, ReplayRet, OddsRatio and
        R_c; served, outside (activity outside V_sens) and alive (reach in Exposure's second half),
        each over the aggressive action's under `P0`; off_RAG, off_AUC_R and off_SM_R of off@rep;
        slow_RAG with slowly decaying scars. Of constant actions under the deformed kernel: best,
        the return of the best one of each graph, and gain, the greedy policy's over it, less 1. Of
        constant actions under `P0`: RAG_P0 and its std, R_c_P0, conservative_cost (the harm over
        the aggressive one's), moderate_return and conservative_return. Of the graph: clipped, the
        share of capped edges, and sensitive, the share of nodes in V_sens.
    """
    by_graph = [_one(setting, seed, nodes, episodes) for seed in graph_seeds]
    means = {name: float(np.mean([row[name] for row in by_graph])) for name in by_graph[0]}
    return means | {"gain": means["ReplayRet"] / means["best"] - 1}


def _one(setting: Setting, graph_seed: int, nodes: int, episodes: int) -> dict[str, float]:
    graph = generate(nodes, graph_seed, setting)
    hops = np.stack([hops_from_seeds(graph, z + 1) for z in range(graph.stimuli)])

    def made(deformation: str = "full", delta: float = 1.0) -> Cascade:
        engine = Cascade(
            graph,
            episodes,
            setting=setting,
            params=replace(setting.params, delta=delta),
            deformation=deformation,
        )
        engine.start(
            derive(derive(np.arange(episodes), 0), 0), 1 + np.arange(episodes) % graph.stimuli
        )
        return engine

    def constant(action: int, deformation: str) -> dict[str, Any]:
        return _measured(made(deformation), lambda engine: action, hops)

    free = [constant(action, "off") for action in range(len(ACTIONS))]
    fixed = [constant(action, "full") for action in range(len(ACTIONS))]
    base = free[AGGRESSIVE]
    engine = made()
    before = _phase(engine, greedy, EXPOSURE)
    _phase(engine, greedy, 1)
    state = engine.snapshot()
    deformed = _judged(engine, before, _phase(engine, greedy, REPLAY), hops)
    engine.restore(state)
    engine.set_deformation(False)
    off = _judged(engine, before, _phase(engine, greedy, REPLAY), hops)
    slow = _measured(made(delta=SLOW_DECAY), greedy, hops)
    returns = [each["ReplayReturn"] / base["ReplayReturn"] for each in fixed]
    names = ("RAG", "AUC_R", "SM_R", "OddsRatio", "R_c")
    return {
        **{name: deformed[name] for name in names},
        "ReplayRet": deformed["ReplayReturn"] / base["ReplayReturn"],
        "served": deformed["served"] / base["served"],
        "outside": deformed["outside"] / base["outside"],
        "alive": deformed["late"] / base["late"],
        "off_RAG": off["RAG"],
        "off_AUC_R": off["AUC_R"],
        "off_SM_R": off["SM_R"],
        "slow_RAG": slow["RAG"],
        "best": max(returns),
        "RAG_P0": base["RAG"],
        "RAG_P0_std": base["RAG_std"],
        "R_c_P0": base["R_c"],
        "conservative_cost": free[2]["harm"] / base["harm"],
        "moderate_return": free[1]["ReplayReturn"] / base["ReplayReturn"],
        "conservative_return": free[2]["ReplayReturn"] / base["ReplayReturn"],
        "clipped": graph.meta["capped_edges"] / len(graph.prob),
        "sensitive": float(graph.sensitive.mean()),
    }


def _phase(engine: Cascade, policy: Policy, phase: int) -> tuple[Float, npt.NDArray[np.bool_]]:
    """Run one phase; return its trace (T, rows, E), and which nodes were seen active (E, n)."""
    seen = np.zeros((engine.episodes, engine.graph.n), np.bool_)
    parts, left = [], engine.setting.horizons[phase]
    while left:
        steps = min(EVERY, left)
        parts.append(engine.run(policy(engine), steps))
        left -= steps
        if left:  # with the last step the next phase has begun
            seen |= engine.active
    return np.concatenate(parts).astype(np.float64), seen


def _measured(engine: Cascade, policy: Policy, hops: Float) -> dict[str, Any]:
    """Run RSD with a policy; return its numbers."""
    before = _phase(engine, policy, EXPOSURE)
    _phase(engine, policy, 1)
    return _judged(engine, before, _phase(engine, policy, REPLAY), hops)


def _judged(engine: Cascade, before: Any, after: Any, hops: Float) -> dict[str, Any]:
    exposure, replay, seen = before[0], after[0], after[1]
    setting, z = engine.setting, engine.stimulus - 1
    most = engine.rates[:, AGGRESSIVE].sum(axis=1, dtype=np.float64)[z]
    steps = replay.transpose(1, 0, 2).reshape(replay.shape[1], -1)
    rewards = reward_of(steps, np.tile(most, len(replay)), setting).reshape(len(replay), -1)
    first, second = exposure[:, row.REACH].T, replay[:, row.REACH].T
    peaks = rag(first, second)
    nominal, passed = replay[:, row.ENTRY_NOMINAL], replay[:, row.ENTRY_DEFORMED]
    odds = np.divide(passed, nominal, out=np.zeros_like(passed), where=nominal > 0)
    defined = (nominal > 0).sum(axis=0)  # 0 where no step of an episode has harmful mass
    met = defined > 0
    by_episode = odds.sum(axis=0)[met] / defined[met]
    far = np.where(seen & np.isfinite(hops[z]), hops[z], 0).max(axis=1)
    harm = np.concatenate([exposure, replay])[:, row.HARM]
    return {
        "RAG": float(peaks.mean()),
        "RAG_std": float(peaks.std(ddof=1)),
        "AUC_R": float(auc_ratio(first, second).mean()),
        "SM_R": float(auc_ratio(exposure[:, row.SENSITIVE].T, replay[:, row.SENSITIVE].T).mean()),
        "OddsRatio": float(by_episode.mean()) if met.any() else float("nan"),
        "ReplayReturn": float(discounted(rewards.T, 0.99).mean()),
        "R_c": float(far.mean()),
        "served": float((replay[:, row.SERVED] / most).mean()),
        "outside": float((replay[:, row.REACH] - replay[:, row.SENSITIVE]).mean()),
        "late": float(exposure[len(exposure) // 2 :, row.REACH].mean()),
        "harm": float(harm.mean()),
    }
