"""`rapo gate …`: a gate from the command line.

Commands that only look open the gate for reading, so they work beside a running server; the others
need to be its one writer (SQLite) and say so when they are not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rapo.gate.commands import look, make, people, platform
from rapo.gate.commands.fit import fit


def _group(text: str) -> typer.Typer:
    """A group of commands that prints its help when it is given none."""
    group = typer.Typer(
        help=text,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @group.callback()
    def _help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


app = _group("The gate: harm memory in front of a real platform.")
audit = _group("Ask the gate what it did and why.")

for command in (
    make.init, make.serve,
    platform.decide, platform.expose, platform.report,
    people.confirm, people.mode, people.override, people.allow, people.rollback, people.label,
    people.configure,
    look.status, look.verify, look.export, fit,
):  # fmt: skip
    app.command()(command)
for name, question in (
    ("region", look.audit_region), ("decision", look.audit_decision), ("bias", look.audit_bias),
    ("reporters", look.audit_reporters), ("queue", look.audit_queue),
):  # fmt: skip
    audit.command(name)(question)
app.add_typer(audit, name="audit")


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Folder for the figure.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the small stream.")] = 0,
) -> None:
    """A gate at work on a small stream: gated, explained, attacked, rolled back."""
    from rapo.gate.demo import run_demo

    run_demo(out=out, seed=seed)
