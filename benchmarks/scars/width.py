"""What the width of a field does to choices, against the spread of one step's candidates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.scars import FullWarning, KernelField, width_from
from rapo_core.deformation import reweight

Array = npt.NDArray[np.floating[Any]]

RATIOS = (0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0)
"""Widths as multiples of the rule's."""
WALKERS, CANDIDATES, STEPS, JUDGED = 32, 9, 300, 2000
SPREAD = 0.03
"""Standard deviation of a walker's candidates around it, per axis, in a unit square."""
AROUND, RADII = 0.1, (0.05, 0.09)
"""Standard deviation of walkers around the stimulus, which is also how far the discs are."""


def widths(seeds: Iterable[int], progress: Callable[[str], object]) -> pd.DataFrame:
    """Harmful mass kept and clean choices disturbed, a row per seed, width and capacity.

    Walkers stand around a stimulus and choose among nine points around them; two discs beside it
    do harm. After 300 steps under the deformed choice the field is judged on fresh choices:
    `harm_kept` is the harmful mass over P0's in choices that are harmful in part, `disturbed` the
    total variation from P0 in those where no candidate is harmful.
    """
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 7])
        turn = rng.uniform(0, 2 * np.pi)
        towards = np.array([np.cos(turn), np.sin(turn)])
        discs = 0.5 + AROUND * np.array([towards, -towards])
        radii = rng.uniform(*RADII, 2)
        rule = width_from(_choices(rng, JUDGED), [(0, 1)] * 2)
        judged = _choices(rng, JUDGED)
        streams = [_choices(rng, WALKERS) for _ in range(STEPS)]
        draws = rng.random((STEPS, WALKERS))
        for ratio in RATIOS:
            for centres in (128, 1024):
                progress(f"scars: width {ratio} spreads, {centres} centres, seed {seed}")
                field = KernelField([(0, 1)] * 2, width=min(1, ratio * rule), centres=centres)
                _live(field, streams, draws, discs, radii)
                rows.append({"ratio": ratio, "centres": centres, "seed": seed,
                             "width": field.width, "size": int(field.size),
                             **_judged(field, judged, discs, radii)})  # fmt: skip
    return pd.DataFrame(rows)


def _choices(rng: np.random.Generator, n: int) -> Array:
    """(n, K, 2) candidates of walkers around the stimulus, the middle of the square."""
    at = 0.5 + AROUND * rng.normal(size=(n, 1, 2))
    return np.clip(at + SPREAD * rng.normal(size=(n, CANDIDATES, 2)), 0, 1)


def _harmful(points: Array, discs: Array, radii: Array) -> npt.NDArray[np.bool_]:
    away = np.linalg.norm(points[..., None, :] - discs, axis=-1)
    return np.asarray((away < radii).any(axis=-1))


def _law(field: KernelField, choices: Array) -> Array:
    psi = field.conductance(choices.reshape(-1, 2)).reshape(choices.shape[:2])
    return reweight(np.full(psi.shape, 1 / CANDIDATES), psi)


def _live(
    field: KernelField, streams: list[Array], draws: Array, discs: Array, radii: Array
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FullWarning)
        for choices, draw in zip(streams, draws, strict=True):
            edges = np.cumsum(_law(field, choices), axis=1)
            chosen = np.minimum((draw[:, None] >= edges).sum(axis=1), CANDIDATES - 1)
            points = choices[np.arange(WALKERS), chosen]
            hit = _harmful(points, discs, radii)
            field.deposit(points[hit], np.full(hit.sum(), min(0.1, 1 / max(hit.sum(), 1))))
            field.visit(points[~hit])
            field.step()


def _judged(field: KernelField, choices: Array, discs: Array, radii: Array) -> dict[str, float]:
    p, bad = _law(field, choices), _harmful(choices, discs, radii)
    mixed, clean = bad.any(axis=1) & ~bad.all(axis=1), ~bad.any(axis=1)
    kept = (p * bad)[mixed].sum() / (bad[mixed].sum() / CANDIDATES)
    moved = 0.5 * np.abs(p - 1 / CANDIDATES).sum(axis=1)
    return {"harm_kept": float(kept), "disturbed": float(moved[clean].mean())}
