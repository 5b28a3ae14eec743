"""What a setting of the platform gives with fixed policies: cheap enough to try hundreds.

The constant aggressive policy stands in for GE and for a trained RAPO, which both end there or
nearly so; the others tell what there is to trade.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rapo.cascade import stats as row
from rapo.cascade.engine import Cascade
from rapo.cascade.generate import generate
from rapo.cascade.graph import Graph
from rapo.cascade.rng import derive
from rapo.cascade.setting import ACTIONS, AGGRESSIVE, EXPOSURE, REPLAY, Setting
from rapo.envs.task import reward_of
from rapo.rsd.metrics import auc_ratio, discounted, rag

EPISODES = 40
"""RSD episodes per graph and policy."""


def screen(
    setting: Setting, graph_seeds: Sequence[int], nodes: int = 250, episodes: int = EPISODES
) -> dict[str, float]:
    """Means over the graphs of what the fixed policies do.

    Returns:
        RAG, AUC_R, SM_R, ReplayRet, OddsRatio of the aggressive policy under the deformed kernel
        (ReplayRet over `P0`'s); RAG_P0 and its std; moderate_cost and conservative_cost, the
        harm under `P0` over the aggressive one's; moderate_return and conservative_return likewise;
        reach, the mean of |A_t| in Exposure under `P0`; clipped, the share of capped edges;
        sensitive, the share of nodes in V_sens.
    """
    found = [_one(setting, seed, nodes, episodes) for seed in graph_seeds]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def _one(setting: Setting, graph_seed: int, nodes: int, episodes: int) -> dict[str, float]:
    graph = generate(nodes, graph_seed, setting)
    free = [_constant(graph, setting, action, "off", episodes) for action in range(len(ACTIONS))]
    deformed = _constant(graph, setting, AGGRESSIVE, "full", episodes)
    base = free[AGGRESSIVE]
    return {
        **{name: deformed[name] for name in ("RAG", "AUC_R", "SM_R", "OddsRatio")},
        "ReplayRet": deformed["ReplayReturn"] / base["ReplayReturn"],
        "RAG_P0": base["RAG"],
        "RAG_P0_std": base["RAG_std"],
        "moderate_cost": free[1]["harm"] / base["harm"],
        "conservative_cost": free[2]["harm"] / base["harm"],
        "moderate_return": free[1]["ReplayReturn"] / base["ReplayReturn"],
        "conservative_return": free[2]["ReplayReturn"] / base["ReplayReturn"],
        "reach": base["reach"],
        "clipped": graph.meta["capped_edges"] / len(graph.prob),
        "sensitive": float(graph.sensitive.mean()),
    }


def _constant(
    graph: Graph, setting: Setting, action: int, deformation: str, episodes: int
) -> dict[str, float]:
    """RSD of a constant action: it needs no observation, so each run is one kernel call."""
    engine = Cascade(graph, episodes, setting=setting, deformation=deformation)
    keys = derive(derive(np.arange(episodes), 0), 0)
    engine.start(keys, 1 + np.arange(episodes) % graph.stimuli)
    trace = engine.run(action, sum(setting.horizons)).astype(np.float64)  # (T, rows, E)
    phase = np.repeat(np.arange(3), setting.horizons)
    exposure, replay = trace[phase == EXPOSURE], trace[phase == REPLAY]
    most = engine.rates[:, AGGRESSIVE].sum(axis=1, dtype=np.float64)[engine.stimulus - 1]
    steps = replay.transpose(1, 0, 2).reshape(trace.shape[1], -1)
    rewards = reward_of(steps, np.tile(most, len(replay)), setting).reshape(len(replay), -1)
    before, after = exposure[:, row.REACH].T, replay[:, row.REACH].T
    peaks = rag(before, after)
    nominal, passed = replay[:, row.ENTRY_NOMINAL], replay[:, row.ENTRY_DEFORMED]
    return {
        "RAG": float(peaks.mean()),
        "RAG_std": float(peaks.std(ddof=1)),
        "AUC_R": float(auc_ratio(before, after).mean()),
        "SM_R": float(auc_ratio(exposure[:, row.SENSITIVE].T, replay[:, row.SENSITIVE].T).mean()),
        "OddsRatio": float((passed[nominal > 0] / nominal[nominal > 0]).mean()),
        "ReplayReturn": float(discounted(rewards.T, 0.99).mean()),
        "harm": float(trace[:, row.HARM].mean()),
        "reach": float(before.mean()),
    }
