"""Fixtures shared by all tests: small graphs and short schedules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rapo.cascade.generate import generate
from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))  # environments that Gymnasium imports
os.environ.setdefault("RAPO_QUIET", "1")  # tests read stderr line by line


@pytest.fixture(scope="session")
def short() -> Setting:
    """The package's setting with a schedule of 150 / 60 / 100 steps."""
    return Setting.default().replace(horizons=(150, 60, 100))


@pytest.fixture(scope="session")
def small_graph(short: Setting) -> Graph:
    """60 nodes, so that a slow reference can follow."""
    return generate(60, 1, setting=short)


@pytest.fixture(scope="session")
def graph250() -> Graph:
    """The paper's size."""
    return generate(250, 0)
