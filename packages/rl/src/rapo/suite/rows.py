"""From the pieces of a domain to its rows: pooled ratios, intervals over platform seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.rsd.bootstrap import bootstrap_interval, ratio_bootstrap
from rapo.suite import piece
from rapo.suite.measure import CONSTANT, FORMAT, OFF, RATIOS
from rapo_core.checks import UserError

AGAINST = {"SM_vs_P0": "sensitive_mass", "Reach_vs_P0": "reach", "ReturnKept": "return"}
"""Ratios of Replay to the Replay of the same policy under `P0`, and the sums they are made of."""
MEANS = ("OddsRatio", "ASD")
METRICS = (*RATIOS, *AGAINST, *MEANS)
LEVEL, RESAMPLES = 0.95, 4000

Float = npt.NDArray[np.float64]


def read(keys: Sequence[str], root: Path) -> list[dict[str, Any]]:
    """Contents of the pieces of one domain; a missing or damaged one is named."""
    found = []
    for key in keys:
        path = piece.piece_path(root, key)
        try:
            content = piece.read(path)
            whole = content["runs"] and content["steps"] > 0
            if content["key"] != key or content["format"] != FORMAT or not whole:
                raise UserError(f"not a piece of {key}")
        except FileNotFoundError:
            raise UserError(f"{path} is missing; rapo suite run --out {root} makes it") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it and run again") from error
        found.append(content)
    return found


def domain_rows(contents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per kernel, then one per constant action; `METRICS` with `_low` and `_high`.

    `return` and `sensitive_mass` (of a step) are means over Replay, in the domain's own units.

    Args:
        contents: a piece per platform, all of one domain, one policy and one size.
    """
    runs: list[list[dict[str, Any]]] = [
        [content["runs"][i] for content in contents] for i in range(len(contents[0]["runs"]))
    ]
    nominal = next(same for same in runs if same[0]["kernel"] == OFF)
    rows = []
    for same in runs:
        row: dict[str, Any] = {"kernel": same[0]["kernel"], "action": same[0].get("action")}
        row |= pooled(same, nominal)
        row["return"] = float(np.mean([np.mean(run["return"]) for run in same]))
        inside = np.mean([np.mean(run["sensitive_mass"]) for run in same])
        row["sensitive_mass"] = float(inside) / contents[0]["steps"]
        rows.append(row)
    table = pd.DataFrame(rows)
    table["action"] = table["action"].astype("Int64")  # none for most rows
    return table


def pooled(same: Sequence[dict[str, Any]], nominal: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Ratios of sums over platforms and means over them, with a bootstrap over platforms."""
    found: dict[str, float] = {}
    pairs: dict[str, tuple[Float, Float]] = {}
    if same[0]["kernel"] != CONSTANT:  # whose Exposure is not run
        for name in RATIOS:
            after, before = (
                _totals([run[name][part] for run in same]) for part in ("replay", "exposure")
            )
            pairs[name] = after, before
    for name, part in AGAINST.items():
        pairs[name] = _totals([r[part] for r in same]), _totals([r[part] for r in nominal])
    for name, (after, before) in pairs.items():
        ratio = ratio_bootstrap(after, before, LEVEL, RESAMPLES, rng=0)
        found |= {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    for name in MEANS:
        if name in same[0]:
            means = [_mean(run[name]) for run in same]
            mean = bootstrap_interval(means, np.mean, LEVEL, RESAMPLES, rng=0)
            found |= {name: mean.estimate, f"{name}_low": mean.low, f"{name}_high": mean.high}
    return found


def _totals(by_platform: Sequence[Sequence[float]]) -> Float:
    """(platforms,) sums over the episodes."""
    return np.array([np.sum(values) for values in by_platform], float)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")
