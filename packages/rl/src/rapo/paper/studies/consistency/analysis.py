"""The statements of theory and the three readings, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rapo.cascade.setting import READINGS
from rapo.paper.results import Results
from rapo.paper.studies.consistency.figure import plot_consistency
from rapo.paper.studies.consistency.numbers import NUMBERS, PRINTED, measured
from rapo.paper.studies.consistency.plan import under
from rapo.paper.studies.consistency.reasons import reasons, spread_curve
from rapo.paper.studies.graph_means import interval_text
from rapo.paper.studies.section import Section
from rapo.paper.studies.verdicts import HOLDS, verdict
from rapo.rsd.statistics import mean_interval
from rapo_core.params import FieldParams


def analyse(results: Results) -> Section:
    """Make the table of the statements, and that of every number under every reading."""
    preset = results.preset
    values = {name: measured(Results(results.root, under(preset, name))) for name in READINGS}
    judged = judge_readings(values)
    statements = reasons()
    counts = judged[judged["verdict"] == HOLDS].groupby("reading").size()
    held = ", ".join(f"{name} {counts.get(name, 0)}" for name in READINGS)
    return Section(
        name="consistency",
        title="Which of the paper's numbers can hold together",
        text=[
            "RAPO's row of Table 1 can be had, and so can an off@rep near 1; the question is "
            "whether one platform gives both, with the odds ratio and the slow decay that the "
            "paper prints. Three kinds of evidence are kept apart: *proven* statements with their "
            "premises, *mean field* (one well-mixed set), and *measured* readings. A number holds "
            "by the rules of all our tables.",
            *(
                f"**{reason.name}** ({reason.kind}). {reason.statement} *Premise:* "
                f"{reason.premise} *Rules out:* {reason.rules_out}"
                for reason in statements
            ),
            f"The readings: graphs {', '.join(map(str, preset.reading_seeds))} of {preset.nodes} "
            f"nodes, {preset.reading_steps:,} training steps, {preset.episodes} episodes. Numbers "
            f"that hold, of {len(PRINTED)}: {held}. Rows without a number of the paper are ours: "
            "off@rep against the Exposure of the same policy under P0, and of an action that never "
            "changes, for which the bound of 1 is proven.",
            "Two facts of the original runs would settle it. First, the action law in Replay "
            "beside that in Exposure, for RAPO and off@rep: a policy that asks for less in Replay "
            "can bring off@rep below 1 and to a return of .82, and the gate would then cost no "
            "return of its own. Second, which Exposure off@rep is divided by: against one under P0 "
            "its ratios lie near 1 whatever the scars are.",
        ],
        tables=[
            (
                "What theory says",
                pd.DataFrame(
                    [
                        {"statement": r.name, "kind": r.kind, "numbers": r.numbers_text()}
                        for r in statements
                    ]
                ),
            ),
            ("Mean and 95% interval over graphs under each reading", printed(judged)),
        ],
        figures=[
            (
                "consistency",
                "RAPO's RAG against off@rep AUC-R under each reading, and the range of R that mean "
                "field leaves, by odds ratio",
                plot_consistency(values, spread_curve(FieldParams()))[0],
            )
        ],
        files={"readings": judged},
    )


def judge_readings(values: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Judge every number under every reading by its mean over graphs; a row for each.

    Args:
        values: by reading what `measured` gives.
    """
    rows = []
    for reading, frame in values.items():
        for number in NUMBERS:
            interval = mean_interval(frame[number.name].to_numpy(float))
            rows.append(
                {
                    "reading": reading,
                    "number": number.name,
                    "mean": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "graphs": interval.n,
                    "paper": number.paper,
                    "verdict": verdict(number.holds(interval.mean)) if number.paper else "",
                }
            )
    return pd.DataFrame(rows)


def printed(judged: pd.DataFrame) -> pd.DataFrame:
    """Format the judged numbers: a row per number, a column per reading."""
    cells = {
        (row["number"], row["reading"]): interval_text(row["mean"], row["low"], row["high"])
        + f" {HOLDS}" * (row["verdict"] == HOLDS)
        for row in judged.to_dict("records")
    }
    readings = list(dict.fromkeys(judged["reading"]))
    return pd.DataFrame(
        [
            {"": number.title, "paper": number.paper}
            | {reading: cells[number.name, reading] for reading in readings}
            for number in NUMBERS
        ]
    )
