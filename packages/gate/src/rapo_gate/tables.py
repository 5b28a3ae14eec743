"""What `rapo-gate` prints, tables for people and JSON for programs; and files of reports."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rapo_core.checks import UserError
from rapo_gate.audit import Effect
from rapo_gate.decide import Decision
from rapo_gate.events import Region
from rapo_gate.format import instant, real_of, region_of
from rapo_gate.reports import HarmReport

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


Column = str | Callable[[Values], Any]
"""What stands in a column: a value by its name, or what is made of the whole item."""


def listing(title: str, columns: Mapping[str, Column], items: Sequence[Values]) -> Table:
    """A table with a row for each of the first items."""
    rows = [
        [item[column] if isinstance(column, str) else column(item) for column in columns.values()]
        for item in items[:MOST_ROWS]
    ]
    return table(title, list(columns), rows)


def _at(item: Values) -> str:
    return instant(item["at"])


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
        ("can act", view["acting"] + ("; `rapo-gate fit` finds settings" if view["idle"] else "")),
        ("scar mass", f"{view['scar_mass']:.4g}"),
        ("decisions", f"{view['decisions']} in the last ticks, moved by {view['gating']:.2%}"),
        ("reports", f"{view['reports']} in the last ticks, {view['due']} not yet due"),
        ("queue", f"{view['waiting_for_review']} wait for a reviewer"),
        ("alarms", "; ".join(alarms) or "none"),
    ]
    return table("gate", ("", ""), rows)


def region_tables(chain: Values) -> list[Table]:
    """A region's view, the reports that made it so, and the decisions that it changed."""
    view = chain["region"]
    flags = {
        "confirmed": f"{'yes' if view['confirmed'] else 'no'} "
        f"({view['sources']} sources, {view['signals']} signals)",
        "override": _note(view["override"]),
        "allow-list": _note(view["allowed"]),
        "label": ", ".join(f"{k} {v}" for k, v in view["label"].items()) or "-",
        "exposure": f"{view['proposed']:.1f} proposed, {view['served']:.1f} served",
    }
    about = [("psi", view["psi"]), ("G", view["G"]), ("H", view["H"]), *flags.items()]
    count = len(chain["reports"][:MOST_ROWS])
    report_columns: dict[str, Column] = {
        "report": "report_id", "source": "source", "signal": "signal", "exposed": _at,
        ">harm": "harm", ">weight": "weight", ">dG": "dG", ">dH": "dH",
        "counts": lambda r: "rolled back" if r["rolled_back"] else r["counts"],
    }  # fmt: skip
    decision_columns: dict[str, Column] = {
        "decision": "decision_id", "at": _at, ">psi": "psi", ">share before": "before",
        ">after": "after", "applied": "applied",
    }  # fmt: skip
    title = f"reports ({count} of {chain['reports_in_all']}): what each added to G and H"
    return [
        table(f"region {view['region']}", ("", ""), about),
        listing(title, report_columns, chain["reports"]),
        listing("decisions that it changed, newest first", decision_columns, chain["decisions"]),
    ]


def _note(act: Values | None) -> str:
    if act is None:
        return "-"
    psi = f"psi {act['psi']:g}, " if act.get("psi") is not None else ""
    until = f" until {instant(act['expires_at'])}" if act.get("expires_at") is not None else ""
    return f"{psi}by {act['by']}: {act['reason']}{until}"


def explain_tables(explanation: Values) -> list[Table]:
    """How much a decision was changed, and because of which reports."""
    applied = "applied" if explanation["applied"] else "not applied: shadow"
    title = (
        f"decision {explanation['decision_id']} at {instant(explanation['at'])}: moved by "
        f"{explanation['total_variation']:.1%} ({applied}), {explanation['candidates']} candidates"
    )
    regions: dict[str, Column] = {
        "region": "region", ">psi": "psi", ">share before": "before", ">after": "after",
        ">reports": "reports_in_all",
    }  # fmt: skip
    reports: dict[str, Column] = {
        "report": "report_id", "source": "source", "signal": "signal", "exposed": _at,
        ">harm": "harm", ">share of the change": lambda r: f"{r['share']:.0%}",
    }  # fmt: skip
    because = [r for r in explanation["regions"] if r["because_of"]]
    return [
        listing(title, regions, explanation["regions"]),
        *(
            listing(f"because of these reports on {r['region']}", reports, r["because_of"])
            for r in because
        ),
    ]


def bias_tables(rates: Values) -> list[Table]:
    """Gating and report rates by group and by topic, with intervals."""
    columns: dict[str, Column] = {
        ">regions": "regions",
        ">exposure": "exposure",
        "taken away by the gate": lambda e: _rate(e["gating_rate"]),
        "reports per exposure": lambda e: _rate(e["report_rate"]),
        "differs": _differs,
    }
    return [
        listing(f"by {kind}: rate [95% interval] (the rest)", {kind: "label", **columns}, entries)
        for kind, entries in rates.items()
    ]


def _differs(entry: Values) -> str:
    rates = {"gating": entry["gating_rate"], "reports": entry["report_rate"]}
    return ", ".join(name for name, rate in rates.items() if rate["differs"]) or "-"


def _rate(rate: Values) -> str:
    if rate["rate"] is None:
        return "-"
    low, high = (("-" if v is None else f"{v:.3f}") for v in (rate["low"], rate["high"]))
    rest = "-" if rate["rest"] is None else f"{rate['rest']:.3f}"
    return f"{rate['rate']:.3f} [{low}, {high}] ({rest})"


def reporters_table(reporters: list[Values]) -> Table:
    """Who reported, and what became of it."""
    columns: dict[str, Column] = {
        "source": "source", ">reports": "reports", ">waiting": "waiting",
        ">rolled back": "rolled_back", ">regions": "regions", "signals": "signals",
        ">harm": "harm", ">in G": "trace",
        ">on confirmed": lambda r: "-" if r["agreed"] is None else f"{r['agreed']:.0%}",
        "last": lambda r: instant(r["last_at"]),
    }  # fmt: skip
    return listing(f"{len(reporters)} reporters", columns, reporters)


def queue_table(reports: list[Values]) -> Table:
    """What waits for a reviewer, and why."""
    columns: dict[str, Column] = {
        "report": "report_id", "why": "waits_for", "source": "source", "signal": "signal",
        "exposed": _at, ">harm": "harm",
        "decision or regions": lambda r: r["decision_id"] or r["regions"],
    }  # fmt: skip
    return listing(f"{len(reports)} reports wait for a reviewer", columns, reports)


def answer(value: Any, shown: Table | Sequence[Table] | str, as_json: bool) -> None:
    """Print JSON for programs, or tables or words for people."""
    if as_json:
        print_json(value)
    elif isinstance(shown, str):
        print(shown)
    else:
        show(shown)


def show(tables: Table | Sequence[Table], console: Console | None = None) -> None:
    """Print tables; wide enough for pipes too."""
    if console is None:
        console = Console()
        if not console.is_terminal:
            console = Console(width=160)
    for one in [tables] if isinstance(tables, Table) else tables:
        console.print(one)


# --- what is typed, and files of reports


def regions_of(text: str, text_ids: bool = False) -> list[Region]:
    """Regions from `a,b,c`; all integers or all strings."""
    regions = [region_of(name.strip(), text_ids) for name in text.split(",")]
    if any(r == "" for r in regions):
        raise UserError(f"regions must be names such as a,b,c, got {text!r}")
    if len({type(r) for r in regions}) > 1:
        raise UserError(f"{text!r} has integers and strings; --text-ids makes all strings")
    return regions


def numbers_of(name: str, text: str) -> list[float]:
    """Numbers from `.5,.3,.2`."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"{name} must be numbers such as .5,.3,.2, got {text!r}") from None


def reports_from(stream: IO[str], name: str, text_ids: bool = False) -> list[HarmReport]:
    """All reports of a file: CSV if its name ends so, else JSON lines.

    CSV has the columns source, key, harm, signal, at and decision_id or regions (a;b;c).
    Nothing is reported if a line cannot be read: the error names it.
    """
    lines = _csv_rows(stream, name, text_ids) if name.endswith(".csv") else _json_rows(stream, name)
    reports = []
    try:
        for number, values in lines:
            try:
                reports.append(HarmReport.from_dict(values))
            except (ValueError, TypeError) as error:
                raise UserError(f"{name}, line {number}: {error}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{name} cannot be read: {error}") from None
    if not reports:
        raise UserError(f"{name} holds no reports")
    return reports


def _json_rows(stream: IO[str], name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{name}, line {number}: not JSON, {error.msg}") from None


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
