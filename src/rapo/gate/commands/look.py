"""Looking at a gate: it is opened for reading, so a server may run meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rapo.gate import audit, tables
from rapo.gate.commands.session import BATCH, Db, Json, Name, TextIds, opened
from rapo.gate.events import plain_event
from rapo.gate.words import region_of


def status(db: Db, as_json: Json = False) -> None:
    """The gate at a glance: mode, tick, regions, scars, queue, alarms."""
    with opened(db, write=False) as gate:
        view = gate.read(audit.overview)
        config = gate.config
    if as_json:
        tables.print_json({**view, "config": config.to_dict()})
    else:
        tables.show(tables.status_table(view, config.tick_seconds, config.digest()))


def audit_region(
    region: Name,
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most reports and decisions.")] = 50,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """From reports to decisions: what made a region what it is, and what it changed."""
    name = region_of(region, text_ids)
    with opened(db, write=False) as gate:
        found = gate.read(lambda state: audit.chain(state, gate.store, name, limit))
    tables.print_json(found) if as_json else tables.show(tables.region_tables(found))


def audit_decision(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most regions, and reports of each.")] = 10,
    as_json: Json = False,
) -> None:
    """How much a decision was changed, and because of which reports."""
    with opened(db, write=False) as gate:
        found = gate.read(lambda state: audit.explain(state, gate.store, decision, limit))
    tables.print_json(found) if as_json else tables.show(tables.explain_tables(found))


def audit_bias(db: Db, as_json: Json = False) -> None:
    """Report and gating rates by group and topic, with intervals."""
    with opened(db, write=False) as gate:
        found = gate.read(audit.bias)
    tables.print_json(found) if as_json else tables.show(tables.bias_tables(found))


def audit_reporters(db: Db, as_json: Json = False) -> None:
    """Who reported, how much, and how much of it was rolled back."""
    with opened(db, write=False) as gate:
        found = gate.read(audit.reporters)
    tables.print_json(found) if as_json else tables.show(tables.reporters_table(found))


def audit_queue(db: Db, as_json: Json = False) -> None:
    """Reports that wait for a reviewer, and why."""
    with opened(db, write=False) as gate:
        found = gate.read(audit.queue)
    tables.print_json(found) if as_json else tables.show(tables.queue_table(found))


def verify(db: Db, as_json: Json = False) -> None:
    """Fold the whole log afresh and compare; exit code 1 if anything differs."""
    with opened(db, write=False) as gate:
        found = gate.verify()
    if as_json:
        tables.print_json(found)
    else:
        rows = [(name, value) for name, value in found.items() if name != "ok"]
        tables.show(tables.table("ok" if found["ok"] else "NOT ok", ("", ""), rows))
    if not found["ok"]:
        raise typer.Exit(1)


def export(
    db: Db,
    out: Annotated[Path, typer.Option(help="File of JSON lines to write.")],
    after: Annotated[int, typer.Option(min=0, help="Only events after this position.")] = 0,
) -> None:
    """Write the log as JSON lines, decisions decoded."""
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out, or remove it")
    count = 0
    with opened(db, write=False) as gate, open(out, "x", encoding="utf-8") as stream:
        try:
            while events := gate.events(after, BATCH):
                for event in events:
                    stream.write(json.dumps(plain_event(event), ensure_ascii=False) + "\n")
                after, count = events[-1].position, count + len(events)
        except BaseException:
            out.unlink()  # half a log looks like a whole one
            raise
    typer.echo(f"wrote {count} events to {out}")
