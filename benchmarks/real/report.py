"""Tables and the figure of the studies on real data, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real.kuairand_study import CHOSEN_AT

OUT = Path(__file__).resolve().parents[2] / "results" / "gate"
DIGITS = 4
COLOURS = {
    "gate": "C3", "rate": "C0", "hate rate": "C0", "flap damping": "C2", "trace only": "C1",
}  # fmt: skip

Rows = Sequence[dict[str, Any]]


def write_table(rows: Rows, name: str, out: Path | None = None) -> Path:
    """Rows as CSV; intervals in two columns, settings left to the code that chose them."""
    flat = []
    for row in rows:
        line: dict[str, Any] = {}
        for key, value in row.items():
            if key == "interval" or key.endswith("_interval"):
                low, high = value or (None, None)
                line |= {key.replace("interval", "low"): low, key.replace("interval", "high"): high}
            elif isinstance(value, dict):
                line[key] = " ".join(f"{k}={v}" for k, v in value.items())
            else:
                line[key] = value
        flat.append(line)
    folder = OUT if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    pd.DataFrame(flat).round(DIGITS).to_csv(file, index=False, lineterminator="\n")
    return file


def draw(otc: Rows, likes: Rows, file: Path) -> None:
    """Harm held back against good lost: traders, all and after 60 silent days; likes and hates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    panels = (("later part", "all"), ("later part", "after 60 days"))
    titles = ("traders, later part: all", "traders, later part: after 60 silent days")
    for ax, (part, subset), title in zip(axes, panels, titles, strict=False):
        for i, name in enumerate(n for n in COLOURS if n != "hate rate"):
            rows = [r for r in otc if (r["part"], r["subset"], r["method"]) == (part, subset, name)]
            _points(ax, rows, "held", "held_interval", COLOURS[name], name, i)
        ax.plot([0, 10], [0, 10], color="0.8", lw=1)
        ax.set(title=title, xlabel="good ratings lost, %", ylabel="negative ratings held back, %")
        ax.legend(frameon=False, fontsize="small", loc="upper left")
    ax = axes[2]
    names = list(dict.fromkeys(r["method"] for r in likes))
    for i, name in enumerate(names):
        lifts = [r["lift"] for r in likes if (r["method"], r["level"]) == (name, CHOSEN_AT)]
        ax.plot([i] * len(lifts), lifts, "o", color=COLOURS.get(name, "0.5"), alpha=0.5)
        ax.plot([i - 0.25, i + 0.25], [sum(lifts) / len(lifts)] * 2, color="k")
    ax.axhline(1, color="0.8", lw=1)
    ax.set_xticks(range(len(names)), names)
    ax.set(title="likes and hates, 8 splits", ylabel=f"lift at {CHOSEN_AT:.0%} of likes lost")
    ax.set_ylim(0)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def _points(ax: Any, rows: Rows, name: str, ends: str, colour: str, label: str, at: int) -> None:
    """A method's figures at each loss, in percent, with intervals; methods side by side."""
    shift = 0.12 * (at - 1.5)
    x = [100 * r["level"] + shift for r in rows]
    y = [100 * r[name] for r in rows]
    spread = [r[ends] or (r[name], r[name]) for r in rows]
    down = [max(v - 100 * low, 0) for v, (low, _) in zip(y, spread, strict=True)]
    up = [max(100 * high - v, 0) for v, (_, high) in zip(y, spread, strict=True)]
    ax.errorbar(x, y, [down, up], color=colour, label=label, marker="o", ms=4, lw=1)
