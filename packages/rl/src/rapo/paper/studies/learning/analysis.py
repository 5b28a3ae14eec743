"""The table of all rows, and RAPO's gains and place among the mixtures."""

from __future__ import annotations

import pandas as pd

from rapo.paper.jobs import GREEDY
from rapo.paper.results import Results
from rapo.paper.studies.graph_means import interval_text, with_interval
from rapo.paper.studies.learning.claims import learning_claims, percent
from rapo.paper.studies.learning.figures import plane_figure
from rapo.paper.studies.learning.mixtures import gains, place, unbound
from rapo.paper.studies.learning.plan import BLIND, DEFORMED, RAPO, rows
from rapo.paper.studies.section import Section
from rapo.rsd.statistics import by_unit

COLUMNS = ("ReplayRet", "trace", "RAG", "AUC_R", "SM_R")
_TITLES = {
    "ReplayRet": "ReplayRet",
    "trace": "trace",
    "RAG": "RAG",
    "AUC_R": "AUC-R",
    "SM_R": "SM-R",
}


def analyse(results: Results) -> Section:
    """The table, RAPO's gains, its place against all mixtures of constants, and two claims."""
    preset = results.preset
    base = results.base_return()
    units = {name: _units(results.episodes(row), base) for name, row in rows(preset).items()}
    returns = pd.DataFrame({name: units[name]["ReplayRet"] for name in units})
    paid = results.budgets(rows(preset)[RAPO])
    free = unbound(paid, returns.index)
    gained = {
        (who, against): gains(returns, who, against)
        for who in (RAPO, BLIND, GREEDY)
        for against in ("each", "one")
    }
    gained[RAPO, BLIND] = returns[RAPO] / returns[BLIND] - 1
    places = {who: place(units, who) for who in (RAPO, BLIND, GREEDY)}
    best = returns[list(DEFORMED)].mean().idxmax()
    table = pd.DataFrame(
        [
            {"": name, **{title: with_interval(units[name][m]) for m, title in _TITLES.items()}}
            for name in units
        ]
    )
    against = pd.DataFrame(
        [
            {
                "": who,
                "over the best constant of each graph": percent(gained[who, "each"]),
                f"over {best}, the best on average": percent(gained[who, "one"]),
                "distance to the mixtures' frontier": interval_text(*places[who], "+.3f"),
            }
            for who in (RAPO, BLIND, GREEDY)
        ]
    )
    flat = [
        {"row": name, "graph_seed": seed, **{m: units[name].loc[seed, m] for m in COLUMNS}}
        for name in units
        for seed in units[name].index
    ]
    return Section(
        name="learning",
        title="What RAPO learns: beside every constant action, greedy, and without sight",
        text=[
            f"{preset.nodes} nodes, {len(preset.graph_seeds)} graphs x {preset.episodes} episodes; "
            "same draws in all rows. deformed-* always take one action in front of RAPO's kernel; "
            "greedy knows stimulus and psi and takes what is served most at the step; RAPO-x is "
            "trained as RAPO but sees x alone. trace is the mean sum of G over the episode. The "
            "best constant of each graph is chosen by the same episodes, which favours it.",
            "A mixture draws a constant for each episode, so its point lies between theirs, and "
            "exactly so. The distance is to the nearest point that some mixture attains or beats, "
            "with ReplayRet in its own unit and trace in that of the constant aggressive action; "
            "above 0 no mixture has both as good. Intervals: 95%, gains over graphs, distances by "
            "bootstrap over graphs.",
            f"RAPO over RAPO-x: {percent(gained[RAPO, BLIND])} of the return, what seeing the "
            "fields is worth.",
        ],
        tables=[("Mean and 95% interval over graph means", table), ("Gains in return", against)],
        figures=[
            (
                "learning",
                "Return against trace, means over graphs: left all rows, right those "
                "under RAPO's kernel with what mixtures of constants attain (shaded: they attain "
                "or beat it); up and to the left is better",
                plane_figure(units, DEFORMED),
            ),
        ],
        claims=learning_claims(gained[RAPO, "each"], free, places[RAPO]),
        files={"learning": pd.DataFrame(flat)},
    )


def _units(frame: pd.DataFrame, base: float) -> pd.DataFrame:
    frame = frame.assign(ReplayRet=frame["ReplayReturn"] / base)
    return pd.DataFrame({name: by_unit(frame, name) for name in COLUMNS})
