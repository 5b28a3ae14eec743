"""What a setting gives with constant actions and a greedy policy, on a few graphs.

The greedy policy sees the conductance and takes the action that serves most. It stands for a
trained RAPO, and the constant aggressive action under `P0` stands for GE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.agents.methods import SLOW_DECAY
from rapo.cascade import stats as row
from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.greedy_policy import greedy
from rapo.cascade.setting import ACTIONS, AGGRESSIVE, DECAY, EXPOSURE, REPLAY, Setting
from rapo.envs.task import report_of, reward_of
from rapo.graphs.generate import generate
from rapo.rsd.frame import hops_from_seeds
from rapo.rsd.metrics import auc_ratio, discounted, rag

Float = npt.NDArray[np.float64]
Policy = Callable[[Cascade], Any]

EVERY = 5
"""Steps for which the greedy policy keeps its action, and between two looks at the active set."""
LOW = 0.15
"""Share of the mean sensitive mass of its graph, action and kernel below which an Exposure has no
cascade to divide by."""
GAMMA = 0.99


@dataclass(frozen=True)
class Phase:
    """One phase of all episodes."""

    trace: Float
    """(T, len(STATS), E) what the engine reported of every step."""
    seen: npt.NDArray[np.bool_]
    """(E, n) nodes that were active at one of the looks, `EVERY` steps apart."""

    def of(self, stat: int) -> Float:
        """(E, T) of one statistic."""
        return self.trace[:, stat].T


def measure(
    setting: Setting, graph_seeds: Sequence[int], *, nodes: int = 250, episodes: int = 20
) -> dict[str, float]:
    """Means over graphs of what constant actions and the greedy policy do.

    Returns:
        Of the greedy policy under the deformed kernel: RAG, AUC_R, SM_R, ReplayRet, OddsRatio,
        MassOdds, R_c, served, outside, and correlation (of OddsRatio and RAG over its episodes);
        off_* when Replay is not deformed; slow_RAG with slowly decaying scars; gain, its return
        over that of the graph's best constant, less 1. R_c_kept is R_c over R_c_P0.
        Of the constants: aggressive, moderate and conservative, their returns under the deformed
        kernel; moderate_P0 and conservative_P0, their returns under `P0`; low_P0 and high_P0, the
        least and the largest mean ratio of any of them under `P0`; harm_P0, the least harm of one
        over the aggressive one's; low, the share of their Exposures without a cascade, under
        either kernel.
        Of the aggressive one under `P0`: RAG_P0, RAG_P0_std over its episodes, R_c_P0, and peak,
        the mean largest |A_t| of Exposure. Of the graph: capped, the share of edges at the cap;
        sensitive, the share of nodes in V_sens; redrawn and failing, shares of its stimuli.
        Returns, served and outside are relative to the aggressive constant under `P0`.
    """
    graphs = [_of_graph(setting, seed, nodes, episodes) for seed in graph_seeds]
    means = {name: float(np.mean([each[name] for each in graphs])) for name in graphs[0]}
    ratios = [
        means.pop(f"{name}_{action}_P0") for name in ("RAG", "AUC_R", "SM_R") for action in ACTIONS
    ]
    means |= {"low_P0": min(ratios), "high_P0": max(ratios)}
    means["R_c_kept"] = means["R_c"] / means["R_c_P0"] if means["R_c_P0"] else 1.0
    return means


def _of_graph(setting: Setting, graph_seed: int, nodes: int, episodes: int) -> dict[str, float]:
    graph = generate(nodes, graph_seed, setting)
    hops = np.stack([hops_from_seeds(graph, z + 1) for z in range(graph.stimuli)])

    def run(policy: Policy, deformation: str, delta: float = 1.0) -> tuple[Cascade, Phase]:
        params = replace(setting.params, delta=delta)
        engine = Cascade(graph, episodes, setting=setting, params=params, deformation=deformation)
        keys = derive(derive(np.arange(episodes), 0), 0)
        engine.start(keys, 1 + np.arange(episodes) % graph.stimuli)
        exposure = _phase(engine, policy, EXPOSURE)
        _phase(engine, policy, DECAY)
        return engine, exposure

    def scored(policy: Policy, deformation: str, delta: float = 1.0) -> dict[str, Any]:
        engine, exposure = run(policy, deformation, delta)
        return _scores(engine, exposure, _phase(engine, policy, REPLAY), hops)

    nominal = [scored(_constant(action), "off") for action in range(len(ACTIONS))]
    constant = [scored(_constant(action), "full") for action in range(len(ACTIONS))]
    base = nominal[AGGRESSIVE]
    engine, exposure = run(greedy, "full")
    at_replay = engine.snapshot()
    deformed = _scores(engine, exposure, _phase(engine, greedy, REPLAY), hops)
    engine.restore(at_replay)
    engine.set_deformation(False)
    off = _scores(engine, exposure, _phase(engine, greedy, REPLAY), hops)
    slow = scored(greedy, "full", SLOW_DECAY)
    returns = [each["ReplayReturn"] / base["ReplayReturn"] for each in constant]
    kept = deformed["ReplayReturn"] / base["ReplayReturn"]
    names = ("RAG", "AUC_R", "SM_R", "OddsRatio", "MassOdds", "R_c", "correlation")
    return {
        **{name: deformed[name] for name in names},
        "ReplayRet": kept,
        "served": deformed["served"] / base["served"],
        "outside": deformed["outside"] / max(base["outside"], 1e-9),
        **{f"off_{name}": off[name] for name in ("RAG", "AUC_R", "SM_R")},
        "slow_RAG": slow["RAG"],
        "gain": kept / max(returns) - 1,
        **dict(zip(ACTIONS, returns, strict=True)),
        **{f"{ACTIONS[a]}_P0": nominal[a]["ReplayReturn"] / base["ReplayReturn"] for a in (1, 2)},
        **{
            f"{name}_{action}_P0": each[name]
            for name in ("RAG", "AUC_R", "SM_R")
            for action, each in zip(ACTIONS, nominal, strict=True)
        },
        "harm_P0": min(each["harm"] for each in nominal) / max(base["harm"], 1e-9),
        "low": float(np.mean([each["low"] for each in (*nominal, *constant)])),
        "RAG_P0": base["RAG"],
        "RAG_P0_std": base["RAG_std"],
        "R_c_P0": base["R_c"],
        "peak": base["peak"],
        "capped": graph.meta["capped_edges"] / max(graph.edges, 1),
        "sensitive": float(graph.sensitive.mean()),
        "redrawn": graph.meta.get("redrawn_stimuli", 0) / graph.stimuli,
        "failing": graph.meta.get("failing_stimuli", 0) / graph.stimuli,
    }


def _constant(action: int) -> Policy:
    return lambda engine: np.full(engine.episodes, action)


def _phase(engine: Cascade, policy: Policy, phase: int) -> Phase:
    seen = np.zeros((engine.episodes, engine.graph.n), np.bool_)
    parts, left = [], engine.setting.horizons[phase]
    while left:
        steps = min(EVERY, left)
        parts.append(engine.run(policy(engine), steps))
        left -= steps
        if left:  # with the last step the next phase has begun
            seen |= engine.active
    return Phase(np.concatenate(parts).astype(np.float64), seen)


def _scores(engine: Cascade, exposure: Phase, replay: Phase, hops: Float) -> dict[str, float]:
    z, steps = engine.stimulus - 1, len(replay.trace)
    most = engine.rates[:, AGGRESSIVE].sum(axis=1, dtype=np.float64)[z]
    stats = replay.trace.transpose(1, 0, 2).reshape(len(row.STATS), -1).astype(np.float32)
    rewards = reward_of(stats, np.tile(most, steps), engine.setting).reshape(steps, -1)
    report = report_of(stats)
    odds = _mean_defined(report["event_odds_ratio"].reshape(steps, -1))
    mass_odds = _mean_defined(report["odds_ratio"].reshape(steps, -1))
    peaks = rag(exposure.of(row.REACH), replay.of(row.REACH))
    far = np.where(replay.seen & np.isfinite(hops[z]), hops[z], 0).max(axis=1)
    mass = exposure.of(row.SENSITIVE).sum(axis=1)
    both = np.isfinite(odds)
    varies = both.sum() > 1 and peaks[both].std() > 0 and odds[both].std() > 0
    return {
        "RAG": float(peaks.mean()),
        "RAG_std": float(peaks.std(ddof=1)),
        "AUC_R": float(auc_ratio(exposure.of(row.REACH), replay.of(row.REACH)).mean()),
        "SM_R": float(auc_ratio(exposure.of(row.SENSITIVE), replay.of(row.SENSITIVE)).mean()),
        "OddsRatio": float(odds[both].mean()) if both.any() else 1.0,
        "MassOdds": float(mass_odds[both].mean()) if both.any() else 1.0,
        "correlation": float(np.corrcoef(odds[both], peaks[both])[0, 1]) if varies else 0.0,
        "ReplayReturn": float(discounted(rewards.T, GAMMA).mean()),
        "R_c": float(far.mean()),
        "served": float((replay.trace[:, row.SERVED] / most).mean()),
        "outside": float((replay.of(row.REACH) - replay.of(row.SENSITIVE)).mean()),
        "harm": float((exposure.of(row.HARM).sum() + replay.of(row.HARM).sum()) / len(z)),
        "peak": float(exposure.of(row.REACH).max(axis=1).mean()),
        "low": float((mass < LOW * mass.mean()).mean()) if mass.any() else 1.0,
    }


def _mean_defined(values: npt.NDArray[np.floating[Any]]) -> Float:
    """(E,) means over the steps at which (T, E) values are defined; NaN where none is."""
    defined = np.isfinite(values)
    count = defined.sum(axis=0)
    total = np.where(defined, values, 0).sum(axis=0)
    means: Float = np.full(values.shape[1], np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means
