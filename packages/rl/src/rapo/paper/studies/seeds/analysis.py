"""How much of the variance lies between graphs, between starts, and between episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.paper.jobs import Evaluation
from rapo.paper.paper import METRICS
from rapo.paper.results import Results
from rapo.paper.studies.graph_means import TITLES, interval_text
from rapo.paper.studies.section import Section
from rapo.paper.studies.seeds.plan import METHODS, evaluations

Float = npt.NDArray[np.float64]


def components(values: Float) -> dict[str, float]:
    """Split the variance of episodes between graphs, starts and episodes.

    Episodes have the same draws under every start of a graph, so within a graph starts and episodes
    are crossed, and the variance that neither explains is chance. Estimates are those of expected
    mean squares; negative ones are set to 0. `episodes` is the episode's own part and chance.

    Args:
        values: (graphs, starts, episodes), at least two of each.

    Returns:
        Variances by name: `graphs`, `starts` and `episodes`.
    """
    g, s, e = values.shape
    by_start, by_episode = values.mean(axis=2, keepdims=True), values.mean(axis=1, keepdims=True)
    by_graph = values.mean(axis=(1, 2), keepdims=True)
    of_graphs = s * e * ((by_graph - values.mean()) ** 2).sum() / (g - 1)
    of_starts = e * ((by_start - by_graph) ** 2).sum() / (g * (s - 1))
    of_episodes = s * ((by_episode - by_graph) ** 2).sum() / (g * (e - 1))
    rest = ((values - by_start - by_episode + by_graph) ** 2).sum() / (g * (s - 1) * (e - 1))
    return {
        "graphs": max((of_graphs - of_starts - of_episodes + rest) / (s * e), 0.0),
        "starts": max((of_starts - rest) / e, 0.0),
        "episodes": max((of_episodes - rest) / s, 0.0) + float(rest),
    }


def analyse(results: Results) -> Section:
    """Tabulate shares of the variance of an episode, and of a cell's std over graph means."""
    preset, base = results.preset, results.base_return()
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        starts = evaluations(preset, method)
        for metric in METRICS:
            values = np.stack([_episodes(results, each, metric, base) for each in starts.values()])
            cube = values.reshape(len(preset.spread_seeds), preset.starts, -1)
            cube = cube[..., np.isfinite(cube).all(axis=(0, 1))]
            mean = float(cube.mean()) if cube.size else np.nan
            used = cube.shape[2]
            rows.append(
                {"method": method, "metric": metric, "episodes_used": used, "mean": mean}
                | _shares(cube)
            )
    table = pd.DataFrame(rows)
    shares = {(row["method"], row["metric"]): float(row["starts_of_cell"]) for row in rows}
    method, metric = most = max(shares, key=lambda key: np.nan_to_num(shares[key], nan=-1.0))
    text = [
        f"{preset.nodes} nodes, {len(preset.spread_seeds)} graphs, {preset.starts} seeds of the "
        f"optimiser on each, {preset.episodes} episodes with the same draws under each, "
        f"{preset.steps:,} training steps. A random-effects split by expected mean squares.",
    ]
    if np.isfinite(shares[most]):
        text.append(
            "In Table 1 every graph has a seed of its own, so its std over graph means holds "
            "graphs, optimiser and what is left of the episodes. The optimiser's share of that "
            f"variance is at most {shares[most]:.0%} ({method}, {TITLES[metric]}), in RAPO's RAG "
            f"{shares['RAPO', 'RAG']:.0%}."
        )
    else:
        text.append("A split needs two graphs and two seeds.")
    return Section(
        name="seeds",
        title="Seeds of the optimiser",
        text=text,
        tables=[("Variance of an episode, and the optimiser's share of a cell's", _printed(table))],
        files={"seeds": table},
    )


def _episodes(results: Results, evaluation: Evaluation, metric: str, base: float) -> Float:
    frame = results.episodes([evaluation])
    if metric == "ReplayRet":
        return (frame["ReplayReturn"] / base).to_numpy(float)
    return frame[metric].to_numpy(float)


def _shares(cube: Float) -> dict[str, float]:
    """Return the variances, their shares of an episode's, and the starts' share of a graph mean's.

    All are NaN where a graph, a start or an episode stands alone.
    """
    alone = min(cube.shape) < 2
    parts = dict.fromkeys(("graphs", "starts", "episodes"), np.nan) if alone else components(cube)
    whole = sum(parts.values()) or np.nan
    cell = parts["graphs"] + parts["starts"] + parts["episodes"] / max(cube.shape[2], 1)
    return {
        **parts,
        **{f"{name}_share": part / whole for name, part in parts.items()},
        "starts_of_cell": parts["starts"] / (cell or np.nan),
    }


def _printed(table: pd.DataFrame) -> pd.DataFrame:
    def share(value: float) -> str:
        return "-" if np.isnan(value) else f"{value:.0%}"

    return pd.DataFrame(
        [
            {
                "method": row["method"],
                "": TITLES[row["metric"]],
                "mean": f"{row['mean']:.2f}",
                "between graphs": share(row["graphs_share"]),
                "between seeds of the optimiser": share(row["starts_share"]),
                "episodes": share(row["episodes_share"]),
                "std between seeds": interval_text(row["starts"] ** 0.5, np.nan, np.nan, ".3f"),
                "the optimiser's share of a cell": share(row["starts_of_cell"]),
            }
            for row in table.to_dict("records")
        ]
    )
