"""The report of a reproduction: one self-contained HTML page and a Markdown summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from rapo.paper.studies.section import Claim, Section, Store
from rapo.paper.studies.verdicts import DIFFERS, HOLDS, KINDS
from rapo.rsd.page import page_html, picture_html, table_html

__all__ = ["html_page", "markdown_rows", "picture_html", "table_html", "write_page"]

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
    body = _BODY.substitute(
        heading=escape(title[:1].upper() + title[1:]),
        size=escape(size),
        links=links,
        lead=lead,
        sections="\n".join(part for section in sections for part in _parts(section)),
        tail=tail,
        config=escape(json.dumps(manifest, indent=2)),
    )
    return page_html(f"RAPO: {title}", body)


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
            "<tr>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + f'<td class="{escape(claim.verdict)}">{escape(claim.verdict)}</td>'
            + f"<td>{escape(claim.why)}</td><td>{escape(claim.kind)}</td></tr>"
        )
    head = "".join(f"<th>{title}</th>" for title in CLAIM_TITLES)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


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


_BODY = Template("""<h1>$heading</h1>
<p class="size">$size.</p>
<nav>$links</nav>
$lead
$sections
$tail
<section id="config"><h2>Config, seeds, versions</h2><details><summary>manifest.json</summary>
<pre>$config</pre></details></section>""")
