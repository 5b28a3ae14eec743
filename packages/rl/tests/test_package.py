"""What importing the packages loads: names are there, what they need comes on first use."""

import subprocess
import sys

import pytest

HEAVY = {"numba", "scipy", "pandas", "networkx", "matplotlib", "torch", "rich", "typer"}
ARRAYS = {"numpy", "gymnasium"}


def loaded_by(program):
    """Names of the top-level modules that a fresh interpreter has loaded after a program."""
    code = f"import sys; {program}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("package", "absent"), [("rapo", HEAVY), ("rapo_core", HEAVY | ARRAYS), ("rapo_gate", HEAVY)]
)
def test_importing_a_package_loads_nothing_heavy(package, absent):
    assert loaded_by(f"import {package}") & absent == set()


def test_a_public_name_loads_what_it_needs_and_no_more():
    modules = loaded_by("import rapo_core; rapo_core.HarmMemory")
    assert "numba" in modules
    assert modules & (HEAVY - {"numba", "scipy"}) == set()
