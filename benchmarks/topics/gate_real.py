"""The gate's law on real data: trust between traders, likes and hates; and its default settings.

Writes the tables and the figure of `docs/gate/real-data.md` to `results/gate`. Settings for the
traders are in `benchmarks/real/otc_choice.json`; `python -m benchmarks.real.otc_choose` made them
from the first 60% of the time. Those for likes and hates are chosen here, split by split.
"""

from __future__ import annotations

from typing import Any

from benchmarks.effort import Effort
from benchmarks.real import defaults, kuairand, kuairand_study, otc, otc_study, report
from benchmarks.real.kuairand_study import CHOSEN_AT
from benchmarks.table import Row, missing

TITLE = "Real data: harm held back at the same loss of good, the gate over its rivals"

RIVALS = ("rate", "flap damping", "trace only", otc_study.WITHOUT_SCARS)
CASES = (("later part", "all"), ("later part", "after 60 days"), ("kept-out targets", "all"),
         ("kept-out targets", "after 60 days"))  # fmt: skip


def measure(effort: Effort) -> list[Row]:
    """All figures; those whose data is not there are not measured."""
    rows: list[Row] = []
    traders, likes = otc.find(), kuairand.find()
    found: list[dict[str, Any]] = []
    splits: list[dict[str, Any]] = []
    if traders is None:
        rows.append(missing("traders", f"no {otc.FILE} in {otc.PLACES[-1]}"))
    else:
        effort.progress("traders: scoring the later part")
        found = otc_study.study(otc.read(traders), otc_study.chosen())
        report.write_table(found, "bitcoin_otc.csv")
        rows += _traders(found)
    if likes is None:
        rows.append(missing("likes and hates", f"no {kuairand.FILE} in {kuairand.PLACES[-1]}"))
    else:
        splits = kuairand_study.study(kuairand.read(likes), progress=effort.progress)
        report.write_table(splits, "kuairand.csv")
        rows += _likes(splits)
    if found and splits:
        report.draw(found, splits, report.OUT / "real-data.png")
    effort.progress("default settings")
    cases = defaults.table()
    report.write_table(cases, "defaults.csv")
    rows += [
        Row("psi at the end", float(c["psi"]), case=str(c["case"]),
            note=f"lowest of all runs {c['lowest_psi']:.3f}, H {c['H']:.2f}")
        for c in cases
    ]  # fmt: skip
    return rows


def _traders(found: list[dict[str, Any]]) -> list[Row]:
    """Gate over rival at 5% of the good lost."""
    rows = []
    for part, subset in CASES:
        for rival in RIVALS:
            (row,) = [
                r for r in found
                if (r["part"], r["subset"], r["method"], r["level"])
                == (part, subset, rival, CHOSEN_AT)
            ]  # fmt: skip
            low, high = row["gate_over_this_interval"] or (float("nan"),) * 2
            rows.append(
                Row(f"gate over {rival}", row["gate_over_this"], "x", case=f"{part}, {subset}",
                    at_least=1.0, note=f"[{low:.2f}, {high:.2f}], {row['negative']} negative of "
                    f"{row['ratings']}; AUC of {rival} {row['auc']:.3f}")
            )  # fmt: skip
    return rows


def _likes(splits: list[dict[str, Any]]) -> list[Row]:
    """Mean lift over the splits at 5% of the likes lost."""
    means = kuairand_study.mean_lifts(splits)
    return [
        Row(f"lift, {name}", value, case="likes and hates, 8 splits",
            note="hated share held back per liked share lost; 1 is chance")
        for name, value in means.items()
    ]  # fmt: skip
