"""The same work done by others: each file holds one peer and imports its package on first use."""

from __future__ import annotations

from importlib.util import find_spec

HOW_TO_INSTALL = "peer not installed (pip install -r benchmarks/requirements.txt)"


def installed(*packages: str) -> bool:
    """Whether all packages that a peer needs can be imported."""
    return all(find_spec(package) is not None for package in packages)
