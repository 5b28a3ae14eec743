"""Data frames that a job writes: episodes, curves, the shield, the training and its tuning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.agents.shield import Shield
from rapo.cascade.setting import EXPOSURE, PHASES, REPLAY
from rapo.rsd.result import TRACES, RSDResult

BIN = 10
"""Steps that one row of the curves averages over."""


def episodes_of(result: RSDResult) -> pd.DataFrame:
    """A row per episode: RSD's numbers, and what ratios against other runs are made of."""
    out: dict[str, Any] = {name: result.frame[name].to_numpy() for name in result.frame.columns}
    out["trace"] = result.traces["cost_G"].mean(axis=1, dtype=np.float64)
    for phase in (EXPOSURE, REPLAY):
        name = PHASES[phase]
        reach, inside = result.of_phase("reach", phase), result.of_phase("sensitive_mass", phase)
        out[f"peak_{name}"] = reach.max(axis=1)
        out[f"reach_{name}"] = reach.mean(axis=1, dtype=np.float64)
        out[f"inside_{name}"] = inside.mean(axis=1, dtype=np.float64)
        out[f"served_{name}"] = result.of_phase("served", phase).mean(axis=1, dtype=np.float64)
        if result.laws is not None:
            probs = result.laws[:, result.phase == phase].mean(axis=1, dtype=np.float64)
            for action in range(probs.shape[1]):
                out[f"action{action}_{name}"] = probs[:, action]
    if result.activity is not None:
        out["breadth_replay"] = float((result.activity[REPLAY] > 0).sum())
    return pd.DataFrame(out)


def curves_of(result: RSDResult) -> pd.DataFrame:
    """Mean and std over episodes of every trace; a row per bin of steps, none crosses phases."""
    starts = [s for p in range(3) for s in np.flatnonzero(result.phase == p)[::BIN]]
    ends = [*starts[1:], len(result.phase)]
    out: dict[str, Any] = {"episodes": len(result.frame), "step": starts, "end": ends}
    for name in TRACES:
        trace = result.traces[name].astype(np.float64)
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.nan_to_num(trace), starts, axis=1)
            counts = np.add.reduceat(np.isfinite(trace).astype(float), starts, axis=1)
            bins = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            n = np.isfinite(bins).sum(axis=0)
            mean = np.where(n > 0, np.nansum(bins, axis=0) / np.maximum(n, 1), np.nan)
            spread = np.sqrt(np.nansum((bins - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
        out[name] = mean
        out[f"{name}_std"] = spread
    return pd.DataFrame(out)


def shield_of(policy: Any) -> dict[str, float]:
    """Threshold and compute of a shield; nothing of a bare policy."""
    if not isinstance(policy, Shield):
        return {}
    return {
        "threshold": policy.threshold,
        "reference": policy.reference,
        "transitions_per_step": float(policy.transitions_per_step),
    }


def training_of(run: Path) -> pd.DataFrame | None:
    """A row per cost of a training: its budget, what was spent at the end, the dual.

    A policy without costs has one row, whose cost is empty. The seconds of the training are in
    each row. None if nothing was trained.
    """
    path = run / "summary.json"
    if not path.exists():
        return None
    summary = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        {"cost": cost, **{name: paid[name] for name in ("budget", "dual", "met")},
         "spent": paid["cost"]}
        for cost, paid in (summary.get("budgets") or {}).items()
    ]  # fmt: skip
    empty = {"cost": "", "budget": np.nan, "dual": np.nan, "met": False, "spent": np.nan}
    return pd.DataFrame(rows or [empty]).assign(seconds=float(summary.get("seconds") or 0.0))


def tuning_of(run: Path) -> pd.DataFrame | None:
    """Trials of a shield's threshold; None if nothing was tuned."""
    path = run / "tuning.csv"
    return pd.read_csv(path) if path.exists() else None
