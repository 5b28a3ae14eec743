"""What the tests of scar fields share: fields of every kind, and streams of harm to feed them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rapo.scars import make
from rapo_core.params import FieldParams

sys.path.insert(0, str(Path(__file__).parents[4]))  # the sheet problem lives with the benchmarks
sys.path.insert(0, str(Path(__file__).parent))  # the slow fields, beside the tests

SMALL = {
    "grid": {"resolution": 24},
    "kernel": {"centres": 12},
    "density": {"components": 5},
    "network": {"reservoir": 40, "hidden": 8, "iterations": 1},
}
"""Options with which every kind fills up within a few steps."""


@pytest.fixture(params=list(SMALL))
def kind(request):
    """Every kind in turn."""
    return request.param


@pytest.fixture
def small():
    """Options of every kind."""
    return SMALL


@pytest.fixture
def build():
    """Make a small field of a kind over the unit square."""

    def made(kind, batch=None, delay=0, params=None, width=0.12, **more):
        options = {**SMALL[kind], **more}
        box = [(0.0, 1.0), (0.0, 1.0)]
        return make(kind, box, params or FieldParams(), width=width, batch=batch, delay=delay,
                    **options)  # fmt: skip

    return made


@pytest.fixture
def stream():
    """Points (steps, episodes, k, 2) and shares of which about half are 0."""

    def drawn(seed, steps=12, episodes=1, k=5):
        rng = np.random.default_rng(seed)
        points = rng.random((steps, episodes, k, 2))
        shares = np.where(
            rng.random((steps, episodes, k)) < 0.5, rng.random((steps, episodes, k)), 0
        )
        return points, shares

    return drawn
