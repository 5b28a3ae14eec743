"""The `rapo` command. Bad input ends with one clear line and exit code 2.

A file per group of commands; each loads what it runs when it is called, so that `rapo --help` is
quick. A new command is a function in one of them, and its place in the list below.

- options: what several commands share
- graphs, training, replay, studies: `demo`, `graph`; `train`; `rsd`, `report`; `calibrate`,
  `reproduce`
- passed_on, manual: commands with words of their own; `rapo docs`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import rapo
from rapo.cli.graphs import demo, graph
from rapo.cli.manual import docs
from rapo.cli.passed_on import EXTRA_WORDS, PASSED_ON, bench, gate, lab, suite, watch
from rapo.cli.replay import report, rsd
from rapo.cli.studies import calibrate, reproduce
from rapo.cli.training import train
from rapo_core.command_line import run_command

_EPILOG = """\b
Begin with:
  rapo demo                                    see replay, and RAPO stop it
  rapo rsd aggressive --graph edges.csv        does it replay on your network?
  rapo docs                                    the manual, without a network
"""


Listed = tuple[Callable[..., None], str, tuple[str, ...]]
"""A command, what the list of commands says of it, and examples."""


def _for_instance(*examples: str) -> str | None:
    """Lines at the end of a command's help, kept as they are."""
    return "\n  ".join(["\b\nFor instance:", *examples]) if examples else None


app = typer.Typer(
    help="Regret-Aware Policy Optimization and the Replay Suppression Diagnostic: does a system "
    "repeat what harmed it, and a memory in the environment that stops it.",
    epilog=_EPILOG,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_FIRST: tuple[Listed, ...] = (
    (demo, "Show replay in a minute: a table and a picture.", ()),
    (graph, "Turn an edge list into a graph, or describe one.", ()),
    (
        rsd,
        "Does a policy replay? Run the diagnostic.",
        (
            "rapo rsd aggressive --nodes 100 --deformation off",
            "rapo rsd aggressive --graph net.npz --against-p0",
            "rapo rsd runs/RAPO/checkpoint.pt --out found/RAPO",
        ),
    ),
    (
        report,
        "Put saved results of rsd on one HTML page.",
        ("rapo report found/RAPO found/GE --out compared.html",),
    ),
    (train, "Train a method of the paper, or constrained PPO.", ()),
)
for _command, _short, _examples in _FIRST:
    app.command(short_help=_short, epilog=_for_instance(*_examples))(_command)
for _group, _short in (
    (watch, "A film of replay, P0 beside RAPO: GIF or MP4."),
    (lab, "A page that answers while constants are moved."),
    (suite, "One scorecard on every platform: suite run, suite report."),
    (gate, "Harm memory in front of a real platform: init, serve, ..."),
):
    app.command(short_help=_short, add_help_option=False, context_settings=PASSED_ON)(_group)
_AFTER: tuple[Listed, ...] = (
    (
        reproduce,
        "The paper's experiments, its numbers beside ours.",
        ("rapo reproduce all --preset smoke", "rapo reproduce table1,mechanism --preset quick"),
    ),
    (calibrate, "Choose what the paper leaves open (hours).", ()),
    (
        docs,
        "Read the manual in the terminal.",
        ("rapo docs faq", "rapo docs your-network | less -R"),
    ),
)
for _command, _short, _examples in _AFTER:
    app.command(short_help=_short, epilog=_for_instance(*_examples))(_command)
app.command(short_help="Run the benchmarks of a source checkout.", context_settings=EXTRA_WORDS)(
    bench
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapo {rapo.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the command."""
    extra = "pip install 'rapo-rl[torch]' (for rapo reproduce and rapo suite 'rapo-rl[paper]')"
    gate = "rapo gate is a package of its own: pip install rapo-gate"
    missing = {"torch": f"this needs torch; {extra}", "rapo_gate": gate}
    run_command("rapo", app, "rapo-rl", missing)
