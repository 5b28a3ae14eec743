"""`LazyGroup`: a group of commands, each loaded when it is called.

This module alone needs Typer, which whoever has commands installs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

Commands = Mapping[str, tuple[str, str]]
"""By name: where a function or a Typer application is, as `module:name`, and what the list of
commands says of it."""


def new_app(**options: Any) -> typer.Typer:
    """A Typer application with plain help whose errors are left to `run_command`."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


class LazyGroup(TyperGroup):
    """A group of the commands in `table`, which a subclass sets; help loads none of them."""

    table: ClassVar[Commands] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load one command; None if the table has no such name."""
        if cmd_name not in self.table:
            return None
        return command_from(resolve_name(self.table[cmd_name][0]))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])


def command_from(loaded: Any) -> Any:
    """A function or a Typer application as a command."""
    if not isinstance(loaded, typer.Typer):
        function, loaded = loaded, new_app()
        loaded.command()(function)
    return typer.main.get_command(loaded)
