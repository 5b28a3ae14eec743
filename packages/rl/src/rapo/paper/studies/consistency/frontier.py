"""The frontier over all screened settings: what was never seen together, and how close it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import pandas as pd

from rapo.paper.studies.consistency.numbers import OFF, ROW, SCREENED, Number


@dataclass(frozen=True)
class Question:
    """How small or large one number gets where others lie in ranges."""

    name: str
    """Column that is asked for."""
    where: Mapping[str, tuple[float, float]]
    """Closed ranges of other columns; an end may be infinite."""
    held: tuple[Number, ...] = ()
    """Numbers of the paper that must hold besides."""
    largest: bool = False

    def words(self) -> str:
        """The condition."""
        parts = [_within(name, *ends) for name, ends in self.where.items()]
        if self.held == ROW:
            parts.append("RAPO's row holds")
        elif self.held == OFF:
            parts.append("off@rep's ratios hold")
        elif self.held:
            parts.append(", ".join(n.title for n in self.held) + " hold")
        return " and ".join(parts) or "all settings"


def _within(name: str, low: float, high: float) -> str:
    if low == -inf:
        return f"{name} <= {high:g}"
    return f"{name} >= {low:g}" if high == inf else f"{name} in {low:g}..{high:g}"


_OFF_NEAR = dict.fromkeys(("off_RAG", "off_AUC_R"), (-inf, 1.2))
QUESTIONS = (
    Question("off_AUC_R", {"RAG": (-inf, 0.45), "SM_R": (0.22, 0.40)}),
    Question("off_AUC_R", {}, held=ROW),
    Question("slow_RAG", {}, held=ROW),
    Question("RAG", {"OddsRatio": (0.33, 0.49), "off_RAG": (-inf, 1.2)}),
    Question("RAG", {"OddsRatio": (0.33, 0.49), **_OFF_NEAR}),
    Question("off_AUC_R", {"OddsRatio": (0.33, 0.49)}),
    Question("OddsRatio", {}, held=(ROW[0], OFF[1])),
    Question("SM_R", {}, held=(ROW[0], OFF[1]), largest=True),
    Question("OddsRatio", _OFF_NEAR),
    Question("RAG", _OFF_NEAR),
    Question("slow_RAG", {"off_AUC_R": (-inf, 1.3)}),
    Question("off_AUC_R", {"slow_RAG": (-inf, 0.5)}),
    Question("conservative_cost", {"off_RAG": (-inf, 1 - 1e-9)}, largest=True),
    Question("R_c_P0", {}, largest=True),
)
"""What the summary asks: RAPO's row, off@rep, OddsRatio and slow decay against each other; then the
price of the quietest action where off@rep falls below 1, and the longest way."""


def extremes(frame: pd.DataFrame, questions: Sequence[Question] = QUESTIONS) -> pd.DataFrame:
    """A row per question: how many settings qualify, the extreme value and where it is.

    Returns:
        Columns asked (`smallest RAG`), where, settings, value, log, key; and, of the setting with
        that value, every number of the paper. Empty cells where none qualifies.
    """
    rows = []
    for question in questions:
        chosen = _chosen(frame, question)
        chosen = chosen[chosen[question.name].notna()]
        size = "largest" if question.largest else "smallest"
        row: dict[str, Any] = {
            "asked": f"{size} {question.name}",
            "where": question.words(),
            "settings": len(chosen),
        }
        if len(chosen):
            values = chosen[question.name].to_numpy(float)
            at = chosen.iloc[int(values.argmax() if question.largest else values.argmin())]
            row |= {"value": float(at[question.name]), "log": at["log"], "key": at["key"]}
            row |= {number.name: float(at[number.name]) for number in SCREENED}
        rows.append(row)
    columns = ["asked", "where", "settings", "value", "log", "key", *(n.name for n in SCREENED)]
    return pd.DataFrame(rows, columns=columns)


def printed(asked: pd.DataFrame) -> pd.DataFrame:
    """The answers with two digits, as pages show them."""
    values = [
        f"{value:.2f}" if count else "none"
        for value, count in zip(asked["value"], asked["settings"], strict=True)
    ]
    return asked[["asked", "where", "settings"]].assign(value=values)


def _chosen(frame: pd.DataFrame, question: Question) -> pd.DataFrame:
    fits = pd.Series(True, index=frame.index)
    for name, (low, high) in question.where.items():
        fits &= frame[name].between(low, high)
    if question.held:
        fits &= met(frame, question.held).all(axis=1)
    return frame[fits]


def met(frame: pd.DataFrame, numbers: Sequence[Number] = SCREENED) -> pd.DataFrame:
    """(settings, numbers) of bool: which of the paper's numbers hold in each setting."""
    return pd.DataFrame(
        {n.name: [n.holds(float(value)) for value in frame[n.name]] for n in numbers},
        index=frame.index,
        dtype=bool,
    )


def pairs(frame: pd.DataFrame, numbers: Sequence[Number] = SCREENED) -> pd.DataFrame:
    """(numbers, numbers): how many settings meet both; on the diagonal, how many meet the one."""
    held = met(frame, numbers).astype(int)
    return held.T @ held


OFTEN = 10
"""Settings that must meet a number before its absence beside another one says anything."""


def never_together(counts: pd.DataFrame, least: int = OFTEN) -> list[tuple[str, str]]:
    """Pairs of numbers that at least so many settings meet each, and none both."""
    names, both = list(counts.columns), counts.to_numpy(int)
    return [
        (names[i], names[j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if both[i, j] == 0 and min(both[i, i], both[j, j]) >= least
    ]


@dataclass(frozen=True)
class Together:
    """The largest set of the paper's numbers that one setting meets."""

    settings: int
    """How many settings meet as many."""
    log: str
    key: str
    """The one of these with the best score."""
    met: tuple[str, ...]
    missed: tuple[str, ...]


def most_together(frame: pd.DataFrame, numbers: Sequence[Number] = SCREENED) -> Together | None:
    """The setting that meets most numbers at once; None of an empty frame."""
    if not len(frame):
        return None
    held = met(frame, numbers)
    sizes = held.sum(axis=1)
    best, rows = frame[sizes == sizes.max()], held[sizes == sizes.max()]
    first = int(best["score"].to_numpy(float).argmin())
    at, row = best.iloc[first], rows.iloc[first]
    return Together(
        len(best),
        str(at["log"]),
        str(at["key"]),
        tuple(n.name for n in numbers if row[n.name]),
        tuple(n.name for n in numbers if not row[n.name]),
    )
