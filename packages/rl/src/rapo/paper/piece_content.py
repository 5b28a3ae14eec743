"""What an evaluation keeps of a result: numbers of episodes, curves, training and shield."""

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
"""Steps that one entry of a kept curve averages over."""


def episodes_of(result: RSDResult) -> dict[str, Any]:
    """The frame, and what ratios against other runs are made of, per episode."""
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
            law = result.laws[:, result.phase == phase].mean(axis=1, dtype=np.float64)
            for action in range(law.shape[1]):
                out[f"action{action}_{name}"] = law[:, action]
    if result.activity is not None:
        out["breadth_replay"] = np.full(
            len(result.frame), float((result.activity[REPLAY] > 0).sum())
        )
    return out


def curves_of(result: RSDResult) -> dict[str, Any]:
    """Mean and std over episodes of every trace, in bins that do not cross phases."""
    starts = [s for p in range(3) for s in np.flatnonzero(result.phase == p)[::BIN]]
    out: dict[str, Any] = {"step": np.array(starts)}
    ends = [*starts[1:], len(result.phase)]
    for name in TRACES:
        trace = result.traces[name].astype(np.float64)
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.nan_to_num(trace), starts, axis=1)
            counts = np.add.reduceat(np.isfinite(trace).astype(float), starts, axis=1)
            bins = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            known = np.isfinite(bins)
            n = known.sum(axis=0)
            mean = np.where(n > 0, np.nansum(bins, axis=0) / np.maximum(n, 1), np.nan)
            spread = np.sqrt(np.nansum((bins - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
        out[name] = mean
        out[f"{name}_std"] = spread
    out["end"] = np.array(ends)
    return out


def training_of(path: Path) -> Any:
    """Summary of a training, if it left one."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def shield_of(policy: Any, folder: Path) -> dict[str, Any] | None:
    """Threshold and compute of a shield, and how it was tuned."""
    if not isinstance(policy, Shield):
        return None
    curve = folder / "tuning.csv"
    tuning = pd.read_csv(curve).to_dict("list") if curve.exists() else None
    return {
        "threshold": policy.threshold,
        "reference": policy.reference,
        "transitions_per_step": policy.transitions_per_step,
        "tuning": tuning,
    }
