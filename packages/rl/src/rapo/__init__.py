"""Regret-Aware Policy Optimization: harm memory, transition deformation and the replay diagnostic.

Importing `rapo` registers its environments with Gymnasium; the rest loads on first use.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

from rapo.platforms.registration import register_all
from rapo_core.version import VERSION, installation_fault

if TYPE_CHECKING:
    from rapo import agents, platforms, rsd, scars, theory
    from rapo.cascade.engine import Cascade
    from rapo.cascade.graph import Graph
    from rapo.cascade.regions import make_regions
    from rapo.cascade.setting import Setting
    from rapo.envs.single import GraphDiffusionEnv
    from rapo.envs.vector import GraphDiffusionVectorEnv
    from rapo.graphs.exposure import exposure_point
    from rapo.graphs.fit import Fit, fit
    from rapo.graphs.fitted import FitWarning
    from rapo.graphs.generate import generate
    from rapo.graphs.idle import IdleWarning
    from rapo.graphs.load import from_networkx, load_edges, load_graphml, read_graph
    from rapo_core.deformation import Scope, conductance, gate_odds, reweight
    from rapo_core.memory import HarmMemory
    from rapo_core.operating_point import OperatingPoint, operating_point
    from rapo_core.params import FieldParams

_HOME = {
    "Cascade": "rapo.cascade.engine",
    "FieldParams": "rapo_core.params",
    "Fit": "rapo.graphs.fit",
    "FitWarning": "rapo.graphs.fitted",
    "Graph": "rapo.cascade.graph",
    "GraphDiffusionEnv": "rapo.envs.single",
    "GraphDiffusionVectorEnv": "rapo.envs.vector",
    "HarmMemory": "rapo_core.memory",
    "IdleWarning": "rapo.graphs.idle",
    "OperatingPoint": "rapo_core.operating_point",
    "Scope": "rapo_core.deformation",
    "Setting": "rapo.cascade.setting",
    "conductance": "rapo_core.deformation",
    "exposure_point": "rapo.graphs.exposure",
    "fit": "rapo.graphs.fit",
    "from_networkx": "rapo.graphs.load",
    "gate_odds": "rapo_core.deformation",
    "generate": "rapo.graphs.generate",
    "load_edges": "rapo.graphs.load",
    "load_graphml": "rapo.graphs.load",
    "make_regions": "rapo.cascade.regions",
    "operating_point": "rapo_core.operating_point",
    "read_graph": "rapo.graphs.load",
    "reweight": "rapo_core.deformation",
}
_MODULES = ("agents", "platforms", "rsd", "scars", "theory")

__all__ = [
    "Cascade",
    "FieldParams",
    "Fit",
    "FitWarning",
    "Graph",
    "GraphDiffusionEnv",
    "GraphDiffusionVectorEnv",
    "HarmMemory",
    "IdleWarning",
    "OperatingPoint",
    "Scope",
    "Setting",
    "agents",
    "conductance",
    "exposure_point",
    "fit",
    "from_networkx",
    "gate_odds",
    "generate",
    "load_edges",
    "load_graphml",
    "make_regions",
    "operating_point",
    "platforms",
    "read_graph",
    "reweight",
    "rsd",
    "scars",
    "theory",
]

__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"rapo.{name}")
    raise AttributeError(f"module 'rapo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if "rapo/GraphDiffusion-v0" not in registry:
    register(
        id="rapo/GraphDiffusion-v0",
        entry_point="rapo.envs.single:GraphDiffusionEnv",
        vector_entry_point="rapo.envs.vector:GraphDiffusionVectorEnv",
    )
register_all()
if _fault := installation_fault("rapo-rl"):
    warnings.warn(_fault, stacklevel=2)
