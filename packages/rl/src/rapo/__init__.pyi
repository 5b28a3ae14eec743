"""Public names of the package and the modules that they are loaded from."""

from . import agents as agents
from . import platforms as platforms
from . import rsd as rsd
from . import scars as scars
from . import theory as theory
from .cascade.engine import Cascade as Cascade
from .cascade.graph import Graph as Graph
from .cascade.regions import make_regions as make_regions
from .cascade.setting import Setting as Setting
from .envs.single import GraphDiffusionEnv as GraphDiffusionEnv
from .envs.vector import GraphDiffusionVectorEnv as GraphDiffusionVectorEnv
from .graphs.exposure import exposure_point as exposure_point
from .graphs.fit import Fit as Fit
from .graphs.fit import FitWarning as FitWarning
from .graphs.fit import IdleWarning as IdleWarning
from .graphs.fit import fit as fit
from .graphs.generate import generate as generate
from .graphs.load import from_networkx as from_networkx
from .graphs.load import load_edges as load_edges
from .graphs.load import load_graphml as load_graphml
from .graphs.load import read_graph as read_graph
from .mathematics import FieldParams as FieldParams
from .mathematics import HarmMemory as HarmMemory
from .mathematics import OperatingPoint as OperatingPoint
from .mathematics import Scope as Scope
from .mathematics import conductance as conductance
from .mathematics import gate_odds as gate_odds
from .mathematics import operating_point as operating_point
from .mathematics import reweight as reweight

__version__: str
