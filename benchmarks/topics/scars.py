"""Scar fields against the exact field: accuracy, calibration, capacity, width, cost, poison.

Seeds 0 to 9; every choice was made on seeds from 1000 on. Tables and the picture go to
`results/scars`.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.effort import Effort
from benchmarks.scars.cost import costs
from benchmarks.scars.curves import DIMENSIONS, accuracy, capacity, poison, steadiness
from benchmarks.scars.figure import plot_scars
from benchmarks.scars.sheet import PARAMS, WIDTH
from benchmarks.scars.width import widths
from benchmarks.table import Row

TITLE = "Scars without a grid: harm on a two-dimensional sheet, psi against the exact field"
OUT = Path(__file__).resolve().parents[2] / "results" / "scars"
SEEDS = range(10)
CENTRES = 128
PLACES = 4
"""Decimals in the tables."""


def measure(effort: Effort) -> list[Row]:
    """Every curve, its table in `results/scars`, and the figures that have a target."""
    errors, calibration = accuracy(SEEDS, effort.progress)
    by_capacity = capacity(SEEDS, effort.progress)
    by_width = widths(SEEDS, effort.progress)
    poisoned = poison(SEEDS, effort.progress)
    rises = steadiness(SEEDS, effort.progress)
    cost = costs(effort.rounds, effort.progress)
    tables = {
        "accuracy": errors.groupby(["kind", "d"]).mean().drop(columns="seed"),
        "accuracy_seeds": errors.set_index(["kind", "d", "seed"])[["error", "bias"]],
        "calibration": calibration.set_index(["kind", "bin"]),
        "capacity": by_capacity.groupby(["d", "centres"]).mean().drop(columns="seed"),
        "width": by_width.groupby(["centres", "ratio"]).mean().drop(columns="seed"),
        "poison": poisoned.groupby(["kind", "d"]).mean().drop(columns="seed"),
        "steadiness": rises.groupby("d")[["risen", "largest"]].agg(["mean", "max"]),
        "cost": cost.set_index(["kind", "d", "size"]),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.round(PLACES).to_csv(OUT / f"{name}.csv")
    (OUT / "manifest.json").write_text(json.dumps(manifest(effort), indent=2) + "\n")
    figure, _ = plot_scars(calibration, by_capacity, by_width, cost)
    figure.savefig(OUT / "scars.png", dpi=110)
    return [
        *_accuracy(tables["accuracy"], errors),
        *_cost(cost),
        *_width(tables["width"]),
        *_poison(tables["poison"]),
        *(
            Row(
                f"d = {d}: psi of scars risen a place",
                float(found["risen"].mean()),
                case="steadiness",
                note=f"at most {found['largest'].max():.2f} in a step",
            )
            for d, found in rises.groupby("d")
        ),
    ]


def manifest(effort: Effort) -> dict[str, Any]:
    """What the tables were made with."""
    return {
        "command": f"python -m benchmarks scars --rounds {effort.rounds}",
        "seeds": list(SEEDS),
        "width": WIDTH,
        "params": PARAMS.to_dict(),
        "versions": {name: metadata.version(name) for name in ("numpy", "numba", "torch")},
    }


def _accuracy(table: pd.DataFrame, errors: pd.DataFrame) -> list[Row]:
    rows = []
    for (kind, d), found in table.iterrows():  # type: ignore[misc]
        worst = errors[(errors["kind"] == kind) & (errors["d"] == d)]["error"].max()
        note = (
            f"worst seed {worst:.3f}; scarred {found['error_scarred']:.3f} (bias "
            f"{found['bias_scarred']:+.3f}), safe {found['error_safe']:.3f} "
            f"({found['bias_safe']:+.3f})"
        )
        limit = 0.05 if kind == "kernel" else None
        rows.append(Row(f"{kind}, d = {d}", float(found["error"]), case="mean error of psi",
                        at_most=limit, note=note))  # fmt: skip
    return rows


def _cost(cost: pd.DataFrame) -> list[Row]:
    rows = []
    for found in cost.to_dict("records"):
        kind, d, size = found["kind"], found["d"], found["size"]
        ours = kind == "kernel" and size == CENTRES
        if kind == "kernel" and not ours:
            continue
        case, name = "cost", f"{kind} {size}, d = {d}"
        rows += [
            Row(f"{name}: update of an episode, {found['points']} points", found["update_us"],
                "us", case, at_most=50.0 if ours else None),
            Row(f"{name}: query a point", found["query_us"], "us", case,
                at_most=2.0 if ours else None),
            Row(f"{name}: numbers", found["numbers"], "", case,
                at_most=CENTRES * (d + 2) if ours else None),
        ]  # fmt: skip
    return rows


def _width(table: pd.DataFrame) -> list[Row]:
    few = table.loc[CENTRES]
    return [
        Row(f"harm kept at {ratio:g} spreads", float(found["harm_kept"]), case="width",
            note=f"clean choices moved by {found['disturbed']:.3f}")
        for ratio, found in few.iterrows()
    ]  # fmt: skip


def _poison(table: pd.DataFrame) -> list[Row]:
    return [
        Row(f"{kind}, d = {d}: psi of safe places", float(found["psi_safe"]), case="poison",
            note=f"10% stray reports; six reports on one clean place: psi "
            f"{found['psi_one_before']:.2f} -> {found['psi_one_after']:.2f}")
        for (kind, d), found in table.iterrows()  # type: ignore[misc]
        if d in DIMENSIONS
    ]  # fmt: skip
