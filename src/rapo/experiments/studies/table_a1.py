"""Table A.1: SS and the fixed-threshold Shield, with what the Shield computes."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rapo.experiments.paper import METRICS, SHIELD_UTILITY
from rapo.experiments.presets import Preset
from rapo.experiments.studies.section import DIFFERS, HOLDS, Claim, Section, Store
from rapo.experiments.studies.table1 import TITLES, table
from rapo.experiments.tasks import Evaluate
from rapo.rsd.statistics import by_unit, mean_interval

METHODS = ("SS", "Shield")


def plan(preset: Preset) -> list[Evaluate]:
    """SS and Shield on every graph, and GE, whose return is the unit."""
    methods = ("GE", *METHODS)
    return [preset.evaluation(m, s) for m in methods for s in preset.graph_seeds]


def analyse(store: Store) -> Section:
    """The table, the Shield's compute, and the rest of R1 and R5."""
    preset = store.preset
    tasks = {m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in METHODS}
    frame = store.frame([task for each in tasks.values() for task in each])
    frame = frame.assign(ReplayRet=frame["ReplayReturn"] / store.base_return())
    summary = table(frame, METHODS)
    several = len(preset.graph_seeds) > 1
    shields = [piece.content["shield"] for piece in store.pieces(tasks["Shield"])]
    work = max(shield["transitions_per_step"] for shield in shields)
    rows: list[dict[str, Any]] = []
    for row in summary.to_dict("records"):
        spread = "_std" if several else "_episode_std"
        cells = {TITLES[m]: f"{row[m]:.2f} ± {row[m + spread]:.2f}" for m in METRICS}
        simulated = f"{work:,.0f}" if row["method"] == "Shield" else "0"
        rows.append({"method": row["method"], **cells, "simulated transitions a step": simulated})
    return Section(
        name="table-a1",
        title="Table A.1: SS and the fixed-threshold Shield",
        text=[
            f"{preset.nodes} nodes, {len(preset.graph_seeds)} graphs x {preset.episodes} episodes. "
            f"The Shield guards GE's policy with a threshold of {shields[0]['threshold']:g} of the "
            "aggressive policy's sensitive mass; a step costs it 16 rollouts of 100 steps for each "
            "of 3 actions. The paper prints no numbers for these rows but the Shield's utility."
        ],
        tables=[("Mean ± std" + (" over graph means" if several else ""), pd.DataFrame(rows))],
        claims=_claims(frame, work, several),
        files={"table_a1": summary},
    )


def _claims(frame: pd.DataFrame, work: float, several: bool) -> list[Claim]:
    def told(method: str, metric: str) -> tuple[float, str]:
        means = by_unit(frame[frame["method"] == method], metric)
        value = float(means.mean())
        if not several:
            return value, f"{value:.2f}"
        found = mean_interval(means.to_numpy(float))
        return value, f"{value:.2f} [{found.low:.2f}, {found.high:.2f}]"

    static, static_words = told("SS", "RAG")
    kept, kept_words = told("Shield", "ReplayRet")
    gain, gain_words = told("Shield", "RAG")
    return [
        Claim("R1", "SS replays like the other stationary baselines", "similar to DR, RAG ≈ 1",
              static_words, HOLDS if abs(static - 1) <= 0.15 else DIFFERS, "Theorem 1"),
        Claim("R5", "The fixed-threshold Shield keeps little utility",
              f"{SHIELD_UTILITY:.2f} of GE's return", kept_words,
              HOLDS if abs(kept - SHIELD_UTILITY) <= 0.1 else DIFFERS,
              "the paper gives no threshold; ours is half of the aggressive policy's mass"),
        Claim("R5", "The Shield suppresses replay somewhat", "moderate suppression",
              f"RAG {gain_words}", HOLDS if gain < 0.9 else DIFFERS,
              "a shield that looks at the present state alone is memoryless under P0: Theorem 1"),
        Claim("R5", "The Shield needs online simulation", "substantial",
              f"{work:,.0f} simulated transitions per environment step, RAPO none", HOLDS,
              "16 rollouts x 100 steps x 3 actions"),
    ]  # fmt: skip
