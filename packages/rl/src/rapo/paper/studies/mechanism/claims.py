"""Judge what the paper says of mechanism: odds, scars, containment, actions and activity."""

from __future__ import annotations

import pandas as pd

from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY, Setting
from rapo.paper.paper import ACTIVITY_KEPT, CONTAINMENT, ODDS_RATIO
from rapo.paper.studies.graph_means import mean_of, with_interval
from rapo.paper.studies.mechanism.measures import (
    BASE,
    CONTRACTED,
    CONTROL,
    LOW_SHIFT,
    RAPO,
    SHIFTED,
    SUSTAINED,
    TWIN,
    Frames,
    Rows,
    in_phase,
    pooled,
    sustained,
    with_activity,
)
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    CONSTRUCTED,
    PREDICTED,
    Claim,
    allowance,
    bare,
    below,
    in_range,
    judge,
    mean_above,
)
from rapo.rsd.statistics import by_unit, paired_interval

BLIND = ("GE", "DR", "PM-RNN")
"""Methods that see x alone."""


def method_claims(
    curves: Frames, frames: Frames, methods: pd.DataFrame, setting: Setting
) -> list[Claim]:
    """Judge odds ratio, scars, containment, action shift and Corollary 1."""
    rows: Rows = {str(row["method"]): row for row in methods.to_dict("records")}
    claims = _odds_claims(frames, rows)
    if RAPO in frames:
        claims += [_scar_claim(curves[RAPO], setting.horizons), *_radius_claims(frames)]
    return [*claims, *_shift_claims(rows), _corollary_claim(rows)]


def _odds_claims(frames: Frames, rows: Rows) -> list[Claim]:
    claims = []
    if RAPO in frames:
        odds = by_unit(frames[RAPO], "OddsRatio")
        reason = f"a fifth, {allowance(ODDS_RATIO):.2f}; the paper gives no std"
        claims.append(
            judge(
                "Odds contraction",
                "RAPO's mean odds ratio in Replay",
                f"{ODDS_RATIO:.2f}",
                with_interval(odds),
                bare(mean_of(odds), ODDS_RATIO),
                CALIBRATED,
                f"within {reason}",
                f"not within {reason}",
            )
        )
    others = {m: row["OddsRatio"] for m, row in rows.items() if m != RAPO}
    claims.append(
        judge(
            "Odds contraction",
            "Stationary baselines and deformation off in Replay stay near 1",
            "near 1.0",
            ", ".join(f"{m} {odds:.2f}" for m, odds in others.items()),
            all(abs(odds - 1) <= 1 - CONTRACTED for odds in others.values()),
            CONSTRUCTED,
            "Replay is sampled from P0",
            "some kernel is deformed",
        )
    )
    return claims


def _scar_claim(rapo: pd.DataFrame, horizons: tuple[int, ...]) -> Claim:
    scars = pooled(rapo, "scar_mass")
    ends = [float(in_phase(scars, horizons, p)["mean"].iloc[-1]) for p in (EXPOSURE, DECAY, REPLAY)]
    return judge(
        "Scar persistence",
        "Scar mass rises in Exposure and persists through the washout into Replay",
        "rises, persists",
        "{:.1f} after Exposure, {:.1f} after the washout, {:.1f} after Replay".format(*ends),
        ends[0] > 0 and min(ends[1:]) >= 0.99 * ends[0],
        CONSTRUCTED,
        "scars do not decay (delta = 1)",
        "no scars, or they fade",
    )


def _radius_claims(frames: Frames) -> list[Claim]:
    """R2: the containment radius of RAPO beside that of a method under `P0`."""
    method = CONTROL if CONTROL in frames else BASE
    if method not in frames:
        return []
    radii = {m: by_unit(frames[m], "R_c") for m in (method, RAPO)}
    free, held = radii.values()
    paper = CONTAINMENT[1] / CONTAINMENT[0]
    gap = paired_interval(held, free)
    shrinks = below(gap.difference, gap.high)
    claims = [
        judge(
            "R2",
            f"The containment radius shrinks, {method} to RAPO",
            f"{CONTAINMENT[0]} to {CONTAINMENT[1]} hops, {paper:.2f} of it",
            f"{free.mean():.1f} to {held.mean():.1f} hops, {with_interval(held / free)} of it",
            shrinks and bare(mean_of(held / free), paper),
            CALIBRATED,
            f"halved in the paper; a fifth of that, {allowance(paper):.2f}, is allowed"
            if shrinks
            else "the largest distance ever reached hardly falls",
        )
    ]
    reason = (
        "a fifth; it depends on graphs and on the size of cascades, which the paper leaves open"
    )
    for (name, radius), number in zip(radii.items(), CONTAINMENT, strict=True):
        claims.append(
            judge(
                "R2",
                f"R_c of {name}, in hops",
                f"{number:.1f}",
                with_interval(radius, 1),
                bare(mean_of(radius), number),
                CALIBRATED,
                f"within {reason}",
                f"not within {reason}",
            )
        )
    return claims


def _shift_claims(rows: Rows) -> list[Claim]:
    """Judge how little the actions shift between Exposure and Replay."""
    claims = []
    for candidates, reason, kind in (
        (BLIND, "they see x alone, and their memory is reset", CONSTRUCTED),
        ((CONTROL,), "it sees G and H, which RSD does not reset", PREDICTED),
    ):
        shifts = {m: rows[m]["ASD"] for m in candidates if m in rows}
        if shifts:
            claims.append(
                judge(
                    "R1",
                    f"ASD of {', '.join(shifts)} is near zero",
                    "near zero",
                    ", ".join(f"{m} {shift:.2f}" for m, shift in shifts.items()),
                    all(shift <= SHIFTED for shift in shifts.values()),
                    kind,
                    reason,
                )
            )
    if RAPO in rows:
        shift = rows[RAPO]["ASD"]
        claims.append(
            judge(
                "Corollary 1",
                "RAPO suppresses with low ASD",
                "low",
                f"{shift:.2f}",
                shift <= LOW_SHIFT and rows[RAPO]["replay"] == "suppressed",
                PREDICTED,
                f"at most {LOW_SHIFT:g} counts; its policy under P0, with the shift alone: "
                f"{rows[TWIN]['replay']} replay",
            )
        )
    return claims


def _corollary_claim(rows: Rows) -> Claim:
    changed = {m: row for m, row in rows.items() if row["replay"] != "full"}
    unexplained = [m for m, row in changed.items() if row["changed"] == "neither"]
    ways = ", ".join(f"{m} {row['replay']}: {row['changed']}" for m, row in changed.items())
    return judge(
        "Corollary 1",
        "Replay changes only through an action shift or a deformed kernel",
        "(i) or (ii)",
        ways or "full replay everywhere",
        not unexplained,
        CONSTRUCTED,
        "every other method replays in full",
        f"neither in {', '.join(unexplained)}",
    )


def compounding_claim(depth: pd.DataFrame) -> Claim:
    """Judge whether the contraction of one step compounds over steps."""
    return judge(
        "Lemma 1",
        "The contraction compounds over steps: mass falls by more than one step's factor",
        "exponential attenuation",
        f"sensitive mass {with_interval(depth['mass_ratio'])} of the P0 twin's, one step "
        f"{with_interval(depth['one_step'])}: its power {with_interval(depth['depth'], 1)}",
        mean_above(depth["depth"], 1.0),
        PREDICTED,
        "a power above 1 compounds; new seeds at every step keep it from growing",
    )


def activity_claims(curves: Frames, frames: Frames, setting: Setting) -> list[Claim]:
    """Judge that RAPO does not stagnate: how much it injects and reaches beside the baseline."""
    if BASE not in frames:
        return []
    rapo, base = (with_activity(frames[m], setting.rates) for m in (RAPO, BASE))

    def kept(name: str) -> pd.Series[float]:
        """Share of the baseline's that RAPO keeps, by graph."""
        if name not in rapo or name not in base:
            return pd.Series(dtype=float)
        unit = by_unit(base, name)
        return by_unit(rapo, name) / unit.where(unit > 0)

    low, high = ACTIVITY_KEPT
    reach = kept("reach_replay").mean()
    claims = []
    for name, quantity, reason, kind in (
        (
            "injected_replay",
            "injection rate",
            "seeds asked for a step, from the action law",
            PREDICTED,
        ),
        (
            "served_replay",
            "served injections",
            "seeds that pass the gate, which the reward counts",
            CALIBRATED,
        ),
        (
            "breadth_replay",
            "breadth",
            "nodes active at least once in the Replay of any episode: many episodes reach almost "
            f"all of them once, while mean reach is {reach:.2f} of GE's",
            PREDICTED,
        ),
    ):
        share = kept(name)
        if not share.isna().all():
            claims.append(
                judge(
                    "Stagnation",
                    f"RAPO keeps the {quantity} of GE in Replay",
                    f"{low:.0%} to {high:.0%}",
                    with_interval(share),
                    in_range(mean_of(share), ACTIVITY_KEPT),
                    kind,
                    reason + (": more than the paper's" if share.mean() > high else ""),
                )
            )
    inside, outside = kept("inside_replay"), kept("outside_replay")
    going = sustained(curves[RAPO], setting.horizons)
    level = "higher" if mean_of(outside) > high else "lower"
    return [
        *claims,
        judge(
            "Stagnation",
            "Suppression is localised: more is kept outside V_sens than inside",
            "localised",
            f"outside {with_interval(outside)} of GE's, inside {with_interval(inside)}",
            mean_above(outside - inside),
            CALIBRATED,
            "Replay, graph by graph",
        ),
        judge(
            "Stagnation",
            "Propagation outside V_sens is sustained",
            f"sustained; activity at {low:.0%} to {high:.0%}",
            f"{with_interval(outside)} of GE's; second half of Replay over first {going:.2f}",
            going >= SUSTAINED and in_range(mean_of(outside), ACTIVITY_KEPT),
            CALIBRATED,
            "it goes on to the end",
            "it dies out" if going < SUSTAINED else f"it goes on to the end, but {level}",
        ),
    ]
