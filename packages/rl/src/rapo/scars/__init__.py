"""Scars without a grid: harm memory over points of a continuous space.

`KernelField` is the default; `GridField` is the exact reference for few dimensions, `DensityField`
is coarse and small, `NetworkField` experimental. All offer what `ScarField` describes, beside
`rapo.HarmMemory`, whose regions they replace by points.

Its files, in the order in which data flows:

- box, field: the interface of all fields: deposit, visit, step, advance, conductance, snapshot
- bounded: what fields with a limited number of centres share
- dictionary, kernel: the default, centres that learn and merge
- grid: the exact reference; mixture, density: coarse and small; perceptron, network: experimental
- width, kinds: a rule for the width; fields by name
"""

from rapo.scars.density import DensityField
from rapo.scars.field import ScarField
from rapo.scars.grid import GridField
from rapo.scars.kernel import FullWarning, KernelField
from rapo.scars.kinds import KINDS, make
from rapo.scars.network import NetworkField
from rapo.scars.width import width_from

__all__ = [
    "KINDS",
    "DensityField",
    "FullWarning",
    "GridField",
    "KernelField",
    "NetworkField",
    "ScarField",
    "make",
    "width_from",
]
