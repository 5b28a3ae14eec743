"""The report of a reproduction: one self-contained HTML page and a Markdown summary."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import fields
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from rapo.experiments.studies.section import Claim, Section, Store
from rapo.experiments.studies.verdicts import DIFFERS, HOLDS, KINDS

_DPI = 130
CLAIM_TITLES = ("", "claim", "paper", "ours", "verdict", "why", "kind")
"""Of the fields of a claim, in their order."""


def write_page(sections: Sequence[Section], store: Store, out: Path) -> list[Path]:
    """Write `report.html` and `summary.md`, and the claims as `claims.csv`."""
    claims = sorted((c for section in sections for c in section.claims), key=_place)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    html, summary = out / "report.html", out / "summary.md"
    html.write_text(_html(sections, claims, manifest, store), encoding="utf-8")
    summary.write_text(_markdown(sections, claims, manifest, store), encoding="utf-8")
    columns = [field.name for field in fields(Claim)]
    table = pd.DataFrame([claim.__dict__ for claim in claims], columns=columns)
    table.to_csv(out / "claims.csv", index=False)
    return [html, summary]


def _place(claim: Claim) -> int:
    """The paper's numbered results first, R1 to R6; the rest in the order of the sections."""
    number = claim.name.removeprefix("R")
    return int(number) if claim.name != number and number.isdecimal() else 99


def _counts(claims: Sequence[Claim]) -> str:
    """Holds and differs of each kind: what was aimed at or must be so is no evidence."""
    parts = []
    for kind in KINDS:
        verdicts = [claim.verdict for claim in claims if claim.kind == kind]
        parts.append(f"{kind}: {verdicts.count(HOLDS)} hold, {verdicts.count(DIFFERS)} differ")
    return "; ".join(parts)


def _size(manifest: dict[str, Any], store: Store) -> str:
    return (
        f"preset {manifest['preset']}: {len(manifest['graph_seeds'])} graphs x "
        f"{manifest['episodes']} episodes, {manifest['steps']:,} training steps; "
        f"{store.seconds() / 3600:.1f} hours of one-thread tasks by the clock in what is shown"
    )


def _html(
    sections: Sequence[Section], claims: Sequence[Claim], manifest: dict[str, Any], store: Store
) -> str:
    differing = _differing(claims)
    lead = (
        f"<p><strong>{escape(_counts(claims))}.</strong> Verdicts are row by row "
        f'<a href="#claims">at the end</a>.</p>\n{table_html(differing) if len(differing) else ""}'
    )
    claimed = f'<section id="claims"><h2>Claims and numbers</h2>{_claims_table(claims)}</section>'
    return html_page(
        "the paper's results beside ours", _size(manifest, store), lead, sections, claimed, manifest
    )


def html_page(
    title: str,
    size: str,
    lead: str,
    sections: Sequence[Section],
    tail: str,
    manifest: dict[str, Any],
) -> str:
    """One self-contained page of sections.

    Args:
        title: in plain words, which follow "RAPO:".
        size: one line on how much was run, without its full stop.
        lead: HTML before the sections.
        sections: with their tables and figures.
        tail: HTML after the sections.
        manifest: config, seeds, versions.
    """
    links = " · ".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in sections)
    return Template(_PAGE).substitute(
        title=escape(title),
        heading=escape(title[:1].upper() + title[1:]),
        size=escape(size),
        links=links,
        lead=lead,
        sections="\n".join(part for section in sections for part in _parts(section)),
        tail=tail,
        config=escape(json.dumps(manifest, indent=2)),
    )


def _parts(section: Section) -> list[str]:
    """HTML of a section."""
    return [
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2>',
        *(f"<p>{escape(paragraph)}</p>" for paragraph in section.text),
        *(table_html(frame, caption) for caption, frame in section.tables),
        *(picture_html(figure, caption) for _, caption, figure in section.figures),
        "</section>",
    ]


def _differing(claims: Sequence[Claim]) -> pd.DataFrame:
    """The rows that differ, so that nobody has to look for them."""
    return pd.DataFrame(
        [
            (f"{c.name}: {c.statement}", c.kind, c.paper, c.ours, c.why)
            for c in claims
            if c.verdict == DIFFERS
        ],
        columns=["what differs", "kind", "paper", "ours", "why"],
    )


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        cells = (claim.name, claim.statement, claim.paper, claim.ours)
        rows.append(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + f'<td class="{escape(claim.verdict)}">{escape(claim.verdict)}</td>'
            + f"<td>{escape(claim.why)}</td><td>{escape(claim.kind)}</td></tr>"
        )  # fmt: skip
    head = "".join(f"<th>{title}</th>" for title in CLAIM_TITLES)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def table_html(frame: pd.DataFrame, caption: str = "") -> str:
    """HTML of a table; cells that say of a demand that it is missed or holds are coloured."""
    head = "".join(f"<th>{escape(str(c))}</th>" for c in frame.columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_class(str(cell))}>{escape(str(cell))}</td>" for cell in row)
        + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return (
        f'<div class="wide"><table>{f"<caption>{escape(caption)}</caption>" if caption else ""}'
        f"<tr>{head}</tr>{body}</table></div>"
    )


def _class(cell: str) -> str:
    """Of a cell that is a verdict, or ends with one."""
    for word, name in (("MISSED", "differs"), (HOLDS, "holds")):
        if cell == word or cell.endswith(f" {word}"):
            return f' class="{name}"'
    return ""


def picture_html(figure: Any, caption: str) -> str:
    """HTML of a figure, which the page holds itself."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=_DPI)
    encoded = base64.b64encode(data.getvalue()).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{encoded}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _markdown(
    sections: Sequence[Section], claims: Sequence[Claim], manifest: dict[str, Any], store: Store
) -> str:
    lines = ["# The paper's results beside ours", "", f"{_size(manifest, store)}.", ""]
    lines += [f"{_counts(claims)}.", ""]
    differing = _differing(claims)
    if len(differing):
        lines += [*markdown_rows(differing), ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for paragraph in section.text:
            lines += [paragraph, ""]
        for caption, frame in section.tables:
            lines += [f"*{caption}*", "", *markdown_rows(frame), ""]
        for name, caption, _ in section.figures:
            lines += [f"![{caption}](figures/{name}.png)", ""]
    table = pd.DataFrame([tuple(claim.__dict__.values()) for claim in claims])
    lines += ["## Claims", "", *markdown_rows(table, CLAIM_TITLES), ""]
    return "\n".join(lines)


def markdown_rows(frame: pd.DataFrame, titles: Sequence[str] | None = None) -> list[str]:
    """Lines of a Markdown table; titles are the frame's columns unless told."""
    titles = list(map(str, frame.columns)) if titles is None else titles

    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return [line(titles), line(["---"] * len(titles)), *map(line, frame.itertuples(index=False))]


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>RAPO: $title</title>
<style>
:root { color-scheme: light; }
body { font: 15.5px/1.55 system-ui, sans-serif; color: #1f2430; max-width: 1080px;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem; padding-bottom: .3rem;
  border-bottom: 1px solid #e3e6ea; }
nav { font-size: .92rem; color: #5b6270; }
a { color: #0b5fa5; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; margin: .8rem 0 1.2rem; width: 100%; }
caption { text-align: left; color: #5b6270; padding-bottom: .3rem; }
th { text-align: left; padding: .3rem .55rem; vertical-align: bottom;
  border-bottom: 1.5px solid #9aa0a8; }
td { border-bottom: 1px solid #eceef1; padding: .28rem .55rem; vertical-align: top; }
td.holds { color: #00694c; font-weight: 600; white-space: nowrap; }
td.differs { color: #a33b00; font-weight: 600; }
figure { margin: 1.2rem 0; }
img { max-width: 100%; height: auto; }
figcaption { color: #5b6270; font-size: .9rem; }
.wide img { min-width: 680px; }
@media (max-width: 600px) { td { min-width: 4.2rem; } }
pre { background: #f6f7f9; padding: .8rem; overflow-x: auto; font-size: .78rem; }
.size { color: #5b6270; }
</style></head><body>
<h1>$heading</h1>
<p class="size">$size.</p>
<nav>$links</nav>
$lead
$sections
$tail
<section id="config"><h2>Config, seeds, versions</h2><details><summary>manifest.json</summary>
<pre>$config</pre></details></section>
</body></html>
"""
