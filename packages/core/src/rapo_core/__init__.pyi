"""Public names of the core and the modules that they are loaded from."""

from .checks import UserError as UserError
from .deformation import Scope as Scope
from .deformation import conductance as conductance
from .deformation import gate_odds as gate_odds
from .deformation import reweight as reweight
from .memory import HarmMemory as HarmMemory
from .operating_point import OperatingPoint as OperatingPoint
from .params import FieldParams as FieldParams
from .version import VERSION as VERSION
