"""`rapo bench`: the benchmarks of a source checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from rapo_core.lazy_commands import new_app

app = new_app()


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmarks of a source checkout (same as `make bench`)."""
    if not Path("benchmarks/__main__.py").exists():
        raise FileNotFoundError(
            "benchmarks/ is not here; run `rapo bench` from the root of a source checkout"
        )
    raise typer.Exit(subprocess.call([sys.executable, "-m", "benchmarks", *context.args]))
