"""`Row` and the tables: a measured figure beside its target, with a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One figure; with `at_most` or `at_least` it has a target, without it only informs."""

    figure: str
    """What was measured."""
    value: float
    """The measured number; NaN when it could not be measured (then `note` says why)."""
    unit: str = ""
    case: str = ""
    """On which graph, with how many episodes, ...; rows of one case stand together."""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.at_most is not None and self.at_least is not None:
            raise ValueError(f"{self.figure}: a target is either at_most or at_least, got both")

    @property
    def verdict(self) -> str:
        """`ok`, `miss`, `not measured`, or empty for a row without a target."""
        if math.isnan(self.value):
            return "not measured"
        if self.at_most is not None:
            return "ok" if self.value <= self.at_most else "miss"
        if self.at_least is not None:
            return "ok" if self.value >= self.at_least else "miss"
        return ""

    @property
    def target(self) -> str:
        """The target as text, empty without one."""
        if self.at_most is not None:
            return f"<= {_number(self.at_most)} {self.unit}".rstrip()
        if self.at_least is not None:
            return f">= {_number(self.at_least)} {self.unit}".rstrip()
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an unmeasured value is null."""
        value = None if math.isnan(self.value) else self.value
        return {**asdict(self), "value": value, "verdict": self.verdict}


def missing(figure: str, note: str, **target: Any) -> Row:
    """A row for something that could not be measured."""
    return Row(figure, math.nan, note=note, **target)


def render(title: str, rows: Sequence[Row]) -> Table:
    """A rich table of the rows of one topic, a line between cases."""
    table = Table(title=title, title_justify="left", title_style="bold")
    cases = any(row.case for row in rows)
    if cases:
        table.add_column("", no_wrap=True)
    table.add_column("figure", overflow="fold", min_width=30)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("target", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("note", overflow="fold", min_width=30)
    colours = {"ok": "green", "miss": "red", "not measured": "yellow"}
    for i, row in enumerate(rows):
        new = i == 0 or rows[i - 1].case != row.case
        if new and i > 0:
            table.add_section()
        measured = "" if math.isnan(row.value) else f"{_number(row.value)} {row.unit}".rstrip()
        verdict = row.verdict
        styled = f"[{colours[verdict]}]{verdict}[/]" if verdict else ""
        cells = (row.figure, measured, row.target, styled, row.note)
        table.add_row(*([row.case if new else ""] if cases else []), *cells)
    return table


def _number(value: float) -> str:
    """Three significant digits, thousands separated, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
