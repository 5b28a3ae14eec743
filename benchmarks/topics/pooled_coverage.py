"""Pooled ratios: how often their intervals cover 1 under P0, where 1 is the truth.

Real networks, whose Exposure varies much, are read from `shared/data` beside the repository; with
`--rounds 100` every graph has 100 blocks of 20 episodes, and 20 of 100.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import stats

import rapo
from benchmarks.effort import Effort
from benchmarks.table import Row, missing
from rapo.cascade.graph import Graph
from rapo.policies import ConstantPolicy
from rapo.rsd.bootstrap import judge_tails, ratio_bootstrap
from rapo.rsd.metrics import EPSILON
from rapo.rsd.pooled import RESAMPLES, totals
from rapo.rsd.statistics import mean_interval

TITLE = "95% intervals that cover 1 under P0: blocks of episodes, constant aggressive action"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
NETWORKS = ("email_eu_core", "congress_twitter", "wiki_vote", "bitcoin_otc")
METRICS = ("RAG", "AUC_R", "SM_R")
BLOCK, LARGE = 20, 100
"""Episodes of a block, and of a block large enough for a bias to show."""
REQUIRED = 10
"""Blocks of each real network that the target is about."""
SEED = 1000
CHUNK = 200

Sides = dict[str, tuple[Any, Any]]
"""By metric: numerators and denominators, (episodes,) each."""
Interval = Callable[[Any, Any], tuple[float, float]]


def measure(effort: Effort) -> list[Row]:
    """Coverage on every graph, that of the real networks together, and of other intervals."""
    blocks = max(REQUIRED, effort.rounds)
    rows, real, everything = [], [], []
    for name, make in _graphs().items():
        if name in NETWORKS and not (DATA / name).exists():
            rows.append(missing("pooled", f"no network at shared/data/{name}", case=name))
            continue
        effort.progress(f"pooled_coverage: {name}")
        sides = _episodes(make(), blocks * BLOCK, effort, name)
        everything.append(sides)
        if name in NETWORKS:
            real.append({metric: (x[: REQUIRED * BLOCK], y[: REQUIRED * BLOCK])
                         for metric, (x, y) in sides.items()})  # fmt: skip
        rows += _of_graph(name, sides)
    if real:
        whole = f"real networks, {REQUIRED * len(real)} blocks of {BLOCK}"
        rows += [
            Row(f"pooled {metric}", _coverage(real, metric, pooled, BLOCK), case=whole,
                at_least=0.9)
            for metric in METRICS
        ]  # fmt: skip
    others = {
        "pooled: symmetric, studentised, on the log": pooled, "pooled: percentile": percentile,
        "pooled: basic, on the log": basic_log, "pooled: BCa": bca,
        "mean of ratios: t": mean_of_ratios,
    }  # fmt: skip
    for words, interval in others.items():
        found = [_coverage(everything, metric, interval, BLOCK) for metric in METRICS]
        rows.append(
            Row(words, float(np.mean(found)), note=_listed(found),
                case=f"all graphs, blocks of {BLOCK}")
        )  # fmt: skip
    return rows


def pooled(x: Any, y: Any) -> tuple[float, float]:
    found = ratio_bootstrap(x, y, 0.95, RESAMPLES, rng=0)
    return found.low, found.high


def mean_of_ratios(x: Any, y: Any) -> tuple[float, float]:
    found = mean_interval(x / (y + EPSILON))
    return found.low, found.high


def percentile(x: Any, y: Any) -> tuple[float, float]:
    low, high = np.quantile(_resampled(x, y), [0.025, 0.975])
    return float(low), float(high)


def basic_log(x: Any, y: Any) -> tuple[float, float]:
    low, high = percentile(x, y)
    ratio = x.sum() / y.sum()
    return float(ratio**2 / high), float(ratio**2 / low)


def bca(x: Any, y: Any) -> tuple[float, float]:
    drawn, ratio = _resampled(x, y), x.sum() / y.sum()
    without = (x.sum() - x) / (y.sum() - y)
    gap = without.mean() - without
    skew = (gap**3).sum() / (6 * (gap**2).sum() ** 1.5)
    shift = stats.norm.ppf(np.clip((drawn < ratio).mean(), 1e-3, 1 - 1e-3))
    z = shift + stats.norm.ppf([0.025, 0.975])
    low, high = np.quantile(drawn, stats.norm.cdf(shift + z / (1 - skew * z)))
    return float(low), float(high)


def _resampled(x: Any, y: Any) -> Any:
    drawn = np.random.default_rng(0).integers(len(x), size=(RESAMPLES, len(x)))
    return x[drawn].sum(axis=1) / y[drawn].sum(axis=1)


def _graphs() -> dict[str, Callable[[], Graph]]:
    def load(name: str) -> Callable[[], Graph]:
        path = DATA / name / "edges.csv.gz"
        return lambda: rapo.load_edges(path, self_loops="drop", duplicates="drop")

    return {
        **{name: load(name) for name in NETWORKS},
        "karate": lambda: rapo.from_networkx(nx.karate_club_graph()),
        "les miserables": lambda: rapo.from_networkx(nx.les_miserables_graph()),
        "davis": lambda: rapo.from_networkx(nx.davis_southern_women_graph()),
        "generated, 250": lambda: rapo.generate(250, 0),
        "generated, 1000": lambda: rapo.generate(1000, 0),
    }


def _episodes(graph: Graph, count: int, effort: Effort, name: str) -> Sides:
    env = rapo.GraphDiffusionVectorEnv(1, graph=graph, deformation="off", fit=False)
    parts: dict[str, list[Any]] = {metric: [] for metric in METRICS}
    for start in range(0, count, CHUNK):
        effort.progress(f"pooled_coverage: {name}, episode {start} of {count}")
        few = min(CHUNK, count - start)
        result = rapo.rsd.evaluate(env, ConstantPolicy(0), episodes=few, seed=SEED + start)
        for metric in METRICS:
            parts[metric].append(np.stack(totals(result, metric)))
    return {metric: tuple(np.concatenate(part, axis=1)) for metric, part in parts.items()}  # type: ignore[misc]


def _of_graph(name: str, sides: Sides) -> list[Row]:
    variation = judge_tails({metric: y for metric, (_, y) in sides.items()})
    verdict = "heavy tails" if variation.heavy else "light tails"
    told = f"{verdict}, variation {variation.variation:.2f}"
    rows = []
    for size in (BLOCK, LARGE):
        for interval, words in ((pooled, "pooled"), (mean_of_ratios, "mean of ratios")):
            found = [_coverage([sides], metric, interval, size) for metric in METRICS]
            note = _listed(found) + (f"; {told}" if not rows else "")
            rows.append(Row(f"{words}, blocks of {size}", float(np.mean(found)), note=note,
                            case=name))  # fmt: skip
    return rows


def _listed(found: list[float]) -> str:
    return ", ".join(f"{metric} {value:.2f}" for metric, value in zip(METRICS, found, strict=True))


def _coverage(graphs: list[Sides], metric: str, interval: Interval, size: int) -> float:
    """Share of the whole blocks of all graphs whose interval covers 1."""
    covered = []
    for sides in graphs:
        x, y = sides[metric]
        for start in range(0, len(x) - size + 1, size):
            low, high = interval(x[start : start + size], y[start : start + size])
            covered.append(low <= 1 <= high)
    return float(np.mean(covered))
