"""Executable statements: the paper's lemmas with their premises, and which numbers fit together.

`lemmas` holds what the paper proves, `mean_field` what activity does behind a gate, and
`consistency` what ties the odds ratio, the trace in late Exposure and off@rep.
"""

from rapo.theory.consistency import (
    consistent_spread,
    exposure_conductance,
    needed_trace,
    off_at_replay_at_least,
    scar_work,
)
from rapo.theory.lemmas import (
    Bound,
    compounded_entry,
    entry_odds,
    event_odds,
    odds_bound,
    paper_odds_bound,
    paper_safe_mass_bound,
    safe_mass_bound,
    scarring_regions_at_most,
)
from rapo.theory.mean_field import bistable_conductances, fixed_points, settles_at

__all__ = [
    "Bound",
    "bistable_conductances",
    "compounded_entry",
    "consistent_spread",
    "entry_odds",
    "event_odds",
    "exposure_conductance",
    "fixed_points",
    "needed_trace",
    "odds_bound",
    "off_at_replay_at_least",
    "paper_odds_bound",
    "paper_safe_mass_bound",
    "safe_mass_bound",
    "scar_work",
    "scarring_regions_at_most",
    "settles_at",
]
