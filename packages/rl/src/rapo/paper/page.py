"""The report of a reproduction: one self-contained HTML page and a Markdown summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from rapo.html import page
from rapo.paper.results import Results
from rapo.paper.studies.section import Section
from rapo.paper.studies.verdicts import DIFFERS, HOLDS, KINDS, Claim

CLAIM_TITLES = {"name": "", "statement": "claim"}
"""Headings of the table of claims where they are not the names of the fields."""


def write_page(sections: Sequence[Section], results: Results, out: Path) -> list[Path]:
    """Write `report.html` and `summary.md`, and the claims as `claims.csv`."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    claims = sorted((c for section in sections for c in section.claims), key=_rank)
    columns = [field.name for field in fields(Claim)]
    table = pd.DataFrame([claim.__dict__ for claim in claims], columns=columns)
    heading = "The paper's results beside ours"
    context = {
        "title": f"RAPO: {heading[0].lower()}{heading[1:]}",
        "heading": heading,
        "size": _size(manifest, results),
        "headline": f"{_counts(claims)}.",
        "notes": ["The last section gives the reason of every verdict."],
        "sections": [*sections, _claims_section(claims, table)],
        "manifest": json.dumps(manifest, indent=2),
    }
    html, summary = out / "report.html", out / "summary.md"
    html.write_text(page.render("report.html", **context), encoding="utf-8")
    summary.write_text(page.render("report.md", **context), encoding="utf-8")
    table.to_csv(out / "claims.csv", index=False)
    return [html, summary]


def _rank(claim: Claim) -> int:
    """Sorts the paper's numbered results R1 to R6 first; the rest keep the sections' order."""
    number = claim.name.removeprefix("R")
    return int(number) if claim.name != number and number.isdecimal() else 99


def _counts(claims: Sequence[Claim]) -> str:
    """Holds and differs of each kind: what was aimed at or must be so is no evidence."""
    parts = []
    for kind in KINDS:
        verdicts = [claim.verdict for claim in claims if claim.kind == kind]
        parts.append(f"{kind}: {verdicts.count(HOLDS)} hold, {verdicts.count(DIFFERS)} differ")
    return "; ".join(parts)


def _size(manifest: dict[str, Any], results: Results) -> str:
    return (
        f"preset {manifest['preset']}: {len(manifest['graph_seeds'])} graphs x "
        f"{manifest['episodes']} episodes, {manifest['steps']:,} training steps; "
        f"{results.seconds() / 3600:.1f} hours of one-thread jobs by the clock in what is shown"
    )


def _claims_section(claims: Sequence[Claim], table: pd.DataFrame) -> page.Section:
    """The claims that differ, then all of them."""
    differing = pd.DataFrame(
        [
            (f"{c.name}: {c.statement}", c.kind, c.paper, c.ours, c.why)
            for c in claims
            if c.verdict == DIFFERS
        ],
        columns=["what differs", "kind", "paper", "ours", "why"],
    )
    tables = [("All claims", table.rename(columns=CLAIM_TITLES))]
    if not differing.empty:
        tables.insert(0, ("Where ours differ from the paper's", differing))
    return page.Section("claims", "Claims and numbers", tables=tables)
