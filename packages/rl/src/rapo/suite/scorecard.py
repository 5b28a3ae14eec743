"""The scorecard: every domain's rows and demands as csv, as one page and as a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rapo.html.page import Section, render
from rapo.platforms.data import STAND_IN
from rapo.suite.demands import BARS, Bar, bars
from rapo.suite.domains import DOMAINS, Domain
from rapo.suite.figure import plot_scorecard
from rapo.suite.measure import CONSTANT
from rapo.suite.rows import METRICS, domain_rows, read

SHORT = {"SM_R": "SM-R", "AUC_R": "AUC-R", "ReturnKept": "return kept", "OddsRatio": "odds"}
"""Titles of columns, where they differ from the names in `suite.csv`."""
TITLES = {
    "SM_R": "SM-R", "SM_vs_P0": "SM_vs_P0", "ReturnKept": "return", "restored": "off@rep restores",
    "trace": "trace replays", "frontier": "beats constants", "baseline": "beats baselines",
}  # fmt: skip
"""Of the demands, as columns."""
FEWEST = 3
"""Platforms from which on the page shows intervals: over two they are Student's t with one degree
of freedom, and reach to thousands."""


@dataclass(frozen=True)
class Card:
    """What was found in one domain."""

    domain: Domain
    policy: str
    data: str
    """Which data it ran on."""
    seeds: int
    episodes: int
    """On each platform."""
    rows: pd.DataFrame
    """Of `domain_rows`."""
    bars: list[Bar]

    @property
    def title(self) -> str:
        """The domain, marked where its data are a stand-in."""
        return f"{self.domain.name} ({STAND_IN})" if self.data == STAND_IN else self.domain.name

    def table(self) -> pd.DataFrame:
        """Rows as in `suite.csv`: whose they are, the numbers, and which demands hold."""
        table = self.rows.copy()
        for name in BARS:
            found = [bar for bar in self.bars if bar.name == name]
            table[f"bar_{name}"] = [
                next((b.verdict for b in found if b.kernel == kernel), "")
                for kernel in table["kernel"]
            ]
        columns: dict[str, Any] = {
            "domain": self.domain.name, "data": self.data, "policy": self.policy,
            "platforms": self.seeds, "episodes": self.episodes,
        }  # fmt: skip
        for place, (name, value) in enumerate(columns.items()):
            table.insert(place, name, value)
        return table


def card_of(name: str, keys: Sequence[str], manifest: Mapping[str, Any], root: Path) -> Card:
    """The card of a finished domain, from its pieces."""
    plan, config = manifest["domains"][name], manifest["config"]
    rows, domain = domain_rows(read(keys, root)), DOMAINS[name]
    words = config["policy"]["words"]
    policy = f"constant {domain.action}" if words == "constant" else Path(words).name
    return Card(
        domain=domain,
        policy=policy,
        data=plan["data"],
        seeds=len(keys),
        episodes=config["preset"]["episodes"],
        rows=rows,
        bars=bars(domain, rows, plan["observe"] != "x"),
    )


def write_scorecard(
    cards: Sequence[Card], manifest: dict[str, Any], waiting: Sequence[str], out: Path
) -> None:
    """Write `suite.csv`, `scorecard.html` and `scorecard.png`; made anew from the pieces.

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
    demands = [(card, bar) for card in cards for bar in card.bars]
    missed = [(card.title, bar.demand, bar.found) for card, bar in demands if not bar.holds]
    heading = f"Scorecard of {len(cards)} platform{'s' if len(cards) > 1 else ''}"
    page = render(
        "scorecard.html",
        title=f"RAPO: {heading[0].lower()}{heading[1:]}",
        heading=heading,
        size=_size(cards, manifest),
        sections=[section_of(card) for card in cards],
        held=len(demands) - len(missed),
        missed=pd.DataFrame(missed, columns=["missed in", "demand", "found"]),
        waiting=waiting,
        figure=figure,
        matrix=_matrix(cards),
        manifest=json.dumps(manifest, indent=2),
    )
    (out / "scorecard.html").write_text(page, encoding="utf-8")


def _size(cards: Sequence[Card], manifest: Mapping[str, Any]) -> str:
    preset = manifest["config"]["preset"]
    exposure, decay, replay = preset["horizons"]
    policies = ", ".join(dict.fromkeys(card.policy for card in cards))
    words = "each domain's default constant action" if "constant" in policies else policies
    made_up = ""
    if any(card.data == STAND_IN for card in cards):
        made_up = "; GENERATED DATA stand in for the real ones where marked"
    return (
        f"preset {preset['name']}: {len(preset['seeds'])} platforms x {preset['episodes']} "
        f"episodes a domain, {exposure}/{decay}/{replay} steps, coupled draws; policy: "
        f"{words}{made_up}"
    )


def _matrix(cards: Sequence[Card]) -> pd.DataFrame:
    """A row per domain, a column per demand: the number where it is one, and the verdict."""
    rows = []
    for card in cards:
        row = {"domain": card.title}
        for bar in card.bars:
            number = "" if bar.name in ("frontier", "baseline") else f"{bar.found} "
            row[TITLES[bar.name]] = f"{number}{bar.verdict}"
        rows.append(row)
    return pd.DataFrame(rows)


def section_of(card: Card) -> Section:
    """A domain: its demands, its rows, and the frontier of constants."""
    d = card.domain
    demands = pd.DataFrame(
        [(bar.demand, bar.kernel, bar.found, bar.verdict) for bar in card.bars],
        columns=["demand", "of", "found", "verdict"],
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
        name=d.name,
        title=card.title[:1].upper() + card.title[1:],
        text=[
            f"{d.env}, {card.policy}, data: {card.data}. Reach: {d.reach}. Sensitive mass: "
            f"{d.sensitive}. Return: {d.returns}.",
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
    """Numbers with two digits and, unless platforms are few, their interval."""
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
