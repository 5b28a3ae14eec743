"""The summary of the study in words: what is proven, what is measured, what is mean field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from rapo.html.page import markdown
from rapo.paper.presets import Preset
from rapo.paper.studies.consistency.frontier import OFTEN, Together, never_together
from rapo.paper.studies.consistency.frontier import printed as shown
from rapo.paper.studies.consistency.numbers import SCREENED, TRAINED
from rapo.paper.studies.consistency.readings import judged, printed
from rapo.paper.studies.consistency.reasons import Reason
from rapo.paper.studies.consistency.screened import CAPPED, Screened
from rapo.paper.studies.verdicts import HOLDS

PICTURE = "consistency.png"
_TITLES = {number.name: number.title for number in SCREENED}


def summary(
    size: Preset,
    screened: Screened,
    asked: pd.DataFrame,
    counts: pd.DataFrame,
    most: Together | None,
    shifted: pd.DataFrame,
    found: Mapping[str, pd.DataFrame],
    reasons: Sequence[Reason],
) -> str:
    """The page as Markdown."""
    parts = [
        "# Which of the paper's numbers can hold together",
        f"`rapo reproduce consistency --preset {size.name}`. RAPO's row of Table 1 can be had, and "
        "so can an off@rep near 1; the question is whether one platform gives both, with the odds "
        "ratio and the slow decay that the paper prints. Three kinds of evidence, kept apart: "
        "*proven* statements with their premises, *mean field* (one well-mixed set), and "
        "*measured* settings and readings. A number holds by the rules of all our tables: within "
        "two of the paper's stds on its side of full replay, a fifth where there is no std, "
        "RAG's std for slow decay.",
        f"![Screened settings: RAPO's RAG against off@rep AUC-R, and the range of R that mean "
        f"field leaves, by odds ratio]({PICTURE})",
        "## Reasons",
        *_reasons(reasons),
        "## Measured: screened settings",
        rests_on(screened),
    ]
    if len(screened.frame):
        parts += _frontier(asked, counts, most)
    if len(shifted):
        parts += [
            "The settings that meet RAPO's RAG and off@rep's AUC-R both, run again with actions "
            "that never change (the best by score, at most five). `aggressive` columns are the "
            "shares of that action. Where off@rep is small under the greedy policy and not under "
            "the aggressive action, the policy stepped back, in Exposure or in Replay; the kernel "
            "did not let the same activity through.",
            markdown(shifted.round(2)),
        ]
    if found:
        parts += [
            "## Measured: three readings with trained policies",
            f"Graphs {', '.join(map(str, size.graph_seeds))} of {size.nodes} nodes, "
            f"{size.steps:,} training steps, {size.episodes} episodes; mean and 95% interval over "
            "graphs. Rows without a number of the paper are ours: off@rep against the Exposure of "
            "the same policy under P0, and of an action that never changes, for which the bound of "
            "1 is proven.",
            markdown(printed(dict(found))),
            _held(found),
        ]
    parts += [
        "## What would settle it",
        "Two facts of the original runs that the paper need not have printed. First, the action "
        "law in Replay beside that in Exposure, for RAPO and off@rep: a policy that asks for less "
        "in Replay can bring off@rep below 1 and to a return of .82, and the gate would then cost "
        "no return of its own. Second, which Exposure off@rep is divided by: against one under P0 "
        "its ratios lie near 1 whatever the scars are. Either would take off@rep out of conflict "
        "with the statements above.",
    ]
    return "\n\n".join(parts) + "\n"


def _reasons(reasons: Sequence[Reason]) -> list[str]:
    return [
        f"**{reason.name}** ({reason.kind}). {reason.statement} *Premise:* {reason.premise} "
        f"*Numbers:* {reason.numbers_text()}. *Rules out:* {reason.rules_out}"
        for reason in reasons
    ]


def rests_on(screened: Screened) -> str:
    """How many settings and graphs the frontier rests on, and what was left out."""
    counts = screened.counts
    if not screened.logs:
        return "No screening log was found; this part is left out (see --data)."
    left = ", ".join(
        f"{counts[name]} {words}"
        for name, words in (
            ("not_run", "could not be run"),
            ("older", "of version 0.1 without off@rep"),
            ("repeated", "repeated"),
            ("capped", f"with more than {CAPPED:.0%} capped edges"),
        )
        if counts[name]
    )
    return (
        f"{len(screened.frame)} settings, each on {screened.graphs} calibration graphs of 250 "
        f"nodes (seeds from 1000 on), from {counts['lines']} lines of {', '.join(screened.logs)}"
        + (f"; left out: {left}" if left else "")
        + ". RAPO's policy is the greedy one that looks at the conductance, GE's the constant "
        "aggressive action. The search was drawn towards the paper's numbers, so counts are no "
        "probabilities, and what was never seen is not thereby impossible."
    )


def _frontier(asked: pd.DataFrame, counts: pd.DataFrame, most: Together | None) -> list[str]:
    never = [f"{_TITLES[a]} with {_TITLES[b]}" for a, b in never_together(counts)]
    rare = [
        f"{_TITLES[name]} ({int(counts[name].max())})"
        for name in counts.columns
        if counts[name].max() < OFTEN
    ]
    table = counts.rename(index=_TITLES).reset_index(names="")
    parts = [
        markdown(shown(asked)),
        "How many settings meet both numbers (on the diagonal, the one):",
        markdown(table),
        f"Each met by at least {OFTEN} settings, never both by one: "
        + ("; ".join(never) or "none")
        + ".",
    ]
    if rare:
        parts.append(f"Met by fewer: {', '.join(rare)}.")
    if most is not None:
        parts.append(
            f"Most numbers met at once: {len(most.met)} of {len(counts)} by {most.settings} "
            f"settings, the best of them {most.key} of {most.log}: "
            f"{', '.join(_TITLES[n] for n in most.met)}; not "
            f"{', '.join(_TITLES[n] for n in most.missed)}."
        )
    return parts


def _held(found: Mapping[str, pd.DataFrame]) -> str:
    table = judged(dict(found))
    counts = table[table["verdict"] == HOLDS].groupby("reading").size()
    words = ", ".join(f"{name} {counts.get(name, 0)}" for name in found)
    return f"Numbers that hold, of {len(TRAINED)}: {words}."
