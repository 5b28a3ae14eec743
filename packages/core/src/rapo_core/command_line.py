"""`run_command`: a Typer application whose bad input ends with one clear line and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from typing import Any, NoReturn

from rapo_core.checks import UserError
from rapo_core.version import installation_fault

DEBUG = "RAPO_DEBUG"
"""Environment variable that, set to anything but 0, shows the traceback of a fault of ours."""


def run_command(
    name: str,
    app: Callable[..., Any],
    distribution: str,
    missing: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run `app` with the words of the command line and leave the process with its exit code.

    A warning becomes a line on stderr that begins with `name`. An error that the user can mend
    becomes such a line too, with exit code 2; any other error is ours, with exit code 1.

    Args:
        name: of the command, with which every line on stderr begins.
        app: a Typer application. The core itself does not need Typer.
        distribution: the one that brings the command; its version has to be that of the core.
        missing: what to say, by module, where an optional package is not installed.
    """
    import typer

    usage_error: Any = typer.BadParameter.__base__  # whichever click typer is built on
    warnings.formatwarning = lambda message, *_: f"{name}: {message}\n"  # a line, not a traceback
    fault = installation_fault(distribution)
    if fault is not None:
        typer.echo(f"{name}: {fault}", err=True)
        sys.exit(2)
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except usage_error as error:
        typer.echo(f"{name}: {error.format_message()} (see {name} --help)", err=True)
    except MemoryError:
        typer.echo(f"{name}: there is not enough memory for these sizes", err=True)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error
        typer.echo(f"{name}: {reason}", err=True)
    except UserError as error:
        typer.echo(f"{name}: {error}", err=True)
    except BrokenExecutor:
        typer.echo(f"{name}: a process was killed, perhaps for want of memory", err=True)
    except typer.Abort:
        typer.echo(f"{name}: stopped", err=True)
    except Exception as error:
        absent = str(error.name) if isinstance(error, ModuleNotFoundError) else ""
        if missing and absent in missing:
            typer.echo(f"{name}: {missing[absent]}", err=True)
        elif os.environ.get(DEBUG, "0") not in ("", "0"):
            raise
        else:
            kind = type(error).__name__
            typer.echo(
                f"{name}: this is a fault of {name}, not of your input: {kind}: {error} "
                f"({DEBUG}=1 shows where it comes from)",
                err=True,
            )
            sys.exit(1)
    sys.exit(2)
