"""Three readings of the paper with trained policies: what each of them holds, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from rapo.agents.config import PPOConfig
from rapo.cascade.setting import ACTIONS, AGGRESSIVE, EXPOSURE, READINGS, Setting
from rapo.paper import presets
from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset
from rapo.paper.results import Results
from rapo.paper.studies.consistency.numbers import TRAINED
from rapo.paper.studies.graph_means import PARTS, with_interval
from rapo.paper.studies.learning.plan import DEFORMED
from rapo.paper.studies.table1.analysis import against_twin
from rapo.paper.studies.table1.plan import twins
from rapo.paper.studies.verdicts import verdict
from rapo.rsd.statistics import by_unit, correlation, mean_interval

METHODS = ("GE", "PM-ST", "RAPO", "off@rep", "slow-decay")
FIXED = "off@rep-aggressive"
"""off@rep of the constant aggressive action, which cannot act differently in Replay."""
EXTRA = {
    **{f"twin_{m}": f"off@rep {m.replace('_', '-')} against a P0 twin's Exposure" for m in PARTS},
    **{f"pooled_{m}": f"off@rep {m.replace('_', '-')}, ratio of means" for m in PARTS},
    **{f"fixed_{m}": f"off@rep {m.replace('_', '-')} of the constant aggressive action"
       for m in PARTS},
    "gain": "RAPO's return over the best constant's, less 1",
    "ASD": "action shift of RAPO",
    "alive": "reach late in Exposure over GE's",
}  # fmt: skip
"""What the paper prints no number of."""

PAPER = replace(
    presets.PAPER, graph_seeds=tuple(range(5)), steps=800_000, methods=("GE", "RAPO", "off@rep")
)
SIZES: dict[str, Preset] = {
    "paper": PAPER,
    "quick": replace(PAPER, name="quick", graph_seeds=(0, 1), steps=60_000, episodes=10),
    "smoke": replace(
        PAPER, name="smoke", nodes=60, graph_seeds=(0,), steps=2_000, episodes=4,
        ppo=PPOConfig(envs=4, rollout=512, hidden=16),
    ),
}  # fmt: skip
"""What is trained, by preset; the setting is that of a reading."""


def reading(size: Preset, name: str) -> Preset:
    """The preset under one reading."""
    return replace(size, setting=Setting.named(name))


def evaluations(preset: Preset) -> dict[str, list[Evaluation]]:
    """Evaluations on every graph by row; constants stand under RAPO's kernel."""

    def constant(action: int, method: str, label: str) -> list[Evaluation]:
        policies = [Policy(preset.config("RAPO", s), ACTIONS[action]) for s in preset.graph_seeds]
        return [Evaluation(p, method, episodes=preset.episodes, label=label) for p in policies]

    rows = {m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in METHODS}
    rows |= {DEFORMED[a]: constant(a, "RAPO", DEFORMED[a]) for a in range(len(ACTIONS))}
    return rows | {"P0-twin": twins(preset), FIXED: constant(AGGRESSIVE, "off@rep", FIXED)}


def plan(size: Preset, names: Sequence[str] = READINGS) -> list[Evaluation]:
    """All that is run, graph by graph, so that a cut run has whole graphs."""
    each = [evaluations(reading(size, name)) for name in names]
    graphs = range(len(size.graph_seeds))
    return [row[graph] for graph in graphs for rows in each for row in rows.values()]


def measured(results: Results) -> pd.DataFrame:
    """Every number of the paper under one reading, a row per graph."""
    rows, base = evaluations(results.preset), results.base_return()
    frames = {name: results.episodes(row) for name, row in rows.items()}
    ge, control, rapo, off, slow = (frames[name] for name in METHODS)

    def returns(frame: pd.DataFrame) -> pd.Series[float]:
        return by_unit(frame, "ReplayReturn") / base

    def kept(name: str) -> pd.Series[float]:
        before = by_unit(_outside(ge), name)
        return by_unit(_outside(rapo), name) / before.where(before > 0)

    twin = against_twin(pd.concat([off, frames["P0-twin"]]))
    best = pd.DataFrame({name: returns(frames[name]) for name in DEFORMED}).max(axis=1)
    columns: dict[str, Any] = {m: by_unit(rapo, m) for m in (*PARTS, "OddsRatio", "ASD")}
    columns |= {"ReplayRet": returns(rapo), "off_ReplayRet": returns(off)}
    columns |= {"PM-ST_ReplayRet": returns(control), "gain": returns(rapo) / best - 1}
    for metric, part in PARTS.items():
        columns[f"off_{metric}"] = by_unit(off, metric)
        columns[f"twin_{metric}"] = by_unit(twin, metric)
        columns[f"fixed_{metric}"] = by_unit(frames[FIXED], metric)
        before = by_unit(off, f"{part}_exposure")
        columns[f"pooled_{metric}"] = by_unit(off, f"{part}_replay") / before.where(before > 0)
    columns["slow_RAG"] = by_unit(slow, "RAG")
    columns["R_c_P0"] = by_unit(control, "R_c")
    columns["R_c_kept"] = by_unit(rapo, "R_c") / columns["R_c_P0"].where(columns["R_c_P0"] > 0)
    columns |= {"served": kept("served_replay"), "outside": kept("outside_replay")}
    columns["correlation"] = pd.Series(
        {seed: correlation(part["OddsRatio"], part["RAG"]).r
         for seed, part in rapo.groupby("graph_seed")}
    )  # fmt: skip
    end = results.preset.setting.horizons[EXPOSURE]
    late = [_late(results.curves(rows[name]), end) for name in ("RAPO", "GE")]
    columns["alive"] = late[0] / late[1].where(late[1] > 0)
    return pd.DataFrame(columns)[[*(n.name for n in TRAINED), *EXTRA]]


def _outside(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(outside_replay=frame["reach_replay"] - frame["inside_replay"])


def _late(curves: pd.DataFrame, end: int) -> pd.Series[float]:
    """Mean reach in the second half of an Exposure of `end` steps, by graph."""
    late = (curves["step"] >= end / 2) & (curves["step"] < end)
    return curves[late].groupby("graph_seed")["reach"].mean()


def judged(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per reading and number: mean and 95% interval over graphs, paper's number, verdict."""
    rules = {number.name: number for number in TRAINED}
    rows = []
    for name, frame in found.items():
        for column in frame.columns:
            over = mean_interval(frame[column].to_numpy(float))
            rule = rules.get(column)
            rows.append(
                {
                    "reading": name, "number": column, "mean": over.mean, "low": over.low,
                    "high": over.high, "graphs": over.n,
                    "paper": rule.paper if rule else "",
                    "verdict": verdict(rule.holds(over.mean)) if rule else "",
                }
            )  # fmt: skip
    columns = ["reading", "number", "mean", "low", "high", "graphs", "paper", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def printed(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The same with a column per reading; what holds is marked."""
    rows = []
    for number in TRAINED:
        row = {"": number.title, "paper": number.paper}
        for name, frame in found.items():
            values = frame[number.name]
            holds = number.holds(mean_interval(values.to_numpy(float)).mean)
            row[name] = with_interval(values) + (" **holds**" if holds else "")
        rows.append(row)
    for column, title in EXTRA.items():
        row = {"": title, "paper": ""}
        rows.append(row | {name: with_interval(frame[column]) for name, frame in found.items()})
    return pd.DataFrame(rows, columns=["", "paper", *found])
