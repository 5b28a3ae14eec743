"""Regret-Aware Policy Optimization: harm memory, transition deformation and the replay diagnostic.

Importing `rapo` registers its environments with Gymnasium. Every other name loads on first use, see
`__init__.pyi`: numba, pandas, matplotlib and torch are not imported before they are needed.
"""

import warnings

import lazy_loader
from gymnasium.envs.registration import register, registry

from rapo.platforms.registration import register_all
from rapo_core.version import VERSION, installation_fault

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = VERSION

if "rapo/GraphDiffusion-v0" not in registry:
    register(
        id="rapo/GraphDiffusion-v0",
        entry_point="rapo.envs.single:GraphDiffusionEnv",
        vector_entry_point="rapo.envs.vector:GraphDiffusionVectorEnv",
    )
register_all()
if _fault := installation_fault("rapo-rl"):
    warnings.warn(_fault, stacklevel=2)
