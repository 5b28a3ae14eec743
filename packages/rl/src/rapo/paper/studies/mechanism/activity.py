"""Whether RAPO stagnates: what it injects and reaches beside the baseline, judged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rapo.paper.paper import ACTIVITY_KEPT
from rapo.paper.studies.graph_means import with_interval
from rapo.paper.studies.mechanism.measures import (
    BASE,
    RAPO,
    SUSTAINED,
    Frames,
    Pieces,
    sustained,
    with_activity,
)
from rapo.paper.studies.section import Claim
from rapo.paper.studies.verdicts import CALIBRATED, PREDICTED, above, in_range, verdict
from rapo.rsd.statistics import by_unit, mean_interval


def activity_claims(pieces: Pieces, frames: Frames) -> list[Claim]:
    """The stagnation defence: what stays active outside V_sens and is injected."""
    if BASE not in frames:
        return []
    rates = pieces[RAPO][0].task.policy.config.setting.rates
    rapo, base = (with_activity(frames[m], rates) for m in (RAPO, BASE))

    def kept(name: str) -> pd.Series[float]:
        if name not in rapo or name not in base:
            return pd.Series([np.nan])
        unit = by_unit(base, name)
        return by_unit(rapo, name) / unit.where(unit > 0)

    reach = kept("reach_replay").mean()
    claims = []
    for name, word, why, kind in (
        ("injected_replay", "injection rate", "seeds asked for a step, from the action law",
         PREDICTED),
        ("served_replay", "served injections", "seeds that pass the gate, which the reward counts",
         CALIBRATED),
        ("breadth_replay", "breadth", "nodes active at least once in the Replay of any episode: "
         f"many episodes reach almost all of them once, while mean reach is {reach:.2f} of GE's",
         PREDICTED),
    ):  # fmt: skip
        share = kept(name)
        if share.isna().all():
            continue
        low, high = ACTIVITY_KEPT
        claims.append(
            Claim(
                "Stagnation",
                f"RAPO keeps the {word} of GE in Replay",
                f"{low:.0%} to {high:.0%}",
                with_interval(share),
                verdict(in_range(float(share.mean()), ACTIVITY_KEPT)),
                why + (": more than the paper's" if share.mean() > high else ""),
                kind,
            )
        )
    inside, outside, going = kept("inside_replay"), kept("outside_replay"), sustained(pieces[RAPO])
    less = mean_interval((outside - inside).to_numpy(float))
    claims.append(
        Claim(
            "Stagnation",
            "Suppression is localised: more is kept outside V_sens than inside",
            "localised",
            f"outside {with_interval(outside)} of GE's, inside {with_interval(inside)}",
            verdict(above(less.mean, less.low)),
            "Replay, graph by graph",
            CALIBRATED,
        )
    )
    kept_up = float(outside.mean())
    lasts = going >= SUSTAINED and in_range(kept_up, ACTIVITY_KEPT)
    claims.append(
        Claim(
            "Stagnation",
            "Propagation outside V_sens is sustained",
            f"sustained; activity at {ACTIVITY_KEPT[0]:.0%} to {ACTIVITY_KEPT[1]:.0%}",
            f"{with_interval(outside)} of GE's; second half of Replay over first {going:.2f}",
            verdict(lasts),
            "it goes on to the end"
            if lasts
            else "it dies out"
            if going < SUSTAINED
            else "it goes on to the end, but "
            + ("higher" if kept_up > ACTIVITY_KEPT[1] else "lower"),
            CALIBRATED,
        )
    )
    return claims
