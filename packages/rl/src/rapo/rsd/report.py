"""One self-contained HTML page of RSD results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from rapo.cascade.setting import REPLAY
from rapo.rsd import plots
from rapo.rsd.page import page_html, picture_html
from rapo.rsd.result import RSDResult
from rapo.rsd.table import UNAVAILABLE, label, meaning, notes, rows_of, text_table

__all__ = ["text_table", "write_report"]

SIZE = 2_000_000
"""Bytes that a page stays below; figures past it are named, not drawn."""


def write_report(
    results: Mapping[str, RSDResult],
    path: str | Path,
    *,
    title: str = "Replay Suppression Diagnostic",
    force: bool = False,
) -> Path:
    """Write one HTML page that needs nothing else: table, figures, manifests.

    Args:
        results: by name, in the order to show them.
        path: the file to write; its folder is made.
        title: of the page.
        force: overwrite an earlier page.

    Raises:
        FileExistsError: the file exists and `force` is not set, or the path is a folder.
        ValueError: there are no results.
    """
    path = Path(path)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder; name a file, such as {path / 'report.html'}")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; choose another file or pass force=True (--force)")
    page = _page(results, title)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _page(results: Mapping[str, RSDResult], title: str) -> str:
    parts = {
        "title": escape(title),
        "table": _html_table(results),
        "notes": "\n".join(f"<p class=note>{escape(note)}</p>" for note in notes(results)),
        "manifests": "\n".join(_manifest(name, result) for name, result in results.items()),
    }
    used = len(page_html(title, _BODY.substitute(parts, figures="")).encode())
    figures, missing = [], []
    for caption, draw in _figures(results):
        drawn, _ = draw()
        figure = picture_html(drawn, caption)
        drawn.clear()
        if used + len(figure.encode()) > SIZE:
            missing.append(caption)
            continue
        used += len(figure.encode())
        figures.append(figure)
    if missing:
        left = "; ".join(missing)
        figures.append(f"<p class=note>Left out to keep the page small: {escape(left)}</p>")
    return page_html(title, _BODY.substitute(parts, figures="\n".join(figures)))


def _html_table(results: Mapping[str, RSDResult]) -> str:
    out = []
    for metric, rows in rows_of(results).items():
        lines = []
        for row in rows:
            head = ""
            if row is rows[0]:
                head = (
                    f'<th scope=rowgroup rowspan="{len(rows)}">{escape(label(metric, results))}'
                    f"<small>{escape(meaning(metric))}</small></th>"
                )
            cells = f'<td colspan="4" class=none>{UNAVAILABLE}</td>'
            if row.value != UNAVAILABLE:
                cells = "".join(f"<td class=number>{escape(text)}</td>" for text in row[2:])
            lines.append(f"<tr>{head}<td>{escape(row.result)}</td>{cells}</tr>")
        out.append("<tbody>" + "\n".join(lines) + "</tbody>")
    return "\n".join(out)


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


def _manifest(name: str, result: RSDResult) -> str:
    """How a result was made: a row per entry of its manifest."""
    entries = {**result.manifest, "graph_hash": result.graph_hash or UNAVAILABLE}
    rows = "\n".join(
        f"<tr><th scope=row>{escape(str(key))}</th><td>{escape(_words(value))}</td></tr>"
        for key, value in entries.items()
    )
    counted = "1 episode" if len(result.frame) == 1 else f"{len(result.frame)} episodes"
    return (
        f"<details><summary>{escape(name)}: {counted}</summary>"
        f"<table class=manifest>{rows}</table></details>"
    )


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_json(inner)}" for key, inner in value.items())
    return _json(value)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


_BODY = Template("""<h1>$title</h1>
<p>The Replay Suppression Diagnostic exposes a frozen policy to a stimulus, lets everything
observable wash out, and shows it the same stimulus again while the environment keeps its memory of
harm. If the cascade comes back as large as before, the system replays.</p>
<p>RAG, AUC-R and SM-R near 1 mean that the cascade came back, well below 1 that Replay was
suppressed; above 1, that Exposure was held down more than Replay.</p>
<h2>Metrics</h2>
<div class="wide"><table>
<thead><tr><th scope=col>metric</th><th scope=col>result</th>
<th scope=col class=number>mean ± std</th><th scope=col class=number>95% CI</th>
<th scope=col class=number>n</th><th scope=col class=number>undefined</th></tr></thead>
$table
</table></div>
<p class=note>n counts episodes; undefined ones (an empty Exposure, for instance) are left out of
the mean and counted beside it. Pooled rows are totals of all episodes over one another, without a
std. The interval is over these episodes: it does not tell how another
graph or another trained policy would do.</p>
$notes
<h2>Figures</h2>
$figures
<h2>How the results were made</h2>
$manifests
""")
