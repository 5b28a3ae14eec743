"""From the runs of the stages to a result: a row of metrics per episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse.csgraph import dijkstra

from rapo.cascade.graph import Graph
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo.graphs.fit_search import WINDOW
from rapo.rsd.metrics import auc_ratio, discounted, rag, ratio_of
from rapo.rsd.result import TRACES, RSDResult
from rapo_core.checks import UserError

Array = npt.NDArray[Any]
Float = npt.NDArray[np.floating[Any]]


def joined(
    parts: Sequence[Mapping[str, Any]],
    spans: tuple[int, int, int],
    seed: int,
    gamma: float,
    graph: Graph | None,
    manifest: dict[str, Any],
    *,
    reference: Mapping[str, Array] | None = None,
    other: Mapping[str, Array] | None = None,
) -> RSDResult:
    """One result from the runs of the stages.

    Args:
        parts: of `run_phases`, in the order of the episodes.
        spans: steps of the phases.
        seed: of the first episode.
        gamma: discount of the returns.
        graph: on which the active sets are known, or None.
        manifest: how it was run.
        reference: traces of the Replay of the `P0` reference run, (E, T_rep) by name, or None.
        other: traces of Replay's first steps under another stimulus, or None.
    """
    phase = np.repeat(np.arange(3), spans)
    traces = {name: np.concatenate([p["traces"][name] for p in parts]) for name in TRACES}
    before, after = phase == EXPOSURE, phase == REPLAY
    reach, inside = (traces[name].astype(np.float64) for name in ("reach", "sensitive_mass"))
    odds = traces["odds_ratio"][:, after]
    episodes = np.arange(len(reach))
    stimulus = np.concatenate([p["stimulus"] for p in parts])
    columns = {
        "episode": episodes,
        "seed": seed + episodes,
        "stimulus": stimulus,
        "RAG": rag(reach[:, before], reach[:, after]),
        "AUC_R": auc_ratio(reach[:, before], reach[:, after]),
        "SM_R": auc_ratio(inside[:, before], inside[:, after]),
        "ExposureReturn": discounted(traces["reward"][:, before], gamma),
        "ReplayReturn": discounted(traces["reward"][:, after], gamma),
        "OddsRatio": mean_defined(odds),
        "EventOdds": mean_defined(traces["event_odds_ratio"][:, after]),
        "R_c": _containment(graph, stimulus, parts),
        "ASD": np.concatenate([p["ASD"] for p in parts]),
        "GatingRate": np.concatenate([p["GatingRate"] for p in parts]),
        "ScarMass": traces["scar_mass"][:, phase == DECAY][:, -1].astype(np.float64),
        **_against(reach[:, after], inside[:, after], traces["reward"][:, after], reference, gamma),
        **_selectivity(odds[:, :WINDOW], other),
        "undefined_odds": after.sum() - np.isfinite(odds).sum(axis=1),
        **({} if reference is None else _replay_totals(reference, gamma)),
    }
    return RSDResult(
        frame=pd.DataFrame(columns),
        traces=traces,
        phase=phase,
        scars=_all_or_none([p["scars"] for p in parts]),
        laws=_all_or_none([p["laws"] for p in parts]),
        cascade=parts[0]["cascade"],
        activity=_mean_activity(parts),
        graph=graph,
        manifest=manifest,
    )


def against(result: RSDResult, nominal: RSDResult) -> RSDResult:
    """A result with what `against_P0` adds, from a `P0` reference run that is known already.

    Args:
        result: of any kernel.
        nominal: of the same policy, episodes and draws under `P0`; its constants do not matter.

    Raises:
        ValueError: their episodes differ.
    """
    mine, its = result.frame, nominal.frame
    same = [mine[name].equals(its[name]) for name in ("seed", "stimulus")]
    if not all(same) or not np.array_equal(result.phase, nominal.phase):
        raise UserError(
            "the reference run must have the episodes of the result, got seeds "
            f"{its['seed'].tolist()[:5]} and {len(nominal.phase)} steps in place of "
            f"{mine['seed'].tolist()[:5]} and {len(result.phase)}"
        )
    after, gamma = result.phase == REPLAY, result.manifest["gamma"]
    own, reference = ({n: t[:, after] for n, t in r.traces.items()} for r in (result, nominal))
    reach, inside = (own[name].astype(np.float64) for name in ("reach", "sensitive_mass"))
    columns = {
        **_against(reach, inside, own["reward"], reference, gamma),
        **_replay_totals(reference, gamma),
    }
    manifest = {**result.manifest, "against_P0": True}
    return replace(result, frame=mine.assign(**columns), manifest=manifest)


def mean_defined(values: Array) -> Float:
    """Mean over time (E, T) of what is finite, (E,); NaN where nothing is."""
    series = np.asarray(values, np.float64)
    known = np.isfinite(series)
    counts = known.sum(axis=1)
    sums = np.where(known, series, 0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _replay_totals(reference: Mapping[str, Array], gamma: float) -> dict[str, Float]:
    """Totals of the reference run's Replay: the denominators of the ratios against `P0`."""
    # Indexed as Replay is cut out of its episode: the layout shows in the last digit of a return.
    reward = reference["reward"][:, np.ones(reference["reward"].shape[1], np.bool_)]
    return {
        "P0Reach": reference["reach"].astype(np.float64).sum(axis=1),
        "P0SensitiveMass": reference["sensitive_mass"].astype(np.float64).sum(axis=1),
        "P0Return": discounted(reward, gamma),
    }


def _against(
    reach: Float, inside: Float, reward: Array, reference: Mapping[str, Array] | None, gamma: float
) -> dict[str, Float]:
    """Replay over the Replay of the `P0` reference run, (E,) each; NaN without one."""
    names = ("SM_vs_P0", "Reach_vs_P0", "ReturnKept")
    if reference is None:
        return {name: np.full(len(reach), np.nan) for name in names}
    nominal = _replay_totals(reference, gamma)
    return {
        "SM_vs_P0": ratio_of(inside.sum(axis=1), nominal["P0SensitiveMass"]),
        "Reach_vs_P0": ratio_of(reach.sum(axis=1), nominal["P0Reach"]),
        "ReturnKept": ratio_of(discounted(reward, gamma), nominal["P0Return"]),
    }


def _selectivity(odds: Array, other: Mapping[str, Array] | None) -> dict[str, Float]:
    """Mean odds ratio when Replay begins, under the same and under another stimulus, (E,)."""
    if other is None:
        nothing = np.full(len(odds), np.nan)
        return {"OddsSame": nothing, "OddsOther": nothing, "Selectivity": nothing}
    same, another = mean_defined(odds), mean_defined(other["odds_ratio"])
    return {"OddsSame": same, "OddsOther": another, "Selectivity": another - same}


def _mean_activity(parts: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.float32] | None:
    """(3, n) share of each phase's steps that a node is active, over the episodes of all parts."""
    if any(part["activity"] is None for part in parts):
        return None
    episodes = np.array([len(part["stimulus"]) for part in parts])
    shares = np.stack([part["activity"] for part in parts])
    return np.tensordot(episodes / episodes.sum(), shares, axes=1).astype(np.float32)


def _all_or_none(pieces: list[Any]) -> Any:
    return None if any(piece is None for piece in pieces) else np.concatenate(pieces)


def _containment(
    graph: Graph | None, stimulus: npt.NDArray[np.int64], parts: Sequence[Mapping[str, Any]]
) -> Float:
    """R_c: largest hop distance from the seed support of any node active in Replay; (E,)."""
    if graph is None:
        return np.full(len(stimulus), np.nan)
    ever = np.concatenate([p["ever"] for p in parts])
    hops = {int(z): hops_from_seeds(graph, int(z)) for z in np.unique(stimulus)}
    distance = np.stack([hops[int(z)] for z in stimulus])
    reached = np.where(ever, distance, -1).max(axis=1)
    return np.where(reached >= 0, reached, np.nan)


def hops_from_seeds(graph: Graph, z: int) -> npt.NDArray[np.float64]:
    """(n,) hops along edges from the nearest seed of stimulus `z`, 1-based; inf: out of reach."""
    seeds = graph.support[z - 1]
    return np.asarray(dijkstra(graph.adjacency, indices=seeds, unweighted=True, min_only=True))
