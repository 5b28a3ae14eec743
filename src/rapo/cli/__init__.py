"""The `rapo` command. Bad input ends with one clear line and exit code 2.

A file per group of commands; each loads what it runs when it is called, so that `rapo --help` is
quick. A new command is a function in one of them, and its place in the list below.
"""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import BrokenExecutor
from typing import Annotated, Any

import typer

import rapo
from rapo.cli.graphs import demo, graph
from rapo.cli.passed_on import EXTRA_WORDS, PASSED_ON, bench, gate, suite
from rapo.cli.replay import report, rsd
from rapo.cli.studies import calibrate, reproduce
from rapo.cli.training import train

UsageError: Any = typer.BadParameter.__base__
"""Typer's error for wrong words on the command line, whichever click it is built on."""

app = typer.Typer(
    help="Regret-Aware Policy Optimization and the Replay Suppression Diagnostic.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in (demo, graph, train, rsd, report, calibrate, reproduce):
    app.command()(_command)
for _group in (suite, gate):
    app.command(add_help_option=False, context_settings=PASSED_ON)(_group)
app.command(context_settings=EXTRA_WORDS)(bench)


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
    warnings.formatwarning = lambda message, *_: f"rapo: {message}\n"  # a line, not a traceback
    try:
        sys.exit(app(standalone_mode=False))
    except UsageError as error:
        typer.echo(f"rapo: {error.format_message()} (see rapo --help)", err=True)
    except MemoryError:
        typer.echo("rapo: there is not enough memory for these sizes", err=True)
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else error
        typer.echo(f"rapo: {words}", err=True)
    except ValueError as error:
        typer.echo(f"rapo: {error}", err=True)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        typer.echo("rapo: this needs torch; pip install 'rapo-rl[torch]'", err=True)
    except BrokenExecutor:
        typer.echo("rapo: one of its processes was killed, perhaps for want of memory", err=True)
    except typer.Abort:
        typer.echo("rapo: stopped", err=True)
    sys.exit(2)
