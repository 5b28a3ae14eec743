"""Every setting that the calibration screened, from its logs, with a count of what is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.calibration.log import Log
from rapo.paper.calibration.targets import completed
from rapo.paper.screening import EPISODES
from rapo.paper.studies.consistency.numbers import SCREENED
from rapo_core.checks import UserError

CAPPED = 0.01
"""Largest share of capped edges: those hardly feel the gate, and OddsRatio does not see it."""
_MADE = ("R_c_kept",)
"""Columns that follow from the rest."""
NEEDED = tuple(
    dict.fromkeys([n.name for n in SCREENED if n.name not in _MADE] + ["R_c", "clipped"])
)
"""What a line has to tell; version 0.1 knew nothing of off@rep."""
ALSO = ("alive", "gain", "conservative_cost")
"""What is kept where it is there."""
MOST_GRAPHS = 64


@dataclass(frozen=True)
class Screened:
    """What the logs hold."""

    frame: pd.DataFrame
    """A row per setting: log, key, graphs, score, and what was found."""
    logs: tuple[str, ...]
    """Files that were read, below the folder."""
    counts: Mapping[str, int]
    """lines; and of these not_run, older, repeated and capped, which are left out, in this
    order."""

    @property
    def graphs(self) -> str:
        """Graphs that a setting was screened on, in words."""
        known = sorted(set(self.frame["graphs"])) if len(self.frame) else []
        return " or ".join("an unknown number of" if g == 0 else str(g) for g in known) or "no"


def read_logs(folder: Path) -> Screened:
    """All screened settings below a folder, each once: as measured on the most graphs.

    Logs of trained policies are passed over. An absent folder is an empty one.

    Raises:
        ValueError: a line is damaged.
    """
    counts = dict.fromkeys(("lines", "not_run", "older", "repeated", "capped"), 0)
    names, parts = [], []
    for path in sorted(folder.rglob("*.jsonl")):
        entries = [e for e in Log(path).known.values() if "method" not in e]
        if not entries:
            continue
        names.append(path.relative_to(folder).as_posix())
        counts["lines"] += len(entries)
        rows = []
        for entry in entries:
            found = entry.get("found")
            if "error" in entry:
                counts["not_run"] += 1
            elif isinstance(found, dict) and not set(NEEDED) <= set(found):
                counts["older"] += 1
            else:
                rows.append(_row(entry, names[-1], path))
        if rows:
            part = pd.DataFrame(rows)
            parts.append(part.assign(graphs=_graphs(part)))
    columns = ["log", "key", "setting", "graphs", "score", *NEEDED, *_MADE, *ALSO]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    frame = frame.sort_values("graphs", ascending=False, kind="stable")
    once = frame.drop_duplicates("setting")
    kept = once[once["clipped"] <= CAPPED].sort_index().reset_index(drop=True)
    counts |= {"repeated": len(frame) - len(once), "capped": len(once) - len(kept)}
    return Screened(kept[columns], tuple(names), counts)


def _row(entry: Mapping[str, Any], log: str, path: Path) -> dict[str, Any]:
    try:
        found = completed({name: float(entry["found"][name]) for name in NEEDED})
        also = {name: float(entry["found"].get(name, np.nan)) for name in ALSO}
        setting = json.dumps(entry["setting"], sort_keys=True)
        score = float(entry["score"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the line {entry['key']!r} of {path} is damaged ({error!r}); remove it"
        ) from None
    return {"log": log, "key": entry["key"], "setting": setting, "score": score, **found, **also}


def _graphs(part: pd.DataFrame) -> int:
    """Graphs behind the lines of a log, which do not say; 0 if they cannot be told.

    R_c is a mean over graphs of means of `EPISODES` whole numbers of hops, so R_c times episodes
    times graphs is whole in every line.
    """
    hops = part[["R_c", "R_c_P0"]].to_numpy() * EPISODES
    for graphs in range(1, MOST_GRAPHS + 1):
        if np.all(np.abs(hops * graphs - np.round(hops * graphs)) < 1e-6):
            return graphs
    return 0
