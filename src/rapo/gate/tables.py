"""What `rapo gate` prints, tables for people and JSON for programs; and files of reports."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rapo.gate.decide import Decision
from rapo.gate.declare import Effect
from rapo.gate.events import Region
from rapo.gate.format import instant, real_of, region_of
from rapo.gate.intake import HarmReport

MOST_ROWS = 40
"""Rows of a table for people; --json has all of them."""

Values = dict[str, Any]


def print_json(value: Any) -> None:
    """One JSON value on standard output; NaN has no place in it."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table; columns that begin with `>` are numbers, on the right."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        right = column.startswith(">")
        made.add_column(column.lstrip(">"), justify="right" if right else "left")
    for row in rows:
        # as Text: what a reporter wrote must not be read as markup
        made.add_row(*(cell if isinstance(cell, Text) else Text(_cell(cell)) for cell in row))
    return made


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def effect_table(effect: Effect, what: str = "") -> Table:
    """The regions that an action changes, psi, G and H before and after."""
    return table(
        f"{what} {effect_words(effect)}" if what else "",
        ("region", ">psi before", ">after", ">G before", ">after", ">H before", ">after"),
        [(c.region, *c.psi, *c.G, *c.H) for c in effect.regions[:MOST_ROWS]],
    )


def effect_words(effect: Effect) -> str:
    """How many regions changed, and how many reports were taken out."""
    count = len(effect.regions)
    regions = f"{count or 'no'} region{'s' if count > 1 else ''}"
    reports = f", {effect.reports} reports taken out" if effect.reports else ""
    return f"{'would change' if effect.dry_run else 'changed'} {regions}{reports}"


def effect_values(effect: Effect) -> Values:
    """An effect as JSON has it."""
    return asdict(effect)


def decision_table(regions: Sequence[Any], p: Sequence[float], decision: Decision) -> Table:
    """A decision, candidate by candidate."""
    title = f"decision {decision.decision_id} ({decision.mode}, revision {decision.revision})"
    rows = zip(regions, p, decision.psi.tolist(), decision.q.tolist(), strict=True)
    return table(title, ("region", ">p", ">psi", ">q"), list(rows))


def status_table(view: Values, tick_seconds: float, config: str) -> Table:
    """The gate at a glance."""
    mode = view["mode"] + (f" {view['percent']:g}%" if view["mode"] == "enforce" else "")
    alarms = [f"{name}: {seen}" for name, seen in view["alarms"].items()]
    rows = [
        ("mode", mode),
        ("tick", f"{view['tick']} (until {instant((view['tick'] + 1) * tick_seconds)})"),
        ("revision", f"{view['revision']} of {view['position']} events"),
        ("settings", config[:16]),
        ("regions", f"{view['regions']}, {view['regions_gated']} with psi < 1"),
        ("can act", view["acting"] + ("; `rapo gate fit` finds settings" if view["idle"] else "")),
        ("scar mass", f"{view['scar_mass']:.4g}"),
        ("decisions", f"{view['decisions']} in the last ticks, moved by {view['gating']:.2%}"),
        ("reports", f"{view['reports']} in the last ticks, {view['due']} not yet due"),
        ("queue", f"{view['waiting_for_review']} wait for a reviewer"),
        ("alarms", "; ".join(alarms) or "none"),
    ]
    return table("gate", ("", ""), rows)


def region_tables(found: Values) -> list[Table]:
    """A region's view, the reports that made it so, and the decisions that it changed."""
    view = found["region"]
    flags = {
        "confirmed": f"{'yes' if view['confirmed'] else 'no'} "
        f"({view['sources']} sources, {view['signals']} signals)",
        "override": _note(view["override"]),
        "allow-list": _note(view["allowed"]),
        "label": ", ".join(f"{k} {v}" for k, v in view["label"].items()) or "-",
        "exposure": f"{view['proposed']:.1f} proposed, {view['served']:.1f} served",
    }
    about = [("psi", view["psi"]), ("G", view["G"]), ("H", view["H"]), *flags.items()]
    shown, count = found["reports"][:MOST_ROWS], found["reports_in_all"]
    return [
        table(f"region {view['region']}", ("", ""), about),
        table(
            f"reports ({len(shown)} of {count}): what each added to G and H",
            ("report", "source", "signal", "exposed", ">harm", ">weight", ">dG", ">dH", "counts"),
            [_report_row(r) for r in shown],
        ),
        table(
            "decisions that it changed, newest first",
            ("decision", "at", ">psi", ">share before", ">after", "applied"),
            [
                (d["decision_id"], instant(d["at"]), d["psi"], d["before"], d["after"],
                 d["applied"])
                for d in found["decisions"][:MOST_ROWS]
            ],
        ),
    ]  # fmt: skip


def _note(act: Values | None) -> str:
    if act is None:
        return "-"
    psi = f"psi {act['psi']:g}, " if act.get("psi") is not None else ""
    until = f" until {instant(act['expires_at'])}" if act.get("expires_at") is not None else ""
    return f"{psi}by {act['by']}: {act['reason']}{until}"


def _report_row(report: Values) -> tuple[Any, ...]:
    counts = "rolled back" if report["rolled_back"] else report["counts"]
    return (
        report["report_id"], report["source"], report["signal"], instant(report["at"]),
        report["harm"], report["weight"], report["dG"], report["dH"], counts,
    )  # fmt: skip


def explain_tables(found: Values) -> list[Table]:
    """How much a decision was changed, and because of which reports."""
    applied = "applied" if found["applied"] else "not applied: shadow"
    title = (
        f"decision {found['decision_id']} at {instant(found['at'])}: moved by "
        f"{found['total_variation']:.1%} ({applied}), {found['candidates']} candidates"
    )
    tables = [table(
        title,
        ("region", ">psi", ">share before", ">after", ">reports"),
        [
            (r["region"], r["psi"], r["before"], r["after"], r["reports_in_all"])
            for r in found["regions"]
        ],
    )]  # fmt: skip
    tables += [
        table(
            f"because of these reports on {region['region']}",
            ("report", "source", "signal", "exposed", ">harm", ">share of the change"),
            [
                (r["report_id"], r["source"], r["signal"], instant(r["at"]), r["harm"],
                 f"{r['share']:.0%}")
                for r in region["because_of"]
            ],
        )
        for region in found["regions"] if region["because_of"]
    ]  # fmt: skip
    return tables


def bias_tables(found: Values) -> list[Table]:
    """Gating and report rates by group and by topic, with intervals."""
    tables = []
    for kind in ("group", "topic"):
        rows = []
        for entry in found[kind]:
            gating, reports = entry["gating_rate"], entry["report_rate"]
            marks = [n for n, r in (("gating", gating), ("reports", reports)) if r["differs"]]
            rows.append((
                entry["label"], entry["regions"], entry["exposure"], _rate(gating), _rate(reports),
                ", ".join(marks) or "-",
            ))  # fmt: skip
        tables.append(table(
            f"by {kind}: rate [95% interval] (the rest)",
            (kind, ">regions", ">exposure", "taken away by the gate", "reports per exposure",
             "differs"),
            rows,
        ))  # fmt: skip
    return tables


def _rate(rate: Values) -> str:
    if rate["rate"] is None:
        return "-"
    low, high = (("-" if v is None else f"{v:.3f}") for v in (rate["low"], rate["high"]))
    rest = "-" if rate["rest"] is None else f"{rate['rest']:.3f}"
    return f"{rate['rate']:.3f} [{low}, {high}] ({rest})"


def reporters_table(found: list[Values]) -> Table:
    """Who reported, and what became of it."""
    return table(
        f"{len(found)} reporters",
        ("source", ">reports", ">waiting", ">rolled back", ">regions", "signals", ">harm", ">in G",
         ">on confirmed", "last"),
        [
            (r["source"], r["reports"], r["waiting"], r["rolled_back"], r["regions"],
             r["signals"], r["harm"], r["trace"],
             "-" if r["agreed"] is None else f"{r['agreed']:.0%}", instant(r["last_at"]))
            for r in found[:MOST_ROWS]
        ],
    )  # fmt: skip


def queue_table(found: list[Values]) -> Table:
    """What waits for a reviewer, and why."""
    return table(
        f"{len(found)} reports wait for a reviewer",
        ("report", "why", "source", "signal", "exposed", ">harm", "decision or regions"),
        [
            (r["report_id"], r["waits_for"], r["source"], r["signal"], instant(r["at"]),
             r["harm"], r["decision_id"] or r["regions"])
            for r in found[:MOST_ROWS]
        ],
    )  # fmt: skip


def show(tables: Table | Sequence[Table], console: Console | None = None) -> None:
    """Print tables; wide enough for pipes too."""
    if console is None:
        console = Console()
        if not console.is_terminal:
            console = Console(width=160)
    for one in [tables] if isinstance(tables, Table) else tables:
        console.print(one)


# --- what is typed, and files of reports


def regions_of(words: str, text_ids: bool = False) -> list[Region]:
    """Regions from `a,b,c`; all integers or all strings."""
    found = [region_of(w.strip(), text_ids) for w in words.split(",")]
    if any(r == "" for r in found):
        raise ValueError(f"regions must be names such as a,b,c, got {words!r}")
    if len({type(r) for r in found}) > 1:
        raise ValueError(f"{words!r} has integers and strings; --text-ids makes all strings")
    return found


def numbers_of(name: str, words: str) -> list[float]:
    """Numbers from `.5,.3,.2`."""
    try:
        return [float(w) for w in words.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers such as .5,.3,.2, got {words!r}") from None


def reports_from(stream: IO[str], name: str, text_ids: bool = False) -> list[HarmReport]:
    """All reports of a file: CSV if its name ends so, else JSON lines.

    CSV has the columns source, key, harm, signal, at and decision_id or regions (a;b;c).
    Nothing is reported if a line cannot be read: the error names it.
    """
    lines = _csv_rows(stream, name, text_ids) if name.endswith(".csv") else _json_rows(stream, name)
    found = []
    try:
        for number, values in lines:
            try:
                found.append(HarmReport.from_dict(values))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from None
    if not found:
        raise ValueError(f"{name} holds no reports")
    return found


def _json_rows(stream: IO[str], name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{name}, line {number}: not JSON, {error.msg}") from None


def _csv_rows(stream: IO[str], name: str, text_ids: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = csv.DictReader(stream, strict=True)
    for row in rows:
        values: dict[str, Any] = {str(k): v for k, v in row.items() if v not in (None, "")}
        for column in ("harm", "at"):
            if column in values:
                values[column] = real_of(f"{name}, line {rows.line_num}: {column}", values[column])
        if "regions" in values:
            parts = values["regions"].split(";")
            values["regions"] = [region_of(p.strip(), text_ids) for p in parts]
        yield rows.line_num, values
