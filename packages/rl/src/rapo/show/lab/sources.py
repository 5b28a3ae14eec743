"""What can be looked at: graphs and platforms, each with its defaults and its environments."""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import ACTIONS, Setting
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import Fit, fit
from rapo.graphs.generate import generate
from rapo.graphs.load import read_graph
from rapo.show.lab.request import FILE, MOST_NODES, ControlError, Place, Side, blamed
from rapo.suite.domains import DOMAINS
from rapo_core.params import FieldParams

MOST_BYTES = 64 * 2**20
"""Of a file that is read or uploaded."""
_KEPT = 4
_SERIAL = count()


class GraphSource:
    """A graph, generated or read.

    Args:
        place: which.
        graph: it.
        remarks: what was said when it was read.
    """

    policies: tuple[str, ...] = ACTIONS

    def __init__(self, place: Place, graph: Graph, remarks: list[str]) -> None:
        self.place, self.graph, self.remarks, self.serial = place, graph, remarks, next(_SERIAL)
        self._regions: dict[str, npt.NDArray[np.int32]] = {}
        self.setting = Setting.default()
        self.stimuli, self.horizons = int(graph.stimuli), self.setting.horizons
        self._fit: Fit | None = None
        if place.kind == FILE:  # as an environment does with a graph of one's own
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self._fit = blamed("path", lambda: fit(graph, setting=self.setting))
            self.remarks = [*remarks, *(str(w.message) for w in said)]

    @property
    def title(self) -> str:
        """What it is, in a line."""
        g = self.graph
        inside = int(g.sensitive.sum())
        return f"{g.n:,} nodes, {len(g.indices):,} edges, V_sens of {inside:,}"

    @property
    def side(self) -> Side:
        """The setting that it begins with."""
        if self._fit is not None:
            return Side(self._fit.params, self._fit.spec or self.setting.regions)
        return Side(self.setting.params, self.setting.regions)

    @property
    def counts(self) -> dict[str, str]:
        """What the numbers count."""
        domain = DOMAINS["cascade"]
        return {"reach": domain.reach, "sensitive": domain.sensitive, "return": domain.returns}

    def regions(self, spec: str) -> npt.NDArray[np.int32]:
        """(n,) regions of a spec, the last few remembered."""
        if spec not in self._regions:
            found = blamed(
                "regions",
                lambda: make_regions(spec, self.graph, straddle=self.setting.straddle),
            )
            self._regions = {**dict(list(self._regions.items())[-7:]), spec: found}
        return self._regions[spec]

    def make(self, side: Side, observe: str = "x") -> GraphDiffusionVectorEnv:
        """The environment of a side; what it says of an idle memory is in its operating point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return blamed(
                "psi_min",  # all else was checked: the engine is in single precision
                lambda: GraphDiffusionVectorEnv(
                    1, graph=self.graph, regions=self.regions(side.regions), params=side.params,
                    deformation=side.scope, observe=observe, fit=False,
                ),
            )  # fmt: skip

    def fitted(self, side: Side) -> Fit:
        """Regions and tau for the graph, with the other constants of a side."""
        return blamed("tau", lambda: fit(self.graph, params=side.params, setting=self.setting))

    def point(self, env: Any) -> str:
        """The operating point in a sentence."""
        return f"{env.operating_point}."

    def code(self) -> tuple[list[str], list[str]]:
        """Lines of Python before the environment is made, and its first arguments."""
        if self.place.kind == FILE:
            read = [f"graph = rapo.read_graph({self.place.path!r})"]
            return read, ['"rapo/GraphDiffusion-v0"', "graph=graph"]
        made = [f"nodes={self.place.nodes}", f"graph_seed={self.place.seed}"]
        return [], ['"rapo/GraphDiffusion-v0"', *made]


class PlatformSource:
    """A platform of the package.

    Args:
        place: which.
    """

    def __init__(self, place: Place) -> None:
        self.place, self.serial = place, next(_SERIAL)
        self._domain = next(d for d in DOMAINS.values() if d.env == place.kind)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            env = self.make(Side(FieldParams()))
        self.remarks = [str(w.message) for w in said]
        self.engine: Any = env.engine
        self.stimuli, self.horizons = env.stimuli, env.horizons
        self.policies = tuple(f"action {i}" for i in range(env.engine.actions))

    @property
    def title(self) -> str:
        """What it is, in a line."""
        e, name = self.engine, type(self.engine).__name__
        return f"{name}: {e.walkers} walkers, {e.G.shape[1]} regions"

    @property
    def side(self) -> Side:
        """The setting that it begins with."""
        return Side(self.engine.params, policy=self.policies[self._domain.action])

    @property
    def counts(self) -> dict[str, str]:
        """What the numbers count."""
        d = self._domain
        return {"reach": d.reach, "sensitive": d.sensitive, "return": d.returns}

    def make(self, side: Side, observe: str = "x") -> EpisodesVectorEnv:
        """The environment of a side."""
        if side.regions:
            raise ControlError(
                "regions", f"{self.place.kind} has regions of its own, got {side.regions!r}"
            )
        made: Any = blamed(
            "scope",
            lambda: gymnasium.make_vec(
                self.place.kind, 1, vectorization_mode="vector_entry_point", seed=self.place.seed,
                params=side.params, deformation=side.scope, observe=observe,
            ),
        )  # fmt: skip
        env: EpisodesVectorEnv = made.unwrapped
        return env

    def fitted(self, side: Side) -> Fit:
        """There is no fit of a platform."""
        raise ControlError(
            "tau", f"rapo.fit is for graphs; {self.place.kind} was calibrated with these constants"
        )

    def point(self, env: Any) -> str:
        """What its memory is made of: there is no nominal record to tell more from."""
        e, p = self.engine, env.engine.params
        return (
            f"{e.G.shape[1]} regions, harm after {e.memory.harm.delay} steps; a region scars while "
            f"its trace is above tau {p.tau:.2g}."
        )

    def code(self) -> tuple[list[str], list[str]]:
        """Lines of Python before the environment is made, and its first arguments."""
        return [], [f'"{self.place.kind}"', f"seed={self.place.seed}"]


Source = GraphSource | PlatformSource
_KNOWN: OrderedDict[Any, Source] = OrderedDict()
_LOCK = threading.Lock()


def find_source(place: Place) -> Source:
    """The graph or platform of a place; the last few are kept.

    Raises:
        ControlError: a file that cannot be read, or is too large.
    """
    key: Any = place
    if place.kind == FILE:
        key = (place, *_stamp(place.path))
    with _LOCK:  # code is told while numbers are worked on
        if key not in _KNOWN:
            _KNOWN[key] = _made(place)
            while len(_KNOWN) > _KEPT:
                _KNOWN.popitem(last=False)
        _KNOWN.move_to_end(key)
        return _KNOWN[key]


def _stamp(path: str) -> tuple[int, int]:
    """When a file changed last, and its size; one that is no file, or too large, is refused."""
    at = Path(path).expanduser()
    if not at.is_file():
        raise ControlError("path", f"there is no file {path}")
    found = os.stat(at)
    if found.st_size > MOST_BYTES:
        raise ControlError(
            "path", f"{path} has {found.st_size:,} bytes; the lab reads up to {MOST_BYTES:,}"
        )
    return found.st_mtime_ns, found.st_size


def _made(place: Place) -> Source:
    if place.is_platform:
        return PlatformSource(place)
    if place.kind != FILE:
        graph = blamed("nodes", lambda: generate(place.nodes, place.seed))
        return GraphSource(place, graph, [])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = blamed("path", lambda: read_graph(Path(place.path).expanduser()))
    if graph.n > MOST_NODES:
        raise ControlError(
            "path", f"{place.path} has {graph.n:,} nodes; the lab takes up to {MOST_NODES:,}"
        )
    return GraphSource(place, graph, [str(w.message) for w in said])
