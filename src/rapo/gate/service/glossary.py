"""What letters, settings and states of a gate mean, in the words of the reviewer's page."""

from __future__ import annotations

FIELDS = {
    "lam": "share of the trace G that fades per tick",
    "alpha": "gain from harm to the trace G",
    "eta": "growth of the scar H per unit of trace above tau, per tick",
    "tau": "trace above which scars grow",
    "delta": "share of a scar that is kept per tick; 1 is for ever",
    "w_G": "weight of the trace in ψ",
    "w_H": "weight of the scar in ψ",
    "psi_min": "ψ never falls below this",
}

SETTINGS = {
    "tick_seconds": "seconds of one tick",
    "D": "ticks after an exposure at which its harm counts",
    "D_max": "ticks after which a report is refused",
    "max_harm": "largest harm of one report",
    "normalise": "harm counts per exposure: busy regions are not punished for being busy",
    "prior_exposures": "exposures added to every region's count before dividing",
    "cap_source": "most harm that one reporter can put into one tick",
    "cap_region": "most harm that one region can get in one tick",
    "min_signals": "different signals that must agree before a region may scar",
    "min_sources": "different reporters that must agree before a region may scar",
    "agree_share": "share of a report below which a region is only a bystander of it",
    "confirm_ticks": "ticks during which reports agree, and a reviewer's word holds",
    "unconfirmed_floor": "share of ψ that an unconfirmed trace cannot take away",
    "scar_ticks": "ticks after its last growth at which a scar expires; none is never",
    "saturation_psi": "a decision with no candidate above this ψ is saturated",
    "band_scar_mass": "escalate when the sum of all scars is larger",
    "band_gating": "escalate when a tick's mean total variation is larger",
    "band_saturated": "escalate when a larger share of a tick's decisions is saturated",
    "band_reports": "escalate when a tick's reports are this many deviations above usual",
}

BANDS = {
    "scar mass": "Scar mass",
    "gating": "Gating",
    "saturation": "Saturation",
    "reports": "Report volume",
}

WAITS = {
    "late": "late",
    "unknown region": "quarantined: unknown region",
    "agreement": "waits for agreement",
}

TERMS = {
    "ψ": "what passes: the share of its proposed probability that a region keeps before the rest "
    "is shared out again; 1 is untouched",
    "G": "trace: recent harm reported on a region; it fades by itself",
    "H": "scar: what stays of harm that several reporters agreed on; it fades slowly or not",
    "TV": "total variation: how much of a decision's probability the gate moved, 0 to 100 %",
    "RAG": "peak reach on return against the first stay; below 1 it came back weaker",
}
