"""`run_command`: a Typer application whose bad input ends with one clear line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from typing import Any, NoReturn

from rapo_core.version import installation_fault


def run_command(
    name: str,
    app: Callable[..., Any],
    distribution: str,
    missing: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run `app` with the words of the command line and leave the process with its exit code.

    A warning becomes a line on stderr that begins with `name`, and so does an error that the user
    can mend. `distribution` is the one that brings the command; it has to fit the installed core.
    `missing` holds, by module, what to say where an optional package is not installed.
    Typer has to be installed; the core itself does not need it.
    """
    import typer

    usage_error: Any = typer.BadParameter.__base__  # whichever click typer is built on
    warnings.formatwarning = lambda message, *_: f"{name}: {message}\n"  # a line, not a traceback
    fault = installation_fault(distribution)
    if fault is not None:
        typer.echo(f"{name}: {fault}", err=True)
        sys.exit(2)
    try:
        sys.exit(app(standalone_mode=False))
    except usage_error as error:
        typer.echo(f"{name}: {error.format_message()} (see {name} --help)", err=True)
    except MemoryError:
        typer.echo(f"{name}: there is not enough memory for these sizes", err=True)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error
        typer.echo(f"{name}: {reason}", err=True)
    except ValueError as error:
        typer.echo(f"{name}: {error}", err=True)
    except ModuleNotFoundError as error:
        if error.name not in (missing or {}):
            raise
        typer.echo(f"{name}: {(missing or {})[str(error.name)]}", err=True)
    except BrokenExecutor:
        typer.echo(f"{name}: a process was killed, perhaps for want of memory", err=True)
    except typer.Abort:
        typer.echo(f"{name}: stopped", err=True)
    sys.exit(2)
