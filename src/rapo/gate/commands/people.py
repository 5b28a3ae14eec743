"""What people do to a gate: each act needs a reason, and can be tried out dry."""

from __future__ import annotations

from typing import Annotated

import typer

from rapo.gate import tables
from rapo.gate.acts import Effect
from rapo.gate.commands.session import (
    By,
    Db,
    DryRun,
    Json,
    Name,
    Reason,
    TextIds,
    needs_reason,
    opened,
)
from rapo.gate.words import changes_of, login, region_of, time_of


def confirm(
    db: Db,
    reports: Annotated[list[int] | None, typer.Option("--report", help="A report's id.")] = None,
    regions: Annotated[list[str] | None, typer.Option("--region", help="A region.")] = None,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Vouch for reports or regions: the regions may scar."""
    needs_reason(reason, dry_run)
    names = [region_of(r, text_ids) for r in regions or []]
    with opened(db, write=True) as gate:
        effect = gate.confirm(reports, names, reason=reason, by=by or login(), dry_run=dry_run)
    _print_effect(effect, "confirming", as_json)


def mode(
    mode: Annotated[str, typer.Argument(metavar="shadow|enforce")],
    db: Db,
    percent: Annotated[float, typer.Option(help="Share of decisions to enforce.")] = 100.0,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
) -> None:
    """Compute and log only (shadow), or serve the gated law (enforce)."""
    needs_reason(reason, dry_run)
    with opened(db, write=True) as gate:
        effect = gate.set_mode(
            mode, percent, reason=reason or "dry run", by=by or login(), dry_run=dry_run
        )
    share = f" {percent:g}% of decisions" if mode == "enforce" else ""
    typer.echo(f"{mode}{share}: {_logged(effect)}")


def override(
    region: Name,
    db: Db,
    psi: Annotated[float | None, typer.Option(help="The region's psi, in [psi_min, 1].")] = None,
    expires: Annotated[
        str | None, typer.Option(help="Until when: 7d, ISO 8601 or Unix seconds; default never.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take an override back.")] = False,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Set a region's psi by hand, or take that back."""
    needs_reason(reason, dry_run)
    if remove == (psi is not None):
        raise ValueError("an override takes --psi, or --remove to take one back")
    end = time_of("--expires", expires, ahead=True)
    with opened(db, write=True) as gate:
        effect = gate.override(
            region_of(region, text_ids), psi, expires_at=end, reason=reason, by=by or login(),
            dry_run=dry_run,
        )  # fmt: skip
    _print_effect(effect, "the override", as_json)


def allow(
    region: Name,
    db: Db,
    remove: Annotated[bool, typer.Option("--remove", help="Take it off the list.")] = False,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Put a region on the allow-list: no report on it counts, nor ever did."""
    needs_reason(reason, dry_run)
    with opened(db, write=True) as gate:
        effect = gate.allow(
            region_of(region, text_ids), remove=remove, reason=reason, by=by or login(),
            dry_run=dry_run,
        )  # fmt: skip
    _print_effect(effect, "the allow-list", as_json)


def rollback(
    db: Db,
    reports: Annotated[list[int] | None, typer.Option("--report", help="A report's id.")] = None,
    source: Annotated[str | None, typer.Option(help="Everything of this reporter.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Exposures from this time.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="And before this time.")] = None,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take reports out as if they had never come."""
    needs_reason(reason, dry_run)
    with opened(db, write=True) as gate:
        effect = gate.rollback(
            reports, source, time_of("--from", start), time_of("--to", end), reason=reason,
            by=by or login(), dry_run=dry_run,
        )  # fmt: skip
    _print_effect(effect, "the rollback", as_json)


def label(
    region: Name,
    db: Db,
    group: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    topic: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="yes or no.")] = None,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    text_ids: TextIds = False,
) -> None:
    """Label a region for audits and outcomes; replaces its earlier label."""
    needs_reason(reason, dry_run)
    values = {"group": group, "topic": topic, "sensitive": sensitive}
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        raise ValueError("a label needs --group, --topic or --sensitive")
    with opened(db, write=True) as gate:
        effect = gate.label(
            {region_of(region, text_ids): given}, reason=reason, by=by or login(), dry_run=dry_run
        )
    typer.echo(_logged(effect))


def configure(
    changes: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...")],
    db: Db,
    reason: Reason = "",
    by: By = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Change settings, such as min_sources=5 or params.w_H=4."""
    needs_reason(reason, dry_run)
    values = changes_of(changes)
    with opened(db, write=True) as gate:
        effect = gate.configure(values, reason=reason, by=by or login(), dry_run=dry_run)
    _print_effect(effect, "the settings", as_json)


def _print_effect(effect: Effect, what: str, as_json: bool) -> None:
    if as_json:
        tables.print_json(tables.effect_values(effect))
        return
    if effect.regions:
        tables.show(tables.effect_table(effect, what))
    elif effect.reports:
        typer.echo(f"{what}: {effect.reports} reports taken out, no region changes")
    else:
        typer.echo(f"{what}: no region {'would change' if effect.dry_run else 'changed'}")
    typer.echo(_logged(effect))


def _logged(effect: Effect) -> str:
    return "a dry run: nothing was done" if effect.dry_run else f"event {effect.event}"
