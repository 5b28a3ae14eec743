"""One self-contained HTML page of RSD results."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from rapo.cascade.setting import REPLAY
from rapo.rsd import plots
from rapo.rsd.result import RSDResult
from rapo.rsd.table import UNAVAILABLE, label, meaning, notes, rows_of, text_table

__all__ = ["text_table", "write_report"]

SIZE = 2_000_000
"""Bytes that a page stays below; figures past it are named, not drawn."""
_DPI = 130


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
    used = len(_PAGE.substitute(parts, figures="").encode())
    figures, missing = [], []
    for caption, draw in _figures(results):
        figure = _html_figure(caption, draw)
        if used + len(figure.encode()) > SIZE:
            missing.append(caption)
            continue
        used += len(figure.encode())
        figures.append(figure)
    if missing:
        left = "; ".join(missing)
        figures.append(f"<p class=note>Left out to keep the page small: {escape(left)}</p>")
    return _PAGE.substitute(parts, figures="\n".join(figures))


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
        if _told(group, "reach"):
            yield f"Reach{of}", partial(plots.plot_reach, group, smooth=smooth)
        if any(np.isfinite(r.of_phase("odds_ratio", REPLAY)).any() for r in group.values()):
            yield f"Odds ratio in Replay{of}", partial(plots.plot_odds_ratio, group)
        if _told(group, "scar_mass"):
            yield f"Scar mass{of}", partial(plots.plot_scar_mass, group)
    for name, result in results.items():
        if result.graph is not None and result.cascade is not None:
            yield f"Cascade under {name}", partial(plots.plot_cascade, result)
        if result.scars is not None and np.any(result.scars > 0):
            yield f"Scars under {name}", partial(plots.plot_scars, result)


def _told(group: Mapping[str, RSDResult], trace: str) -> bool:
    return any(np.isfinite(result.traces[trace]).any() for result in group.values())


def _smoothing(result: RSDResult) -> int:
    """A few percent of the shortest phase: enough to see the level in a noisy reach."""
    sizes = np.bincount(result.phase)
    return max(1, int(sizes[sizes > 0].min()) // 20)


def _html_figure(caption: str, draw: Callable[[], Any]) -> str:
    from PIL import Image

    figure, _ = draw()
    raw, small = BytesIO(), BytesIO()
    figure.savefig(raw, dpi=_DPI)
    figure.clear()
    # A palette is enough for flat colours and takes a third of the bytes.
    Image.open(raw).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    data = base64.b64encode(small.getvalue()).decode()
    words = escape(caption)
    return (
        f'<figure><figcaption>{words}</figcaption><img alt="{words}" '
        f'src="data:image/png;base64,{data}"></figure>'
    )


def _manifest(name: str, result: RSDResult) -> str:
    """How a result was made: a row per entry of its manifest."""
    told = {**result.manifest, "graph_hash": result.graph_hash or UNAVAILABLE}
    rows = "\n".join(
        f"<tr><th scope=row>{escape(str(key))}</th><td>{escape(_words(value))}</td></tr>"
        for key, value in told.items()
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


_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 58rem;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; }
td { overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid #222; }
tbody { border-bottom: 1px solid #ddd; break-inside: avoid; }
th small { display: block; font-weight: normal; color: #555; max-width: 17rem; }
.number, thead .number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.none { text-align: right; color: #666; font-style: italic; }
.note { color: #444; font-size: .9rem; overflow-wrap: anywhere; }
figure { margin: 1.4rem 0; break-inside: avoid; }
figcaption { font-weight: 600; margin-bottom: .3rem; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; }
details { border-top: 1px solid #ddd; padding: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
.manifest td { white-space: pre-wrap; font-family: ui-monospace, monospace; font-size: .8rem; }
.manifest th { width: 9rem; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } }
</style>
</head>
<body>
<h1>$title</h1>
<p>The Replay Suppression Diagnostic exposes a frozen policy to a stimulus, lets everything
observable wash out, and shows it the same stimulus again while the environment keeps its memory of
harm. If the cascade comes back as large as before, the system replays.</p>
<p>RAG, AUC-R and SM-R near 1 mean that the cascade came back, well below 1 that Replay was
suppressed; above 1, that Exposure was held down more than Replay.</p>
<h2>Metrics</h2>
<div class="scroll"><table>
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
</body>
</html>
""")
