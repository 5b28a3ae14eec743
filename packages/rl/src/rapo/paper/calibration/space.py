"""The open choices as points of a box, and the package's file with the values of the choice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import Setting
from rapo_core.checks import UserError

SPACE: dict[str, tuple[float, float]] = {
    "neighbours": (1.2, 2.2),
    "sensitive_high": (0.18, 0.25),
    "stretch": (1.5, 9.0),
    "echo": (0.3, 0.97),
    "inside_weight": (1.5, 6.0),
    "entering_weight": (0.4, 5.0),
    "leaving_weight": (0.1, 1.2),
    "cascade_target": (6.0, 24.0),
    "support": (8.0, 30.0),
    "inside_share": (0.1, 0.7),
    "inside_spread": (0.0, 0.45),
    "persistence": (0.0, 0.2),
    "region_size": (1.5, 5.0),
    "psi_min": (0.02, 0.3),
    "aggressive": (0.4, 2.5),
    "moderate_share": (0.5, 0.97),
    "conservative_share": (0.3, 0.95),
    "influence_tilt": (0.0, 3.0),
    "risk_tilt": (2.0, 25.0),
}
"""Range in which each open value is searched. The fields' constants but psi_min are the paper's."""
LOGARITHMIC = ("stretch", "inside_weight", "entering_weight", "leaving_weight", "cascade_target",
               "psi_min", "aggressive", "risk_tilt")  # fmt: skip
"""Scales on which equal ratios are equal steps."""

STARTS: tuple[dict[str, float], ...] = (
    {"neighbours": 1.7, "sensitive_high": 0.25, "stretch": 3.75, "echo": 0.73, "inside_weight": 3.1,
     "entering_weight": 1.6, "leaving_weight": 0.45, "cascade_target": 15, "support": 25,
     "inside_share": 0.44, "inside_spread": 0.34, "persistence": 0, "region_size": 3.1,
     "psi_min": 0.19, "aggressive": 0.74, "moderate_share": 0.89, "conservative_share": 0.757,
     "influence_tilt": 1.5, "risk_tilt": 20},
    {"neighbours": 1.69, "sensitive_high": 0.24, "stretch": 3.9, "echo": 0.71,
     "inside_weight": 3.65, "entering_weight": 3.93, "leaving_weight": 0.76, "cascade_target": 24,
     "support": 14, "inside_share": 0.27, "inside_spread": 0.2, "persistence": 0.04,
     "region_size": 2.36, "psi_min": 0.036, "aggressive": 2.11, "moderate_share": 0.9,
     "conservative_share": 0.75, "influence_tilt": 0.32, "risk_tilt": 4.6},
    {"neighbours": 1.86, "sensitive_high": 0.219, "stretch": 3.78, "echo": 0.557,
     "inside_weight": 3.45, "entering_weight": 1.01, "leaving_weight": 0.651, "cascade_target": 14,
     "support": 29.7, "inside_share": 0.417, "inside_spread": 0.304, "persistence": 0.0372,
     "region_size": 2.74, "psi_min": 0.112, "aggressive": 0.63, "moderate_share": 0.785,
     "conservative_share": 0.748, "influence_tilt": 1.12, "risk_tilt": 21.9},
    {"neighbours": 1.83, "sensitive_high": 0.219, "stretch": 4.25, "echo": 0.401,
     "inside_weight": 3.55, "entering_weight": 1.08, "leaving_weight": 0.598, "cascade_target": 13,
     "support": 27.4, "inside_share": 0.395, "inside_spread": 0.304, "persistence": 0.0372,
     "region_size": 2.94, "psi_min": 0.0675, "aggressive": 0.585, "moderate_share": 0.76,
     "conservative_share": 0.748, "influence_tilt": 1.64, "risk_tilt": 16.9},
    {"neighbours": 1.7, "sensitive_high": 0.249, "stretch": 4.48, "echo": 0.9,
     "inside_weight": 3.23, "entering_weight": 1.6, "leaving_weight": 0.609, "cascade_target": 16,
     "support": 24.1, "inside_share": 0.349, "inside_spread": 0.374, "persistence": 0.0471,
     "region_size": 3.04, "psi_min": 0.19, "aggressive": 0.478, "moderate_share": 0.829,
     "conservative_share": 0.757, "influence_tilt": 2.1, "risk_tilt": 19.7},
    {"neighbours": 1.81, "sensitive_high": 0.192, "stretch": 6.38, "echo": 0.368,
     "inside_weight": 3.96, "entering_weight": 1.73, "leaving_weight": 0.841, "cascade_target": 8.7,
     "support": 21.1, "inside_share": 0.261, "inside_spread": 0.376, "persistence": 0.121,
     "region_size": 3.26, "psi_min": 0.0237, "aggressive": 0.947, "moderate_share": 0.688,
     "conservative_share": 0.699, "influence_tilt": 1.26, "risk_tilt": 24},
    {"neighbours": 1.86, "sensitive_high": 0.219, "stretch": 3.78, "echo": 0.557,
     "inside_weight": 3.45, "entering_weight": 1.01, "leaving_weight": 0.651, "cascade_target": 11,
     "support": 29.7, "inside_share": 0.417, "inside_spread": 0.304, "persistence": 0.0372,
     "region_size": 3.2, "psi_min": 0.112, "aggressive": 0.63, "moderate_share": 0.785,
     "conservative_share": 0.748, "influence_tilt": 1.12, "risk_tilt": 21.9},
)  # fmt: skip
"""Points with which the search begins: one in which learning matters, one closer to the rest of the
paper, four of an earlier, wider search (results/calibration/wide), and one of these with larger
regions, as trained policies have a higher odds ratio than greedy ones."""

_NAMES = tuple(SPACE)


def to_box(point: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Map a point to coordinates in [0, 1]."""
    low, high = _bounds()
    return np.asarray((_scaled([point[name] for name in _NAMES]) - low) / (high - low))


def from_box(box: npt.NDArray[np.float64]) -> dict[str, float]:
    """Map coordinates to the point; coordinates outside [0, 1] are clipped."""
    low, high = _bounds()
    values = low + (high - low) * np.clip(box, 0, 1)
    values = np.where(_is_log(), np.exp(values), values)
    return dict(zip(_NAMES, map(float, values), strict=True))


def _is_log() -> npt.NDArray[np.bool_]:
    return np.array([name in LOGARITHMIC for name in _NAMES])


def _scaled(values: list[float]) -> npt.NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    return np.where(_is_log(), np.log(np.maximum(array, 1e-12)), array)


def _bounds() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low, high = zip(*SPACE.values(), strict=True)
    return _scaled(list(low)), _scaled(list(high))


def setting_of(point: Mapping[str, float]) -> Setting:
    """Make the setting of a point, rounded to numbers that a reader can remember."""
    top = round(point["aggressive"], 2)
    high = round(point["sensitive_high"], 2)
    return Setting.default().replace(
        neighbours=round(point["neighbours"], 2),
        sensitive_low=round(high - 0.03, 2),
        sensitive_high=high,
        stretch=round(point["stretch"], 1),
        echo=round(point["echo"], 2),
        inside_weight=round(point["inside_weight"], 2),
        entering_weight=round(point["entering_weight"], 2),
        leaving_weight=round(point["leaving_weight"], 2),
        factor=0.0,  # searched graph by graph: cascades of comparable size
        cascade_target=round(point["cascade_target"], 1),
        support=round(point["support"]),
        inside_share=round(point["inside_share"], 2),
        inside_spread=round(point["inside_spread"], 2),
        persistence=round(point["persistence"], 2),
        regions=f"community:{point['region_size']:.1f}".removesuffix(".0"),
        psi_min=round(point["psi_min"], 3),
        rates=(
            top,
            round(top * point["moderate_share"], 2),
            round(top * point["conservative_share"], 2),
        ),
        influence_tilt=round(point["influence_tilt"], 1),
        risk_tilt=round(point["risk_tilt"], 1),
    )


SETTING_FILE = files("rapo.cascade").joinpath("setting.toml")
"""The one file of the package that the values of the choice are written into."""
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
    """Write a setting as the package's file holds it."""
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
            if value is not None:  # TOML has no null: a missing line says the same
                lines.append(f"{name} = {json.dumps(value)}")
    if values:
        raise UserError(f"no group of the setting's file holds {sorted(values)}")
    return "\n".join(lines) + "\n"
