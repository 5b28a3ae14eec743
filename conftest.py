"""Fixtures shared by all tests: small graphs and short schedules."""

from __future__ import annotations

import os

import pytest
from measured import slow_tests

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate

pytest_plugins = ["chromium"]

os.environ.setdefault("RAPO_QUIET", "1")  # tests read stderr line by line


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make slow` found to be slow."""
    slow = slow_tests()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in slow or name.partition("::")[0] in slow:
            item.add_marker(pytest.mark.slow)


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
