"""What is measured on the sheet: accuracy, calibration, capacity, and resistance to poison."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.scars.sheet import PARAMS, WIDTH, Array, Sheet, exact_psi, feed, make_sheet
from rapo.scars import FullWarning, ScarField, make

DIMENSIONS = (2, 4, 8)
CAPACITIES = (16, 32, 64, 128, 256, 512, 1024)
KINDS = ("grid", "kernel", "density", "network")
OPTIONS: dict[str, dict[str, Any]] = {"grid": {"resolution": 64}}
STRAY = 0.1
"""Share of the reports that name a place where nothing happened."""
BINS = np.linspace(0.1, 1.0, 10)

Progress = Callable[[str], object]


@lru_cache(maxsize=64)
def problem(d: int, seed: int) -> tuple[Sheet, Array]:
    """A sheet and the exact psi of its queries."""
    sheet = make_sheet(d, seed)
    return sheet, exact_psi(sheet, sheet.queries)


def field_of(kind: str, sheet: Sheet, **options: Any) -> ScarField:
    """A field of a kind that has lived through a sheet."""
    made = make(kind, sheet.box, PARAMS, width=WIDTH, **{**OPTIONS.get(kind, {}), **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FullWarning)
        return feed(made, sheet)


def errors(told: Array, true: Array) -> dict[str, float]:
    """Mean error of psi, and where it comes from: a mean may hide two biases that cancel."""
    gap = told - true
    scarred, safe = true < 0.5, true > 0.9
    return {
        "error": float(np.abs(gap).mean()),
        "bias": float(gap.mean()),
        "error_scarred": float(np.abs(gap[scarred]).mean()),
        "bias_scarred": float(gap[scarred].mean()),
        "error_safe": float(np.abs(gap[safe]).mean()),
        "bias_safe": float(gap[safe].mean()),
    }


def accuracy(seeds: Iterable[int], progress: Progress) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of every kind, a row per dimension and seed; and the calibration curves."""
    rows, pairs = [], []
    for seed in seeds:
        for d in DIMENSIONS:
            sheet, true = problem(d, seed)
            for kind in KINDS:
                if kind == "grid" and d > 2:
                    continue
                progress(f"scars: {kind}, {d} dimensions, seed {seed}")
                field = field_of(kind, sheet)
                told = field.conductance(sheet.queries)
                rows.append({"kind": kind, "d": d, "seed": seed, "size": int(field.size),
                             **errors(told, true)})  # fmt: skip
                pairs.append(pd.DataFrame({"kind": kind, "told": told, "true": true}))
    everything = pd.concat(pairs)
    everything["bin"] = np.digitize(everything["told"], BINS[1:-1])
    curve = everything.groupby(["kind", "bin"]).agg(
        told=("told", "mean"), true=("true", "mean"), points=("true", "size")
    )
    return pd.DataFrame(rows), curve.reset_index()


def capacity(seeds: Iterable[int], progress: Progress) -> pd.DataFrame:
    """Errors of the kernel field against its number of centres."""
    rows = []
    for seed in seeds:
        for d in DIMENSIONS:
            sheet, true = problem(d, seed)
            for centres in CAPACITIES:
                progress(f"scars: {centres} centres, {d} dimensions, seed {seed}")
                field: Any = field_of("kernel", sheet, centres=centres)
                told = field.conductance(sheet.queries)
                rows.append({"centres": centres, "d": d, "seed": seed, "size": int(field.size),
                             "merges": int(field.merges), **errors(told, true)})  # fmt: skip
    return pd.DataFrame(rows)


def poison(seeds: Iterable[int], progress: Progress) -> pd.DataFrame:
    """Psi of safe places after stray reports, and of one clean place after six reports on it."""
    rows = []
    for seed in seeds:
        for d in DIMENSIONS:
            sheet, true = problem(d, seed)
            safe = sheet.clean & (true > 0.9)
            strayed = _strayed(sheet, seed)
            for kind in ("grid", "kernel", "density"):
                if kind == "grid" and d > 2:
                    continue
                progress(f"scars: poison for {kind}, {d} dimensions, seed {seed}")
                honest = field_of(kind, sheet)
                misled = field_of(kind, strayed)
                place = sheet.queries[np.flatnonzero(sheet.clean & (true > 0.999))[:1]]
                before = honest.conductance(place)[0]
                for _ in range(6):
                    honest.deposit(place, [1.0])
                    honest.step()
                for _ in range(50):
                    honest.step()
                rows.append({"kind": kind, "d": d, "seed": seed,
                             "psi_safe": float(misled.conductance(sheet.queries[safe]).mean()),
                             "psi_one_before": float(before),
                             "psi_one_after": float(honest.conductance(place)[0])})  # fmt: skip
    return pd.DataFrame(rows)


def steadiness(seeds: Iterable[int], progress: Progress) -> pd.DataFrame:
    """How far psi of the scars alone rises at fixed places, which the exact field never does."""
    rows = []
    for seed in seeds:
        for d in DIMENSIONS:
            progress(f"scars: steadiness, {d} dimensions, seed {seed}")
            sheet = problem(d, seed)[0]
            field = make("kernel", sheet.box, replace(PARAMS, w_G=0.0), width=WIDTH)
            told, risen, largest = np.ones(len(sheet.queries)), np.zeros(len(sheet.queries)), 0.0
            for x, share in zip(sheet.points, sheet.shares, strict=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FullWarning)
                    field.deposit(x, share)
                    field.visit(x[share == 0])
                    field.step()
                now = field.conductance(sheet.queries)
                rise = np.maximum(now - told, 0)
                told, risen, largest = now, risen + rise, max(largest, float(rise.max()))
            rows.append({"d": d, "seed": seed, "risen": float(risen.mean()), "largest": largest})
    return pd.DataFrame(rows)


def _strayed(sheet: Sheet, seed: int) -> Sheet:
    """The same, with a tenth of the reports moved to another point that was visited then."""
    rng = np.random.default_rng([seed, 99])
    shares = np.zeros_like(sheet.shares)
    for t, i in np.argwhere(sheet.shares > 0):
        target = rng.integers(shares.shape[1]) if rng.random() < STRAY else i
        shares[t, target] += sheet.shares[t, i]
    return Sheet(sheet.points, shares, sheet.queries, sheet.clean)
