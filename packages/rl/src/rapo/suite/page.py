"""What the suite writes for readers: `suite.csv`, `scorecard.html` and `scorecard.png`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rapo.html.page import Section, render
from rapo.platforms.data import STAND_IN
from rapo.suite.figure import plot_scorecard
from rapo.suite.measure import CONSTANT
from rapo.suite.policies import CONSTANT_ACTION
from rapo.suite.scorecard import METRICS, Card

SHORT = {"SM_R": "SM-R", "AUC_R": "AUC-R", "ReturnKept": "return kept", "OddsRatio": "odds"}
"""Titles of the page's columns where they differ from the names in `suite.csv`."""
TITLES = {
    "SM_R": "SM-R", "SM_vs_P0": "SM_vs_P0", "ReturnKept": "return", "restored": "off@rep restores",
    "trace": "trace replays", "frontier": "beats constants", "baseline": "beats baselines",
}  # fmt: skip
"""Titles of the columns of demands."""
FIGURE_CAPTION = (
    "Six numbers of RAPO on every platform, 1 the best; diamonds: the field's own baselines; "
    "dashes: what is demanded. Red is missed"
)
FEWEST = 3
"""The page shows intervals from this number of platforms on. Over two platforms they are Student's
t intervals with one degree of freedom and reach to thousands."""


def write_scorecard(
    cards: Sequence[Card], manifest: dict[str, Any], waiting: Sequence[str], out: Path
) -> None:
    """Write `suite.csv`, `scorecard.html` and `scorecard.png`, also over earlier ones.

    Args:
        cards: of the finished domains.
        manifest: of the folder.
        waiting: domains of the folder that are not finished.
        out: the folder.
    """
    table = pd.concat([card.table() for card in cards], ignore_index=True)
    table.to_csv(out / "suite.csv", index=False, float_format="%.6g")
    figure, _ = plot_scorecard(cards)
    figure.savefig(out / "scorecard.png", dpi=130)
    demands = [(card, demand) for card in cards for demand in card.demands]
    missed = [(card.title, d.text, d.result) for card, d in demands if not d.holds]
    missed_table = pd.DataFrame(missed, columns=["missed in", "demand", "result"])
    heading = f"Scorecard of {len(cards)} platform{'s' if len(cards) > 1 else ''}"
    page = render(
        "report.html",
        title=f"RAPO: {heading[0].lower()}{heading[1:]}",
        heading=heading,
        size=_size(cards, manifest),
        headline=f"{len(demands) - len(missed)} demands hold, {len(missed)} are missed.",
        notes=[f"Not finished yet: {', '.join(waiting)}."] if waiting else [],
        sections=[
            Section(
                "overview",
                "All platforms",
                tables=[("Every demand on every platform", _matrix(cards))],
                figures=[("scorecard", FIGURE_CAPTION, figure)],
            ),
            *([Section("missed", "Missed demands", tables=[("", missed_table)])] if missed else []),
            *map(section_of, cards),
        ],
        manifest=json.dumps(manifest, indent=2),
    )
    (out / "scorecard.html").write_text(page, encoding="utf-8")


def _size(cards: Sequence[Card], manifest: Mapping[str, Any]) -> str:
    """How much was run, with which policy, and whether data were generated."""
    preset = manifest["config"]["preset"]
    exposure, decay, replay = preset["horizons"]
    policy = cards[0].policy
    if manifest["config"]["policy"]["name"] == CONSTANT_ACTION:
        policy = "each domain's default constant action"
    generated = ""
    if any(card.data == STAND_IN for card in cards):
        generated = "; GENERATED DATA stand in for the real ones where marked"
    return (
        f"preset {preset['name']}: {len(preset['seeds'])} platforms x {preset['episodes']} "
        f"episodes a domain, {exposure}/{decay}/{replay} steps, coupled draws; policy: "
        f"{policy}{generated}"
    )


def _matrix(cards: Sequence[Card]) -> pd.DataFrame:
    """A row per domain, a column per demand: the verdict, and the number where there is one."""
    rows = []
    for card in cards:
        row = {"domain": card.title}
        for demand in card.demands:
            number = "" if demand.name in ("frontier", "baseline") else f"{demand.result} "
            row[TITLES[demand.name]] = f"{number}{demand.verdict}"
        rows.append(row)
    return pd.DataFrame(rows)


def section_of(card: Card) -> Section:
    """The section of a domain: its demands, its rows, and the frontier of constants."""
    domain = card.domain
    demands = pd.DataFrame(
        [(d.text, d.kernel, d.result, d.verdict) for d in card.demands],
        columns=["demand", "of", "result", "verdict"],
    )
    ours = card.rows[card.rows["kernel"] != CONSTANT]
    constants = card.rows[card.rows["kernel"] == CONSTANT]
    scored = card.rows[card.rows["kernel"] == "RAPO"]
    points = pd.concat([constants, scored])
    names = [
        "RAPO" if kernel == "RAPO" else f"constant {action}, P0"
        for kernel, action in zip(points["kernel"], points["action"], strict=True)
    ]
    few = card.seeds < FEWEST
    frontier = _shown(points, ("ReturnKept", "SM_vs_P0", "Reach_vs_P0"), few)
    frontier.insert(0, "policy and kernel", names)
    rows = _shown(ours, METRICS, few)
    rows.insert(0, "kernel", ours["kernel"].tolist())
    return Section(
        name=domain.name,
        title=card.title[:1].upper() + card.title[1:],
        text=[
            f"{domain.env}, {card.policy}, data: {card.data}. Reach: {domain.reach}. Sensitive "
            f"mass: {domain.sensitive}. Return: {domain.returns}.",
        ],
        tables=[
            ("What is asked", demands),
            (f"Pooled ratios and means; {_interval(card.seeds)}", rows),
            ("The frontier of constants: every constant action under P0, same draws", frontier),
        ],
    )


def _interval(platforms: int) -> str:
    if platforms < FEWEST:
        return f"{platforms} platforms are too few for intervals"
    return f"95% intervals over {platforms} platforms in brackets"


def _shown(rows: pd.DataFrame, metrics: Sequence[str], few: bool) -> pd.DataFrame:
    """Numbers with two digits and, unless there are few platforms, their intervals."""
    return pd.DataFrame(
        {
            SHORT.get(name, name): [
                _number(row[name], row[f"{name}_low"], row[f"{name}_high"], few)
                for row in rows.to_dict("records")
            ]
            for name in metrics
        }
    )


def _number(value: float, low: float, high: float, few: bool) -> str:
    if pd.isna(value):
        return "-"
    if few or pd.isna(low) or low == high:
        return f"{value:.2f}"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"
