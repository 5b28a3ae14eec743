"""Claims of the paper about mechanism, judged."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo.paper.paper import CONTAINMENT, ODDS_RATIO
from rapo.paper.piece_reader import Piece
from rapo.paper.studies.graph_means import with_interval
from rapo.paper.studies.mechanism.measures import (
    BASE,
    CONTRACTED,
    CONTROL,
    LOW_SHIFT,
    RAPO,
    SHIFTED,
    TWIN,
    Frames,
    Pieces,
    Rows,
    horizons_of,
    in_phase,
    pooled,
)
from rapo.paper.studies.section import Claim
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    CONSTRUCTED,
    PREDICTED,
    above,
    allowance,
    bare,
    below,
    verdict,
)
from rapo.rsd.statistics import by_unit, mean_interval, paired_interval


def method_claims(pieces: Pieces, frames: Frames, methods: pd.DataFrame) -> list[Claim]:
    """Odds ratio, scars, containment, action shift and Corollary 1."""
    of: Rows = {str(row["method"]): row for row in methods.to_dict("records")}
    claims = []
    if RAPO in frames:
        odds = by_unit(frames[RAPO], "OddsRatio")
        near = bare(float(odds.mean()), ODDS_RATIO)
        claims.append(
            Claim(
                "Odds contraction",
                "RAPO's mean odds ratio in Replay",
                f"{ODDS_RATIO:.2f}",
                with_interval(odds),
                verdict(near),
                f"{'within' if near else 'not within'} a fifth, {allowance(ODDS_RATIO):.2f}; the "
                "paper gives no std",
                CALIBRATED,
            )
        )
    flat = [m for m in of if m != RAPO]
    near = all(abs(of[m]["OddsRatio"] - 1) <= 1 - CONTRACTED for m in flat)
    claims.append(
        Claim(
            "Odds contraction",
            "Stationary baselines and deformation off in Replay stay near 1",
            "near 1.0",
            ", ".join(f"{m} {of[m]['OddsRatio']:.2f}" for m in flat),
            verdict(near),
            "Replay is sampled from P0" if near else "some kernel is deformed",
            CONSTRUCTED,
        )
    )
    if RAPO in frames:
        claims += [_scar_claim(pieces[RAPO]), *_radius_claims(frames)]
    claims += _shift_claims(of)
    changed = {m: row for m, row in of.items() if row["replay"] != "full"}
    unexplained = [m for m, row in changed.items() if row["changed"] == "neither"]
    words = ", ".join(f"{m} {row['replay']}: {row['changed']}" for m, row in changed.items())
    claims.append(
        Claim(
            "Corollary 1",
            "Replay changes only through an action shift or a deformed kernel",
            "(i) or (ii)",
            words or "full replay everywhere",
            verdict(not unexplained),
            f"neither in {', '.join(unexplained)}"
            if unexplained
            else "every other method replays in full",
            CONSTRUCTED,
        )
    )
    return claims


def _scar_claim(rapo: Sequence[Piece]) -> Claim:
    horizons, scars = horizons_of(rapo), pooled(rapo, "scar_mass")
    ends = [float(in_phase(scars, horizons, p)["mean"].iloc[-1]) for p in (EXPOSURE, DECAY, REPLAY)]
    lasting = ends[0] > 0 and min(ends[1:]) >= 0.99 * ends[0]
    return Claim(
        "Scar persistence",
        "Scar mass rises in Exposure and persists through the washout into Replay",
        "rises, persists",
        f"{ends[0]:.1f} after Exposure, {ends[1]:.1f} after the washout, {ends[2]:.1f} after "
        "Replay",
        verdict(lasting),
        "scars do not decay (delta = 1)" if lasting else "no scars, or they fade",
        CONSTRUCTED,
    )


def _radius_claims(frames: Frames) -> list[Claim]:
    method = CONTROL if CONTROL in frames else BASE
    if method not in frames:
        return []
    free, held = (by_unit(frames[m], "R_c") for m in (method, RAPO))
    paper = CONTAINMENT[1] / CONTAINMENT[0]
    share, gap = float((held / free).mean()), paired_interval(held, free)
    shrinks = below(gap.difference, gap.high)
    claims = [
        Claim(
            "R2",
            f"The containment radius shrinks, {method} to RAPO",
            f"{CONTAINMENT[0]} to {CONTAINMENT[1]} hops, {paper:.2f} of it",
            f"{free.mean():.1f} to {held.mean():.1f} hops, {with_interval(held / free)} of it",
            verdict(shrinks and bare(share, paper)),
            f"halved in the paper; a fifth of that, {allowance(paper):.2f}, is allowed"
            if shrinks
            else "the largest distance ever reached hardly falls",
            CALIBRATED,
        )
    ]
    for name, values, number in zip((method, RAPO), (free, held), CONTAINMENT, strict=True):
        near = bare(float(values.mean()), number)
        claims.append(
            Claim(
                "R2",
                f"R_c of {name}, in hops",
                f"{number:.1f}",
                with_interval(values, 1),
                verdict(near),
                f"{'within' if near else 'not within'} a fifth; it depends on graphs and on the "
                "size of cascades, which the paper leaves open",
                CALIBRATED,
            )
        )
    return claims


def _shift_claims(of: Rows) -> list[Claim]:
    claims = []
    blind = [m for m in ("GE", "DR", "PM-RNN") if m in of]
    for who, why, kind in (
        (blind, "they see x alone, and their memory is reset", CONSTRUCTED),
        (
            [m for m in (CONTROL,) if m in of],
            "it sees G and H, which RSD does not reset",
            PREDICTED,
        ),
    ):
        if not who:
            continue
        small = all(of[m]["ASD"] <= SHIFTED for m in who)
        claims.append(
            Claim(
                "R1",
                f"ASD of {', '.join(who)} is near zero",
                "near zero",
                ", ".join(f"{m} {of[m]['ASD']:.2f}" for m in who),
                verdict(small),
                why,
                kind,
            )
        )
    if RAPO in of:
        shift, alone = of[RAPO]["ASD"], of[TWIN]["replay"]
        small = shift <= LOW_SHIFT
        claims.append(
            Claim(
                "Corollary 1",
                "RAPO suppresses with low ASD",
                "low",
                f"{shift:.2f}",
                verdict(small and of[RAPO]["replay"] == "suppressed"),
                f"at most {LOW_SHIFT:g} counts; its policy under P0, with the shift alone: {alone} "
                "replay",
                PREDICTED,
            )
        )
    return claims


def compounding_claim(depth: pd.DataFrame) -> Claim:
    """Whether the contraction of one step compounds over steps."""
    found = mean_interval(depth["depth"].to_numpy())
    return Claim(
        "Lemma 1",
        "The contraction compounds over steps: mass falls by more than one step's factor",
        "exponential attenuation",
        f"sensitive mass {with_interval(depth['mass_ratio'])} of the P0 twin's, one step "
        f"{with_interval(depth['one_step'])}: its power {with_interval(depth['depth'], 1)}",
        verdict(above(found.mean, found.low, 1.0)),
        "a power above 1 compounds; new seeds at every step keep it from growing",
        PREDICTED,
    )
