"""The test problem: harm on a bent two-dimensional sheet in d dimensions, and the exact field.

Seeds from 1000 on served every choice; figures are reported on seeds 0 to 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars import ScarField
from rapo.scars.field import REACH
from rapo_core.deformation import conductance
from rapo_core.fields import step_fields
from rapo_core.params import FieldParams

Array = npt.NDArray[np.floating[Any]]

WIDTH = 0.1
STEPS, POINTS, QUERIES = 500, 16, 1000
SIDE, BEND, NOISE = 0.7, 0.1, 0.03
"""Side of the sheet, height of its wave, distance of points from it (none in two dimensions)."""
DISCS, RADII = 3, (0.1, 0.2)
"""Harmful places: so many discs, with radii in this range, as shares of the sheet."""
PARAMS = FieldParams()


@dataclass(frozen=True)
class Sheet:
    """What happens: points (T, k, d), shares (T, k); where it is asked about: (q, d)."""

    points: Array
    shares: Array
    queries: Array
    clean: npt.NDArray[np.bool_]
    """(q,) whether a query lies outside every harmful disc."""

    @property
    def box(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0)] * self.points.shape[-1]


def make_sheet(d: int, seed: int, steps: int = STEPS) -> Sheet:
    rng = np.random.default_rng([seed, d])
    axes = np.eye(2) if d == 2 else np.linalg.qr(rng.normal(size=(d, 2)))[0]
    up = rng.normal(size=d)
    up /= np.linalg.norm(up)
    discs = rng.uniform(0.15, 0.85, (DISCS, 2))
    radii = rng.uniform(*RADII, DISCS)
    flat = rng.random((steps, POINTS, 2))
    asked = rng.random((QUERIES, 2))

    def placed(uv: Array) -> Array:
        x = 0.5 + SIDE * (uv - 0.5) @ axes.T
        if d > 2:
            x = x + BEND * np.sin(2 * np.pi * uv[..., :1]) * up
            x = x + NOISE / np.sqrt(d) * rng.normal(size=x.shape)
        return np.clip(x, 0, 1)

    def harmful(uv: Array) -> npt.NDArray[np.bool_]:
        away = np.linalg.norm(uv[..., None, :] - discs, axis=-1)
        return np.asarray((away < radii).any(axis=-1))

    hit = harmful(flat)
    n = hit.sum(axis=1, keepdims=True)
    shares = np.where(hit, np.minimum(0.1 * n, 1) / np.maximum(n, 1), 0)
    return Sheet(placed(flat), shares, placed(asked), ~harmful(asked))


def exact_psi(sheet: Sheet, at: Array, width: float = WIDTH, params: FieldParams = PARAMS) -> Array:
    """Psi (q,) of the field itself at fixed points: every deposit of every step, nothing stored."""
    G, H = np.zeros((1, len(at))), np.zeros((1, len(at)))
    p, one = params, np.ones(1)
    for x, share in zip(sheet.points, sheet.shares, strict=True):
        hit = share > 0
        squared = ((at[:, None] - x[hit]) ** 2).sum(axis=-1)
        weight = np.where(squared <= (REACH * width) ** 2, np.exp(-0.5 * squared / width**2), 0)
        inflow = (weight @ share[hit])[None]
        step_fields(G, H, one, inflow, 1 - p.lam, p.alpha, p.delta, p.eta, p.tau, G, H)
    return conductance(G[0], H[0], p)


def feed(field: ScarField, sheet: Sheet) -> ScarField:
    """Let a field live through what happens."""
    for x, share in zip(sheet.points, sheet.shares, strict=True):
        field.deposit(x, share)
        field.visit(x[share == 0])
        field.step()
    return field
