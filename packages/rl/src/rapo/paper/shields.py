"""Shields from a trained GE: with a fixed threshold, or tuned to RAPO's replay return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from rapo.agents.card import model_card
from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.agents.resolve import EpisodeRun
from rapo.agents.saved_run import CARD, WEIGHTS, SavedRun, open_saved
from rapo.agents.shield import Shield
from rapo.jobs.lock import locked
from rapo.paper.evaluation import evaluate_run
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError
from rapo_core.files import written_whole

HELD_OUT = 1_000_000
"""Seed of the first episode that a threshold is tuned on; no table is made of these."""
TOLERANCE = 0.02
"""How close Shield-UM's replay return must come to RAPO's, both over GE's."""
LOWEST, HIGHEST = 0.02, 2.0
"""Thresholds between which the match is sought; the lowest blocks nearly all, the highest none."""
TRIES = 12
"""Bisections before the closest threshold is taken."""


def make_shield(
    policy: Path | str,
    out: Path | str,
    *,
    match: Path | str | None = None,
    threshold: float | None = None,
    episodes: int = 20,
    report: Callable[[float, float], None] | None = None,
) -> dict[str, Any]:
    """Write a run to `out`: GE's policy with a shield around it.

    With `match` the threshold is found by bisection so that the mean Replay return on held-out
    episodes comes within 0.02 of RAPO's (in units of GE's); the curve is kept in `tuning.csv`.
    Under `P0` neither GE nor the shield knows in Replay what Exposure did, so these trials skip
    Exposure and the washout.

    Args:
        policy: folder of a run of GE.
        out: folder to write to.
        match: folder of a run of RAPO on the same graph, for Shield-UM.
        threshold: fixed threshold of Shield, default 0.5.
        episodes: held-out episodes per trial.
        report: called with every threshold tried and the return it gave.

    Returns:
        The shield: threshold, reference, and for Shield-UM target, ReplayRet and whether matched.
    """
    out = Path(out)
    saved, run = open_saved(policy)
    if saved.config.method != "GE":
        raise UserError(f"a shield guards the policy of GE, got one of {saved.config.method}")
    if (out / WEIGHTS).exists():
        raise UserError(f"{out} holds a run; choose another --out")
    shield: dict[str, Any] = {"reference": run.references()["sensitive_mass"]}
    if match is None:
        name = "Shield"
        shield["threshold"] = SHIELD_THRESHOLD if threshold is None else threshold
        Shield(saved.agent(), shield["threshold"], reference=shield["reference"])  # check it
        curve = None
    else:
        name = "Shield-UM"
        if threshold is not None:
            raise UserError(f"Shield-UM tunes its threshold, got --threshold {threshold}")
        curve = _tune(saved, run, match, shield, episodes, report)
    with locked(out, "rapo train Shield"):
        if curve is not None:
            curve.to_csv(out / "tuning.csv", index=False, float_format="%.6g")
        config = replace(saved.config, method=name, threshold=shield["threshold"])
        guarded = replace(saved, config=config, shield=shield)
        guarded.save(out)
        with written_whole(out / CARD) as part:
            part.write_text(model_card(guarded), encoding="utf-8")
    return {"method": name, **shield}


def _tune(
    saved: SavedRun,
    run: EpisodeRun,
    match: Path | str,
    shield: dict[str, Any],
    episodes: int,
    report: Callable[[float, float], None] | None,
) -> pd.DataFrame:
    """Find the threshold, put it and how well it matches into `shield`; return all trials."""
    agent = saved.agent()
    other, theirs = open_saved(match)
    if other.config.method != "RAPO":
        raise UserError(f"Shield-UM matches the return of RAPO, got {other.config.method}")
    if other.graph_hash != saved.graph_hash:
        raise UserError(
            f"GE was trained on graph {saved.graph_hash}, RAPO on {other.graph_hash}; "
            "match policies of one graph"
        )
    config = run.config
    if (theirs.config.setting, theirs.config.params) != (config.setting, config.params):
        raise UserError(
            "GE and RAPO were trained with other settings or field constants; their returns do "
            "not compare"
        )
    rapo = evaluate_run(match, episodes=episodes, seed=HELD_OUT)
    replay = (1, 1, config.setting.horizons[2])

    def returns(policy: Any) -> float:
        result = evaluate(
            run.evaluation(), policy, episodes=episodes, seed=HELD_OUT, horizons=replay
        )
        return float(result.frame["ReplayReturn"].mean())

    best = returns(agent)
    target = float(rapo.frame["ReplayReturn"].mean()) / best
    low, high = LOWEST, HIGHEST
    trials: list[dict[str, float]] = []
    for _ in range(TRIES):
        middle = (low * high) ** 0.5
        guarded = Shield(agent, middle, reference=shield["reference"])
        kept = returns(guarded) / best
        trials.append({"threshold": middle, "ReplayRet": kept, "target": target})
        if report is not None:
            report(middle, kept)
        if abs(kept - target) <= TOLERANCE:
            break
        low, high = (middle, high) if kept < target else (low, middle)
    curve = pd.DataFrame(trials)
    nearest = min(trials, key=lambda trial: abs(trial["ReplayRet"] - target))
    shield.update(
        threshold=nearest["threshold"],
        target=target,
        ReplayRet=nearest["ReplayRet"],
        matched=abs(nearest["ReplayRet"] - target) <= TOLERANCE,
        tuning=[[t["threshold"], t["ReplayRet"]] for t in trials],
    )
    return curve
