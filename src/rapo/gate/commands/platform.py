"""What a platform does with a gate: decide, expose, report."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Annotated

import typer

from rapo.gate import tables
from rapo.gate.commands.session import BATCH, Db, Json, TextIds, opened
from rapo.gate.intake import HarmReport
from rapo.gate.words import numbers_of, regions_of, reports_from, time_of


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
