"""The open choices that are searched, and the file of the package that holds the chosen ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from rapo.cascade.setting import CASCADE, OUTBREAK, Setting
from rapo_core.checks import UserError

LAWS = (OUTBREAK, CASCADE)
"""The spreading laws that are searched; `contact` was searched before (results/calibration)."""


def _real(low: float, high: float, *, log: bool = False) -> FloatDistribution:
    return FloatDistribution(low, high, log=log)


_COMMON: dict[str, BaseDistribution] = {
    "sensitive_high": _real(0.19, 0.25),
    "stretch": _real(1.0, 4.0, log=True),
    "echo": _real(0.3, 0.97),
    "inside_weight": _real(4.0, 30.0, log=True),
    "entering_weight": _real(0.8, 6.0, log=True),
    "leaving_weight": _real(0.15, 1.6, log=True),
    "support": IntDistribution(4, 16),
    "inside_share": _real(0.2, 0.75),
    "inside_spread": _real(0.0, 0.2),
    "region_size": _real(4.0, 16.0),
    "aggressive": _real(1.2, 6.0, log=True),
    "moderate_share": _real(0.4, 0.97),
    "conservative_share": _real(0.5, 1.0),
    "influence_tilt": _real(0.0, 2.5),
    "risk_tilt": _real(1.0, 14.0, log=True),
}
SPACE: dict[str, dict[str, BaseDistribution]] = {
    OUTBREAK: {
        **_COMMON,
        "neighbours": _real(1.2, 3.2),
        "factor": _real(0.03, 0.2, log=True),
        "stopping": _real(0.03, 0.15, log=True),
        "psi_min": _real(0.15, 0.4),
    },
    CASCADE: {
        **_COMMON,
        "neighbours": _real(1.1, 2.2),
        "factor": _real(0.3, 1.3, log=True),
        "psi_min": _real(0.02, 0.2, log=True),
    },
}
"""What is searched under each law, and where. The fields' constants but psi_min are the paper's.
`stopping` is 1 - s."""


def setting_of(law: str, point: Mapping[str, float]) -> Setting:
    """The setting that a point stands for, rounded to what a reader can remember."""
    top, high = round(point["aggressive"], 2), round(point["sensitive_high"], 3)
    return Setting.named("echo").replace(
        spread=law,
        persistence=round(1 - point["stopping"], 3) if law == OUTBREAK else None,
        show_stimulus=True,
        ignition_runs=200,
        injection_cap=0.95,
        neighbours=round(point["neighbours"], 2),
        sensitive_low=round(high - 0.02, 3),
        sensitive_high=high,
        stretch=round(point["stretch"], 2),
        echo=round(point["echo"], 2),
        inside_weight=round(point["inside_weight"], 1),
        entering_weight=round(point["entering_weight"], 2),
        leaving_weight=round(point["leaving_weight"], 2),
        factor=float(f"{point['factor']:.3g}"),
        support=int(point["support"]),
        inside_share=round(point["inside_share"], 2),
        inside_spread=round(point["inside_spread"], 2),
        regions=f"community:{point['region_size']:.1f}",
        psi_min=round(point["psi_min"], 3),
        rates=(
            top,
            round(top * point["moderate_share"], 2),
            round(top * point["conservative_share"], 2),
        ),
        influence_tilt=round(point["influence_tilt"], 2),
        risk_tilt=round(point["risk_tilt"], 1),
    )


STARTS: dict[str, tuple[dict[str, float], ...]] = {
    OUTBREAK: (
        {"neighbours": 3.04, "sensitive_high": 0.249, "stretch": 1.0, "echo": 0.67,
         "inside_weight": 11.7, "entering_weight": 2.2, "leaving_weight": 0.39, "factor": 0.0735,
         "support": 11, "inside_share": 0.417, "inside_spread": 0.093, "stopping": 0.062,
         "region_size": 8.99, "psi_min": 0.287, "aggressive": 3.81, "moderate_share": 0.624,
         "conservative_share": 0.83, "influence_tilt": 0.53, "risk_tilt": 6.24},
        {"neighbours": 2.25, "sensitive_high": 0.25, "stretch": 1.21, "echo": 0.87,
         "inside_weight": 13.0, "entering_weight": 2.45, "leaving_weight": 0.92, "factor": 0.0939,
         "support": 7, "inside_share": 0.5, "inside_spread": 0.036, "stopping": 0.0545,
         "region_size": 12.13, "psi_min": 0.319, "aggressive": 2.48, "moderate_share": 0.649,
         "conservative_share": 0.924, "influence_tilt": 1.06, "risk_tilt": 6.48},
        {"neighbours": 2.84, "sensitive_high": 0.24, "stretch": 1.6, "echo": 0.93,
         "inside_weight": 16.1, "entering_weight": 2.76, "leaving_weight": 0.58, "factor": 0.08,
         "support": 7, "inside_share": 0.53, "inside_spread": 0.15, "stopping": 0.062,
         "region_size": 11.39, "psi_min": 0.292, "aggressive": 2.49, "moderate_share": 0.655,
         "conservative_share": 0.924, "influence_tilt": 0.58, "risk_tilt": 8.11},
        {"neighbours": 2.78, "sensitive_high": 0.25, "stretch": 1.6, "echo": 0.78,
         "inside_weight": 15.2, "entering_weight": 2.87, "leaving_weight": 0.75, "factor": 0.0746,
         "support": 7, "inside_share": 0.496, "inside_spread": 0.033, "stopping": 0.0638,
         "region_size": 10.74, "psi_min": 0.28, "aggressive": 2.87, "moderate_share": 0.628,
         "conservative_share": 0.943, "influence_tilt": 1.13, "risk_tilt": 5.98},
    ),
    CASCADE: (
        {"neighbours": 1.3, "sensitive_high": 0.25, "stretch": 1.0, "echo": 0.595,
         "inside_weight": 12.0, "entering_weight": 1.82, "leaving_weight": 0.276, "factor": 0.797,
         "support": 5, "inside_share": 0.263, "inside_spread": 0.106, "region_size": 8.28,
         "psi_min": 0.0542, "aggressive": 3.5, "moderate_share": 0.691, "conservative_share": 0.887,
         "influence_tilt": 0.58, "risk_tilt": 2.56},
    ),
}  # fmt: skip
"""Points that prototypes found; they are tried first."""

SETTING_FILE = files("rapo.cascade").joinpath("setting.toml")
"""The one file of the package that the chosen values are written into."""
_GROUPS = {
    "graph": ("neighbours", "sensitive_low", "sensitive_high", "stretch", "echo", "inside_weight",
              "entering_weight", "leaving_weight", "factor", "reach_target", "cascade_target",
              "edge_cap"),
    "stimuli": ("seeding", "support", "inside_share", "inside_spread", "ignition_runs",
                "loaded_support", "loaded_share", "loaded_spread"),
    "dynamics": ("spread", "persistence", "delay", "harm", "horizons", "regions", "straddle",
                 "psi_min"),
    "injection: aggressive, moderate, conservative": ("rates", "injection_cap", "influence_tilt",
                                                      "risk_tilt"),
    "observation": ("show_stimulus",),
    "reward": ("kappa_s", "outside_weight", "kappa"),
    "budget of every cost, as a share of the constant aggressive policy's under P0": ("budget",),
}  # fmt: skip


def setting_text(setting: Setting) -> str:
    """The setting as the package's file holds it."""
    values = setting.to_dict()
    lines = [
        "# The open choices of the simulated platform, one set for every method and every graph.",
        "# Chosen by `rapo calibrate` on graphs with seeds from 1000 on; results/calibration has",
        "# the search. Meaning and range of each value: rapo.cascade.setting.Setting.",
    ]
    for title, names in _GROUPS.items():
        lines += ["", f"# {title}"]
        for name in names:
            value = values.pop(name)
            if value is not None:  # a file has no word for None
                lines.append(f"{name} = {json.dumps(value)}")
    if values:
        raise UserError(f"no group of the setting's file holds {sorted(values)}")
    return "\n".join(lines) + "\n"
