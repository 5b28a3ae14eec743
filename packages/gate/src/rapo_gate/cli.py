"""The table of commands of `rapo-gate …`, and the entry point `main`.

A command is loaded when it is called. Commands that only look open the gate for reading, so they
work beside a running server; the others need to be the gate's one writer (SQLite) and say so when
they are not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from rapo_core.command_line import run_command
from rapo_core.lazy_commands import LazyGroup, command_from, new_app

COMMANDS = {
    "init": ("rapo_gate.commands:init", "Make a gate, in shadow mode."),
    "serve": ("rapo_gate.commands:serve", "Serve the HTTP API and the reviewer's page."),
    "demo": ("rapo_gate.demo:demo", "A gate at work: a small stream gated, explained, attacked."),
    "decide": ("rapo_gate.commands:decide", "Gate a proposed distribution."),
    "expose": ("rapo_gate.commands:expose", "Say which candidates were really shown."),
    "report": ("rapo_gate.commands:report", "Report harm, once or from a file."),
    "status": ("rapo_gate.commands:status", "The gate at a glance: mode, regions, scars, alarms."),
    "verify": ("rapo_gate.upkeep:verify", "Fold the whole log afresh and compare."),
    "export": ("rapo_gate.upkeep:export", "Write the log as JSON lines."),
    "fit": ("rapo_gate.upkeep:fit_settings", "Find settings in a log of shadow mode."),
    "erase": ("rapo_gate.upkeep:erase_source", "Take a reporter's name out of a log."),
    "compact": ("rapo_gate.upkeep:compact_log", "Drop events up to a time, and keep the fields."),
    "audit": ("rapo_gate.cli:audit", "Ask the gate what it did and why."),
}
"""All commands but those of human actions, which follow from `rapo_gate.actions`."""
AUDITS = {
    "region": ("rapo_gate.commands:audit_region", "What made a region what it is."),
    "decision": ("rapo_gate.commands:audit_decision", "Why a decision was changed."),
    "bias": ("rapo_gate.commands:audit_bias", "Report and gating rates by group and topic."),
    "reporters": ("rapo_gate.commands:audit_reporters", "Who reported, and what became of it."),
    "queue": ("rapo_gate.commands:audit_queue", "Reports that wait for a reviewer, and why."),
}


class _Audits(LazyGroup):
    """The commands of `AUDITS`."""

    table = AUDITS


class _Commands(LazyGroup):
    """The commands of `COMMANDS`, and one for every human action."""

    table = COMMANDS

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the table, then of the actions."""
        return [*COMMANDS, *_actions()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load one command; None if there is no such name."""
        if cmd_name in COMMANDS or cmd_name not in _actions():
            return super().get_command(ctx, cmd_name)
        from rapo_gate.commands import command_of

        return command_from(command_of(_actions()[cmd_name]))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, those of actions after the others."""
        super().format_commands(ctx, formatter)
        with formatter.section("Human actions"):
            formatter.write_dl([
                (name, action.__doc__.partition("\n")[0]) for name, action in _actions().items()
            ])  # fmt: skip


def _actions() -> dict[str, Any]:
    """Every action that `rapo_gate.actions` declares."""
    import_module("rapo_gate.actions")
    return dict(import_module("rapo_gate.declare").ACTIONS)


def _group(commands: type[LazyGroup], about: str) -> typer.Typer:
    """A group that prints its help when it is called without a command."""
    group = new_app(cls=commands, help=about, invoke_without_command=True)

    @group.callback()
    def _help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


app = _group(_Commands, "The gate: harm memory in front of a real platform.")
audit = _group(_Audits, "Ask the gate what it did and why.")


def main() -> None:
    """Entry point of the command `rapo-gate`."""
    run_command("rapo-gate", app, "rapo-gate")
