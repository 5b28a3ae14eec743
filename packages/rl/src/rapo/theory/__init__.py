"""Executable statements: the paper's lemmas with their premises, and which numbers fit together.

`lemmas` holds what the paper proves, `mean_field` what activity does behind a gate, and
`consistency` what ties the odds ratio, the trace in late Exposure and off@rep. `single_wave` has
what holds where a node is activated once: final sizes behind a gate, and when off@rep is 1.
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
from rapo.theory.single_wave import (
    final_size,
    off_at_replay,
    reproduction_number,
    share_before_harm,
    transmissibility,
)

__all__ = [
    "Bound",
    "bistable_conductances",
    "compounded_entry",
    "consistent_spread",
    "entry_odds",
    "event_odds",
    "exposure_conductance",
    "final_size",
    "fixed_points",
    "needed_trace",
    "odds_bound",
    "off_at_replay",
    "off_at_replay_at_least",
    "paper_odds_bound",
    "paper_safe_mass_bound",
    "reproduction_number",
    "safe_mass_bound",
    "scar_work",
    "scarring_regions_at_most",
    "settles_at",
    "share_before_harm",
    "transmissibility",
]
