"""Commands that have words of their own: `rapo watch`, `lab`, `suite`, `gate` and `bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from rapo.cli.options import stoppable

EXTRA_WORDS: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True}
PASSED_ON = EXTRA_WORDS | {"allow_interspersed_args": False}


def watch(context: typer.Context) -> None:
    """A film of replay under P0 and under RAPO, side by side: GIF or MP4."""
    from rapo.show.film.cli import app as commands

    with stoppable("nothing was written"):
        raise typer.Exit(commands(context.args, prog_name="rapo watch", standalone_mode=False) or 0)


def lab(context: typer.Context) -> None:
    """A page on this machine that answers while constants are moved."""
    from rapo.show.lab.command import app as commands

    raise typer.Exit(commands(context.args, prog_name="rapo lab", standalone_mode=False) or 0)


def suite(context: typer.Context) -> None:
    """One scorecard on every platform: rapo suite run, rapo suite report."""
    from rapo.suite.cli import app as commands

    with stoppable("the same command goes on where it stopped"):
        raise typer.Exit(commands(context.args, prog_name="rapo suite", standalone_mode=False) or 0)


def gate(context: typer.Context) -> None:
    """Harm memory in front of a real platform: rapo gate --help lists its commands."""
    from rapo_gate.cli import app as commands  # loaded when asked for: `rapo --help` stays fast

    raise typer.Exit(commands(context.args, prog_name="rapo gate", standalone_mode=False) or 0)


def bench(context: typer.Context) -> None:
    """Run the benchmarks of a source checkout (same as `make bench`)."""
    if not Path("benchmarks/__main__.py").exists():
        raise FileNotFoundError(
            "benchmarks/ is not here; run `rapo bench` from the root of a source checkout"
        )
    raise typer.Exit(subprocess.call([sys.executable, "-m", "benchmarks", *context.args]))
