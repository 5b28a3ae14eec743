"""The table of commands, and the entry point `main`."""

from __future__ import annotations

from typing import Annotated

import typer

import rapo
from rapo_core.command_line import run_command
from rapo_core.lazy_commands import LazyGroup, new_app

COMMANDS = {
    "demo": ("rapo.cli.demo:demo", "Show replay in a minute: a table and a picture."),
    "graph": ("rapo.cli.graph:graph", "Turn an edge list into a graph, or describe one."),
    "rsd": ("rapo.cli.replay:rsd", "Does a policy replay? Run the diagnostic."),
    "report": ("rapo.cli.replay:report", "Put saved results of rsd on one HTML page."),
    "train": ("rapo.cli.train:train", "Train a method of the paper, or constrained PPO."),
    "watch": ("rapo.cli.watch:watch", "A film of replay, P0 beside RAPO: GIF or MP4."),
    "lab": ("rapo.cli.lab:lab", "A page that answers while constants are moved."),
    "suite": (
        "rapo.cli.suite:app",
        "One scorecard on every platform: suite run, suite report.",
    ),
    "gate": ("rapo_gate.cli:app", "Harm memory in front of a real platform: init, serve, ..."),
    "reproduce": (
        "rapo.cli.studies:reproduce",
        "The paper's experiments, its numbers beside ours.",
    ),
    "calibrate": ("rapo.cli.studies:calibrate", "Choose what the paper leaves open (hours)."),
    "docs": ("rapo.cli.docs:docs", "Read the manual in the terminal."),
    "bench": ("rapo.cli.bench:app", "Run the benchmarks of a source checkout."),
}
"""By name: a function or a Typer application that is loaded when it is called, and what the list of
commands says of it."""

_TORCH = (
    "this needs torch; pip install 'rapo-rl[torch]' (for rapo reproduce and rapo suite "
    "'rapo-rl[paper]')"
)
MISSING = {
    **dict.fromkeys(("torch", "safetensors", "joblib"), _TORCH),
    **dict.fromkeys(("starlette", "uvicorn"), "this needs the lab: pip install 'rapo-rl[lab]'"),
    "rapo_gate": "rapo gate is a package of its own: pip install rapo-gate",
}
"""What to say, by module, where an optional package is not installed."""

_EPILOG = """\b
Begin with:
  rapo demo                                    see replay, and RAPO stop it
  rapo rsd aggressive --graph edges.csv        does it replay on your network?
  rapo docs                                    the manual, without a network
"""


class _Commands(LazyGroup):
    """The commands of `COMMANDS`."""

    table = COMMANDS


app = new_app(
    cls=_Commands,
    help="Regret-Aware Policy Optimization and the Replay Suppression Diagnostic: does a system "
    "repeat what harmed it, and a memory in the environment that stops it.",
    epilog=_EPILOG,
    invoke_without_command=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rapo {rapo.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the command."""
    run_command("rapo", app, "rapo-rl", MISSING)
