"""What the lab can run: graphs and platforms, each with its first variant and its environments."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import ACTIONS, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import Fit, fit
from rapo.graphs.generate import generate
from rapo.graphs.load import read_graph
from rapo.platforms.cascade.entry import CASCADE
from rapo.platforms.entry import Entry
from rapo.platforms.registration import PLATFORMS
from rapo.platforms.vector import PlatformVectorEnv
from rapo.show.lab.request import FILE, MOST_NODES, ControlError, SourceId, Variant, blame
from rapo_core.params import FieldParams

MOST_BYTES = 64 * 2**20
"""Bytes of a file that is read or uploaded."""
SOURCES_KEPT = 4
REGIONS_KEPT = 8
T = TypeVar("T")
_SERIAL = count()


class GraphSource:
    """A graph that is generated or read from a file.

    Args:
        source_id: which graph.
    """

    policies: tuple[str, ...] = ACTIONS

    def __init__(self, source_id: SourceId) -> None:
        self.id, self.serial, self.setting = source_id, next(_SERIAL), Setting.default()
        self.graph, self.warnings = _read(source_id)
        self._regions: dict[str, npt.NDArray[np.int32]] = {}
        self.stimuli, self.horizons = int(self.graph.stimuli), self.setting.horizons
        self.variant = Variant(self.setting.params, self.setting.regions)
        """The variant that the page begins with."""
        if source_id.kind == FILE:  # an environment fits a graph of one's own, too
            fitted, said = _with_warnings(
                lambda: blame("path", lambda: fit(self.graph, setting=self.setting))
            )
            self.variant = Variant(fitted.params, fitted.spec or self.setting.regions)
            self.warnings += said

    @property
    def title(self) -> str:
        """The graph in a line."""
        g = self.graph
        sensitive = int(g.sensitive.sum())
        return f"{g.n:,} nodes, {len(g.indices):,} edges, V_sens of {sensitive:,}"

    @property
    def counts(self) -> dict[str, str]:
        """What reach, sensitive mass and return count."""
        return counts_of(CASCADE)

    def regions(self, spec: str) -> npt.NDArray[np.int32]:
        """(n,) regions of a spec; the last few are remembered."""
        if spec not in self._regions:
            made = blame(
                "regions", lambda: make_regions(spec, self.graph, straddle=self.setting.straddle)
            )
            self._regions[spec] = made
            if len(self._regions) > REGIONS_KEPT:
                del self._regions[next(iter(self._regions))]
        return self._regions[spec]

    def make(self, variant: Variant, observe: str = "x") -> GraphDiffusionVectorEnv:
        """The environment of a variant. Its operating point tells of an idle memory."""
        regions = self.regions(variant.regions)
        env, _ = _with_warnings(
            lambda: blame(
                "psi_min",  # all else was checked: the engine is in single precision
                lambda: GraphDiffusionVectorEnv(
                    1, graph=self.graph, regions=regions, params=variant.params,
                    deformation=variant.scope, observe=observe, fit=False,
                ),
            )
        )  # fmt: skip
        return env

    def fit(self, variant: Variant) -> Fit:
        """Regions and tau for the graph, with the other constants of a variant."""
        return blame("tau", lambda: fit(self.graph, params=variant.params, setting=self.setting))

    def point(self, env: Any) -> str:
        """The operating point in a sentence."""
        return f"{env.operating_point}."

    def code(self) -> tuple[list[str], list[str]]:
        """Lines of Python before the environment is made, and its first arguments."""
        if self.id.kind == FILE:
            read = [f"graph = rapo.read_graph({self.id.path!r})"]
            return read, ['"rapo/GraphDiffusion-v0"', "graph=graph"]
        which = [f"nodes={self.id.nodes}", f"graph_seed={self.id.seed}"]
        return [], ['"rapo/GraphDiffusion-v0"', *which]


class PlatformSource:
    """A platform of the package.

    Args:
        source_id: which platform.
    """

    def __init__(self, source_id: SourceId) -> None:
        self.id, self.serial, self.entry = source_id, next(_SERIAL), PLATFORMS[source_id.kind]
        env, self.warnings = _with_warnings(lambda: self.make(Variant(FieldParams())))
        self.engine: Any = env.engine
        self.stimuli, self.horizons = env.stimuli, env.horizons
        self.policies = tuple(f"action {i}" for i in range(self.engine.actions))
        self.variant = Variant(self.engine.params, policy=self.policies[self.entry.action])
        """The variant that the page begins with."""

    @property
    def title(self) -> str:
        """The platform in a line."""
        e, name = self.engine, type(self.engine).__name__
        return f"{name}: {e.walkers} walkers, {e.G.shape[1]} regions"

    @property
    def counts(self) -> dict[str, str]:
        """What reach, sensitive mass and return count."""
        return counts_of(self.entry)

    def make(self, variant: Variant, observe: str = "x") -> PlatformVectorEnv:
        """The environment of a variant."""
        if variant.regions:
            raise ControlError(
                "regions", f"{self.id.kind} has regions of its own, got {variant.regions!r}"
            )
        return blame(
            "scope",
            lambda: PlatformVectorEnv(
                1, platform=self.entry.made_by, seed=self.id.seed, params=variant.params,
                deformation=variant.scope, observe=observe,
            ),
        )  # fmt: skip

    def fit(self, variant: Variant) -> Fit:
        """Refuse: `rapo.fit` measures graphs."""
        raise ControlError(
            "tau", f"rapo.fit is for graphs; {self.id.kind} was calibrated with these constants"
        )

    def point(self, env: Any) -> str:
        """The memory in a sentence: a platform has no operating point."""
        e, p = self.engine, env.engine.params
        return (
            f"{e.G.shape[1]} regions, harm after {e.memory.harm.delay} steps; a region scars while "
            f"its trace is above tau {p.tau:.3g}."
        )

    def code(self) -> tuple[list[str], list[str]]:
        """Lines of Python before the environment is made, and its first arguments."""
        return [], [f'"{self.id.kind}"', f"seed={self.id.seed}"]


Source = GraphSource | PlatformSource
_SOURCES: OrderedDict[Any, Source] = OrderedDict()
_LOCK = threading.Lock()


def find_source(source_id: SourceId) -> Source:
    """The graph or platform of an id; the last few are kept.

    Raises:
        ControlError: a file cannot be read, or is too large.
    """
    key = source_id, _stamp(source_id.path) if source_id.kind == FILE else None
    with _LOCK:  # `code` is answered while a job runs
        if key not in _SOURCES:
            make = PlatformSource if source_id.is_platform else GraphSource
            _SOURCES[key] = make(source_id)
            while len(_SOURCES) > SOURCES_KEPT:
                _SOURCES.popitem(last=False)
        _SOURCES.move_to_end(key)
        return _SOURCES[key]


def counts_of(entry: Entry) -> dict[str, str]:
    """What reach, sensitive mass and return of a platform count."""
    return {"reach": entry.reach, "sensitive": entry.sensitive, "return": entry.returns}


def _with_warnings(work: Callable[[], T]) -> tuple[T, list[str]]:
    """What `work` returns, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    return result, [str(warning.message) for warning in caught]


def _stamp(path: str) -> tuple[int, int]:
    """When a file changed last, and its size; refuse what is no file or too large."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise ControlError("path", f"there is no file {path}")
    stat = file.stat()
    if stat.st_size > MOST_BYTES:
        raise ControlError(
            "path", f"{path} has {stat.st_size:,} bytes; the lab reads up to {MOST_BYTES:,}"
        )
    return stat.st_mtime_ns, stat.st_size


def _read(source_id: SourceId) -> tuple[Graph, list[str]]:
    """The graph of an id, and the warnings that reading it gave."""
    if source_id.kind != FILE:
        return blame("nodes", lambda: generate(source_id.nodes, source_id.seed)), []
    path = Path(source_id.path).expanduser()
    graph, said = _with_warnings(lambda: blame("path", lambda: read_graph(path)))
    if graph.n > MOST_NODES:
        raise ControlError(
            "path", f"{source_id.path} has {graph.n:,} nodes; the lab takes up to {MOST_NODES:,}"
        )
    return graph, said
