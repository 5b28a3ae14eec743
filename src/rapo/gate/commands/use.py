"""Using a gate: what a platform does, and what people ask.

Questions open it for reading, so a server may run meanwhile.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rapo.gate import audit, tables
from rapo.gate.commands import BATCH, Db, Json, Name, TextIds, opened
from rapo.gate.events import plain_event
from rapo.gate.intake import HarmReport
from rapo.gate.words import numbers_of, region_of, regions_of, reports_from, time_of


def decide(
    db: Db,
    regions: Annotated[str, typer.Option(help="Region of each candidate, as a,b,c.")],
    p: Annotated[str, typer.Option("--p", help="Their proposed probabilities, as .5,.3,.2.")],
    request_id: Annotated[
        str | None, typer.Option(help="Sent twice, the first answer comes again.")
    ] = None,
    stimulus: Annotated[str | None, typer.Option(help="What is being recommended.")] = None,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Gate a proposed distribution."""
    names, law = regions_of(regions, text_ids), numbers_of("--p", p)
    with opened(db, write=True) as gate:
        decision = gate.decide_logged(names, law, request_id, stimulus=stimulus).result()
    if as_json:
        tables.print_json({
            "decision_id": decision.decision_id, "q": decision.q.tolist(),
            "psi": decision.psi.tolist(), "revision": decision.revision, "mode": decision.mode,
        })  # fmt: skip
    else:
        tables.show(tables.decision_table(names, law, decision))


def expose(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    shown: Annotated[str, typer.Option(help="Regions that were really shown, as a,b.")],
    text_ids: TextIds = False,
) -> None:
    """Say which candidates of a decision were really shown."""
    names = regions_of(shown, text_ids)
    with opened(db, write=True) as gate:
        in_time = gate.expose(decision, names)
    typer.echo("noted" if in_time else "noted, but reports on that decision have counted already")


def report(
    db: Db,
    source: Annotated[str | None, typer.Option(help="Who reports.")] = None,
    key: Annotated[str | None, typer.Option(help="The reporter's name of this report.")] = None,
    harm: Annotated[float | None, typer.Option(help="From 0 to max_harm.")] = None,
    signal: Annotated[str | None, typer.Option(help="Kind of evidence, as classifier.")] = None,
    at: Annotated[
        str | None, typer.Option(help="When it was exposed: Unix seconds, ISO 8601, 2h; now.")
    ] = None,
    decision: Annotated[str | None, typer.Option(help="The decision that exposed it.")] = None,
    regions: Annotated[str | None, typer.Option(help="Or the regions, as a,b.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Many: .jsonl, .csv (regions as a;b), or - for JSON lines.")
    ] = None,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Report harm, once or from a file; says what became of each report."""
    words = {"--source": source, "--key": key, "--harm": harm, "--signal": signal}
    if file is not None:
        others = {**words, "--at": at, "--decision": decision, "--regions": regions}
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise ValueError(f"--file holds whole reports; leave out {', '.join(given)}")
        reports = _read_reports(file, text_ids)
    else:
        missing = [name for name, value in words.items() if value is None]
        if missing:
            raise ValueError(f"a report needs {', '.join(missing)}; or give --file")
        assert source is not None and key is not None and harm is not None and signal is not None
        when = time_of("--at", at)
        names = None if regions is None else regions_of(regions, text_ids)
        now = time.time() if when is None else when
        reports = [HarmReport(source, key, harm, signal, now, decision, names)]
    with opened(db, write=True) as gate:
        results = []
        for start in range(0, len(reports), BATCH):
            results += gate.report(reports[start : start + BATCH])
    refused = [i for i, r in enumerate(results) if r.status == "refused"]
    if len(results) == 1 and refused and not as_json:
        raise ValueError(results[0].error)
    if as_json:
        for result in results:
            tables.print_json(asdict(result))
    else:
        counts: dict[str, int] = {}
        for result in results:
            what = result.status + (" before" if result.duplicate else "")
            counts[what] = counts.get(what, 0) + 1
        typer.echo(", ".join(f"{n} {what}" for what, n in counts.items()))
        if len(results) == 1:
            typer.echo(f"report {results[0].report_id}")
        for i in refused[:20]:
            typer.echo(f"rapo: report {i + 1}: {results[i].error}", err=True)
    if refused:
        raise typer.Exit(1)


def _read_reports(file: str, text_ids: bool) -> list[HarmReport]:
    if file == "-":
        return reports_from(sys.stdin, "standard input", text_ids)
    with open(file, encoding="utf-8", newline="") as stream:
        return reports_from(stream, file, text_ids)


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
        found = gate.chain(name, limit)
    tables.print_json(found) if as_json else tables.show(tables.region_tables(found))


def audit_decision(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most regions, and reports of each.")] = 10,
    as_json: Json = False,
) -> None:
    """How much a decision was changed, and because of which reports."""
    with opened(db, write=False) as gate:
        found = gate.explain(decision, limit)
    tables.print_json(found) if as_json else tables.show(tables.explain_tables(found))


def audit_bias(db: Db, as_json: Json = False) -> None:
    """Report and gating rates by group and topic, with intervals."""
    with opened(db, write=False) as gate:
        found = gate.bias()
    tables.print_json(found) if as_json else tables.show(tables.bias_tables(found))


def audit_reporters(db: Db, as_json: Json = False) -> None:
    """Who reported, how much, and how much of it was rolled back."""
    with opened(db, write=False) as gate:
        found = gate.reporters()
    tables.print_json(found) if as_json else tables.show(tables.reporters_table(found))


def audit_queue(db: Db, as_json: Json = False) -> None:
    """Reports that wait for a reviewer, and why."""
    with opened(db, write=False) as gate:
        found = gate.queue()
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
