"""The paper's lemmas as functions that say when they apply.

Lemma 1 as printed drops the trace `G` and the clip at `psi_min`. `odds_bound` always holds;
`paper_odds_bound` is the printed one, with its premises checked. Both have the same meaning:
`p/q <= factor * p0/q0` for the odds of entering the harmful set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.params import FieldParams

__all__ = [
    "Bound",
    "compounded_entry",
    "entry_odds",
    "event_odds",
    "odds_bound",
    "paper_odds_bound",
    "paper_safe_mass_bound",
    "safe_mass_bound",
    "scarring_regions_at_most",
]


@dataclass(frozen=True, slots=True)
class Bound:
    """A number with the reason why it may or may not be relied on."""

    value: float
    """The bound; it means nothing unless `applies`."""
    applies: bool
    why: str
    """One sentence: the premise that holds, or the first one that fails."""


def _split(values: npt.ArrayLike, harmful: npt.ArrayLike) -> tuple[Any, Any]:
    array, mask = np.asarray(values, float), np.asarray(harmful)
    if mask.dtype != np.bool_ or mask.shape != array.shape or array.ndim != 1:
        raise UserError(
            f"harmful must be a bool array of shape {array.shape}, got {mask.dtype} {mask.shape}"
        )
    if mask.all() or not mask.any():
        raise UserError(f"both sets must have members, got {int(mask.sum())} of {mask.size}")
    return array[mask], array[~mask]


def _conductance(psi: Any) -> Any:
    wrong = psi[~((psi >= 0) & (psi <= 1))]
    if wrong.size:
        raise UserError(f"psi must be in [0, 1], got {wrong[0]}")
    return psi


def odds_bound(psi: npt.ArrayLike, harmful: npt.ArrayLike) -> Bound:
    """`max psi(harmful) / min psi(rest)`: the factor of the odds that always holds.

    Args:
        psi: conductance of each destination in (0, 1], (n,).
        harmful: bool (n,), the harmful destinations.
    """
    inside, outside = _split(psi, harmful)
    _conductance(inside)
    _conductance(outside)
    if not outside.min() > 0:
        raise UserError(f"psi must be positive outside the harmful set, got {outside.min()}")
    return Bound(float(inside.max() / outside.min()), True, "holds for any fields and any clip")


def paper_odds_bound(
    G: npt.ArrayLike, H: npt.ArrayLike, harmful: npt.ArrayLike, params: FieldParams
) -> Bound:
    """Lemma 1 as printed: `exp(-w_H (h_star - h_0))` with the scar gap of the given fields.

    Applies when there is a gap, `w_G G` is common to all destinations and no conductance is
    clipped.

    Args:
        G: trace at each destination, (n,).
        H: scar at each destination, (n,).
        harmful: bool (n,), the harmful destinations.
        params: weights and clip.
    """
    scar_in, scar_out = _split(H, harmful)
    trace = np.concatenate(_split(G, harmful))
    for name, field in (("G", trace), ("H", scar_in), ("H", scar_out)):
        wrong = field[~((field >= 0) & np.isfinite(field))]
        if wrong.size:
            raise UserError(f"{name} must be finite and >= 0, got {wrong[0]}")
    h_star, h_0 = float(scar_in.min()), float(scar_out.max())
    value = float(np.exp(-params.w_H * (h_star - h_0)))
    raw = np.exp(-params.w_G * np.asarray(G, float) - params.w_H * np.asarray(H, float))
    if not h_star > h_0:
        return Bound(value, False, f"no scar gap: min harmful {h_star}, max other {h_0}")
    if params.w_G > 0 and np.ptp(trace) > 0:
        return Bound(value, False, f"the trace is not common: it spans {np.ptp(trace)}")
    if raw.min() < params.psi_min:
        return Bound(value, False, f"clipped: exp(.) = {raw.min()} < psi_min {params.psi_min}")
    return Bound(value, True, "scar gap, common trace, nothing clipped")


def safe_mass_bound(q0: float, factor: float) -> float:
    """Smallest possible safe mass `q` when the harmful odds contract by `factor`.

    Args:
        q0: nominal probability of staying outside the harmful set, in [0, 1].
        factor: of the odds, >= 0, from `odds_bound` or `paper_odds_bound`.
    """
    if not 0 <= q0 <= 1:
        raise UserError(f"q0 must be in [0, 1], got {q0}")
    if not 0 <= factor < float("inf"):
        raise UserError(f"factor must be >= 0 and finite, got {factor}")
    return 0.0 if q0 == 0 else q0 / (q0 + factor * (1 - q0))


def paper_safe_mass_bound(
    delta: float,
    G: npt.ArrayLike,
    H: npt.ArrayLike,
    harmful: npt.ArrayLike,
    params: FieldParams,
) -> Bound:
    """Lemma 2 as printed, for a nominal safe mass of at least `delta`; premises as Lemma 1."""
    lemma1 = paper_odds_bound(G, H, harmful, params)
    return Bound(safe_mass_bound(delta, lemma1.value), lemma1.applies, lemma1.why)


def entry_odds(p: npt.ArrayLike, harmful: npt.ArrayLike) -> float:
    """Odds of entering the harmful set under a categorical law `p` (n,); inf if certain."""
    inside, outside = _split(p, harmful)
    return float(inside.sum() / outside.sum()) if outside.sum() > 0 else float("inf")


def event_odds(q: npt.ArrayLike, psi: npt.ArrayLike | None = None) -> float:
    """Odds of "some harmful node activates" under a product law: `prod(1 + psi_v o_v) - 1`.

    Deformed odds are at most `max psi` times the nominal ones, so Lemma 1 holds here too.

    Args:
        q: nominal activation probability of each harmful node in [0, 1), (n,).
        psi: conductance of each, (n,); None for the nominal law.
    """
    p = np.asarray(q, float)
    if not np.all((p >= 0) & (p < 1)):
        raise UserError(f"q must be in [0, 1), got {p[~((p >= 0) & (p < 1))].flat[0]}")
    odds = p / (1 - p)
    if psi is not None:
        s = np.asarray(psi, float)
        if s.shape != p.shape:
            raise UserError(f"psi must have the shape {p.shape} of q, got {s.shape}")
        odds = odds * _conductance(s)
    return float(np.expm1(np.log1p(odds).sum()))


def compounded_entry(p0: float, factor: float, steps: int) -> float:
    """Bound on entering the harmful set at each of `steps` consecutive steps.

    A cascade that needs repeated entries is attenuated exponentially: one entry has probability at
    most `factor p0 / (factor p0 + 1 - p0)`, and each step conditions on the last.

    Args:
        p0: largest nominal entry probability of a step, in [0, 1].
        factor: of the odds, from `odds_bound`, in [0, 1].
        steps: number of entries needed, >= 0.
    """
    if not 0 <= p0 <= 1:
        raise UserError(f"p0 must be in [0, 1], got {p0}")
    if steps < 0:
        raise UserError(f"steps must be >= 0, got {steps}")
    return float((1 - safe_mass_bound(1 - p0, factor)) ** steps) if p0 < 1 else 1.0


def scarring_regions_at_most(params: FieldParams) -> float:
    """How many regions that are active together can scar at all; inf with tau = 0.

    Harm is at most 1 a step and shared by the regions, so their steady traces sum to at most
    `alpha / lambda`, and each scarring one takes more than tau of that: 16 with the paper's
    constants, whatever the size of the graph. Finer regions than that need a lower tau.
    """
    if params.tau == 0:
        return float("inf")
    most = params.alpha / (params.lam * params.tau)
    return float(np.ceil(most - 1e-9) - 1)
