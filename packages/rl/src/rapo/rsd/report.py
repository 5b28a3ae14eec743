"""One self-contained HTML page of RSD results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rapo.cascade.setting import REPLAY
from rapo.html.page import embedded, render
from rapo.rsd import plots
from rapo.rsd.result import RSDResult
from rapo.rsd.table import UNAVAILABLE, label, meaning, notes, rows_of, text_table
from rapo_core.files import refuse_to_overwrite, written_whole

__all__ = ["text_table", "write_report"]

SIZE = 2_000_000
"""Bytes below which a page stays. Figures for which there is no room are named, not drawn."""


def write_report(
    results: Mapping[str, RSDResult],
    path: str | Path,
    *,
    title: str = "Replay Suppression Diagnostic",
    force: bool = False,
) -> Path:
    """Write one HTML page with the table, figures and manifests of results; it needs no other file.

    Args:
        results: by name, in the order to show them.
        path: the file to write. Its folder is made if there is none.
        title: heading of the page.
        force: whether to overwrite an earlier page.

    Raises:
        FileExistsError: the file exists and `force` is not set, or the path is a folder.
        ValueError: there are no results.
    """
    path = Path(path)
    refuse_to_overwrite(path, force=force)
    page = _page(results, title)
    with written_whole(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _page(results: Mapping[str, RSDResult], title: str) -> str:
    context: dict[str, Any] = {
        "title": title,
        "metrics": [
            {"label": label(metric, results), "meaning": meaning(metric), "rows": rows}
            for metric, rows in rows_of(results).items()
        ],
        "unavailable": UNAVAILABLE,
        "notes": list(notes(results)),
        "manifests": [_manifest(name, result) for name, result in results.items()],
    }
    room = SIZE - len(render("diagnostic.html", **context, figures=(), left_out=()).encode())
    figures, left_out = [], []
    for caption, draw in _figures(results):
        figure, _ = draw()
        source = embedded(figure)
        figure.clear()
        if len(source) > room:
            left_out.append(caption)
            continue
        room -= len(source)
        figures.append((caption, source))
    return render("diagnostic.html", **context, figures=figures, left_out=left_out)


def _figures(results: Mapping[str, RSDResult]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Caption and maker of every figure that the results support."""
    schedules: dict[bytes, dict[str, RSDResult]] = {}
    for name, result in results.items():
        schedules.setdefault(result.phase.astype("<i8").tobytes(), {})[name] = result
    for group in schedules.values():
        of = "" if len(schedules) == 1 else f" ({', '.join(group)})"
        smooth = _smoothing(next(iter(group.values())))
        if _measured(group, "reach"):
            yield f"Reach{of}", partial(plots.plot_reach, group, smooth=smooth)
        if any(np.isfinite(r.of_phase("odds_ratio", REPLAY)).any() for r in group.values()):
            yield f"Odds ratio in Replay{of}", partial(plots.plot_odds_ratio, group)
        if _measured(group, "scar_mass"):
            yield f"Scar mass{of}", partial(plots.plot_scar_mass, group)
    for name, result in results.items():
        if result.graph is not None and result.cascade is not None:
            yield f"Cascade under {name}", partial(plots.plot_cascade, result)
        if result.scars is not None and np.any(result.scars > 0):
            yield f"Scars under {name}", partial(plots.plot_scars, result)


def _measured(group: Mapping[str, RSDResult], trace: str) -> bool:
    return any(np.isfinite(result.traces[trace]).any() for result in group.values())


def _smoothing(result: RSDResult) -> int:
    """A few percent of the shortest phase: enough to see the level in a noisy reach."""
    sizes = np.bincount(result.phase)
    return max(1, int(sizes[sizes > 0].min()) // 20)


def _manifest(name: str, result: RSDResult) -> dict[str, Any]:
    """How a result was made: the entries of its manifest as text."""
    entries = {**result.manifest, "graph_hash": result.graph_hash or UNAVAILABLE}
    texts = [(key, _text(value)) for key, value in entries.items()]
    return {"name": name, "episodes": len(result.frame), "entries": texts}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_json(inner)}" for key, inner in value.items())
    return _json(value)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
