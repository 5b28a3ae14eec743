"""Tables and curves in a terminal, without cut words at 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rapo.html.page import Section

BARS = " ▁▂▃▄▅▆▇█"
"""Characters for the heights of a curve, from 0 to its largest value."""
_GAP = 2
"""Number of blanks between columns."""
_SENTENCE = 16
"""Number of characters from which a cell may be broken between its words."""


def print_sections(console: Console, sections: Sequence[Section], folder: Path) -> None:
    """Print the first table of each section, and which files hold the rest."""
    left = 0
    for section in sections:
        console.print(f"\n[bold]{section.title}[/bold]")
        for caption, frame in section.tables[:1]:
            print_frame(console, frame, caption)
        left += len(section.tables[1:])
    also = f", with {left} more tables and the figures" if left else ""
    console.print(
        f"wrote {folder / 'report.html'} and {folder / 'summary.md'}{also}", highlight=False
    )


def progress_line(progress: Progress, title: str) -> Callable[[int, int], None]:
    """Add a line to a progress display; call the result with what is done and how much there is."""
    task = progress.add_task(title, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)


def print_frame(
    console: Console, frame: pd.DataFrame, caption: str = "", *, red: str | None = None
) -> None:
    """Print a table. A wide one is split: its other columns follow below, after the first again.

    Args:
        console: the terminal.
        frame: the table; its values are printed as text.
        caption: a line above the table.
        red: rows whose last cell has this value are printed in red.
    """
    columns = [str(name) for name in frame.columns]
    cells = [[str(value) for value in row] for row in frame.itertuples(index=False)]
    widths = [
        max(_needs(name, 1), *(_needs(row[i], _SENTENCE) for row in cells))
        for i, name in enumerate(columns)
    ]
    for number, block in enumerate(blocks(widths, console.width - _GAP)):
        title = caption if number == 0 else None
        table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
        for i in block:
            table.add_column(columns[i], min_width=widths[i], overflow="fold")
        for row in cells:
            table.add_row(*(row[i] for i in block), style="red" if row[-1] == red else None)
        console.print(table)


def _needs(text: str, sentence: int) -> int:
    """Characters that a text needs: all of a short one, the longest word of a long one."""
    if len(text) < sentence:
        return len(text)
    return max((len(word) for word in text.split()), default=0)


def blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Split columns into blocks of at most `room` characters that begin with the first column."""
    split = [[0]]
    for i in range(1, len(widths)):
        width = sum(widths[j] + _GAP for j in (*split[-1], i))
        if width > room and len(split[-1]) > 1:
            split.append([0])
        split[-1].append(i)
    return split


def spark(values: npt.ArrayLike, largest: float) -> str:
    """A curve as bars, a character for each value; `largest` is the value of a full bar."""
    height = np.clip(np.asarray(values, float) / max(largest, 1e-12), 0, 1) * (len(BARS) - 1)
    return "".join(BARS[int(step)] for step in np.ceil(height - 1e-9))


def print_curves(
    console: Console, curves: Mapping[str, Any], phase: npt.NDArray[np.int64], title: str
) -> None:
    """Print curves (T,) over the phases as lines of bars on one scale."""
    names = ("exposure", "washout", "replay")
    label = max(map(len, curves)) + 1
    steps = -(-len(phase) // (console.width - label - len(names)))  # of a character, rounded up
    means = {
        name: [_binned(np.asarray(curve, float)[phase == p], steps) for p in range(len(names))]
        for name, curve in curves.items()
    }
    largest = max(float(part.max()) for parts in means.values() for part in parts if len(part))
    console.print(f"\n[bold]{title}[/bold]")
    for name, parts in means.items():
        line = " ".join(spark(part, largest) for part in parts)
        console.print(f"{name:<{label}}{line}", highlight=False, markup=False, no_wrap=True)
    some = next(iter(means.values()))
    labels = " ".join(f"{n:<{len(part)}}"[: len(part)] for n, part in zip(names, some, strict=True))
    console.print(" " * label + labels, highlight=False, no_wrap=True)


def _binned(curve: npt.NDArray[np.float64], steps: int) -> npt.NDArray[np.float64]:
    edges = range(0, len(curve), steps)
    return np.array([curve[i : i + steps].mean() for i in edges])
