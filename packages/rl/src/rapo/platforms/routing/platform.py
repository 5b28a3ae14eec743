"""`Routing`: flows choose paths through a real network in which some links lose silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rapo.platforms.candidates import Array, Candidates, Harmed, State
from rapo.platforms.data import data_source
from rapo.platforms.map import PlatformMap
from rapo.platforms.memory import RegionMemory
from rapo.platforms.platform import BatchPlatform
from rapo.platforms.routing.baseline import damped
from rapo.platforms.routing.demand import demand_of
from rapo.platforms.routing.entry import ROUTING
from rapo.platforms.routing.kernel import (
    CLOCK,
    FULLEST,
    MEAN_LOAD,
    NOBODY,
    PLAIN,
    carry,
    come,
    count_exposed,
    expose,
    observe_flows,
    offer,
)
from rapo.platforms.routing.setting import Setting
from rapo_core.checks import one_of, whole_number

KERNELS = ("rapo", "damping")
COME, WHERE, DONE = 1, 2, 3  # lanes of draws
FAR = 1e6
"""Upper end of `x`, which is never reached: learners and checkers want a finite one."""


class Routing(BatchPlatform):
    """Flows between six pairs of nodes; a flow takes one of six paths and stays on it until done.

    In a step, finished flows leave. While the stimulus is on, free slots get new flows between the
    stimulus' pairs, which choose a path by `P0 = exp(-excess length / temperature)`, deformed by
    psi of the links. Then all flows send. Sizes are memoryless, so slow flows stay longer. A flow
    on a grey link is harmed; the harm is reported `delay` steps later.

    `x`, float32, >= 0: flows in flight, mean stretch less 1, clock / 500, load of the fullest
    link and mean load of the used ones over the capacity, share of flows by pair and by path.
    Reward: goodput, the sum of the flows' rates over the slots. Grey links show in neither load
    nor stretch.

    Args:
        episodes: E.
        seed: of the platform: it draws the network, the grey links and the stimuli.
        data: `real`, `stand-in`, or `auto`: a stand-in with a warning where data are missing.
        kernel: `rapo`, or `damping` for route-flap damping in place of the harm memory.
        setting: values that differ from `setting.toml`, or a whole `Setting`.
        options: of `BatchPlatform`.
    """

    def __init__(
        self,
        episodes: int = 1,
        *,
        seed: int = 0,
        data: str = "auto",
        kernel: str = "rapo",
        setting: Mapping[str, Any] | Setting | None = None,
        **options: Any,
    ) -> None:
        self.kernel = one_of("kernel", kernel, KERNELS)
        s = self.setting = Setting.of(setting)
        self.seed = whole_number("seed", seed, 0)
        self.demand = demand_of(self.seed, s, data_source(data, ROUTING.env, *ROUTING.files))
        size = PLAIN + s.pairs + s.paths
        super().__init__(
            episodes, walkers=s.flows, actions=len(s.temperatures), stimuli=s.stimuli,
            observed=gymnasium.spaces.Box(0, FAR, (size,), np.float32),
            regions=len(self.demand.grey), harm_regions=np.flatnonzero(self.demand.grey),
            **{"delay": s.delay, "saturation": s.saturation, **options},
        )  # fmt: skip
        if kernel == "damping" and isinstance(self.memory, RegionMemory):
            self.memory = damped(self.memory, s)
        shape = episodes, s.flows, s.paths, self.demand.links.shape[2]
        self._where = np.full(shape, -1, np.int32)  # filled at every step; new pages are slow
        self._picture: Any = None

    def rest(self, episodes: int) -> State:
        """An empty network."""
        empty = np.full((episodes, self.walkers), NOBODY, np.int64)
        load = np.zeros((episodes, len(self.demand.grey)))
        return {"pair": empty, "path": empty, "done": np.zeros(empty.shape, np.bool_), "load": load}

    def arrive(self, state: State) -> State:
        """Finished flows leave; while the stimulus is on, flows between its pairs come."""
        pair, path = np.empty_like(state["pair"]), np.empty_like(state["path"])
        come(
            state["pair"], state["path"], state["done"], self.stimulus_on, self.demand.arrivals,
            self.draws(COME), self.draws(WHERE), self.setting.arrival, pair, path,
        )  # fmt: skip
        return {**state, "pair": pair, "path": path, "done": np.zeros_like(state["done"])}

    def candidates(self, state: State, action: Array) -> Candidates:
        """Paths for the flows that have just come."""
        d, shape = self.demand, (self.episodes, self.walkers, self.setting.paths)
        P0, harmful = np.empty(shape), np.empty(shape, np.bool_)
        moving = np.empty(shape[:2], np.bool_)
        offer(
            state["pair"], state["path"], action, d.law, d.links, d.crossings, P0, self._where,
            harmful, moving,
        )  # fmt: skip
        return Candidates(P0, self._where, harmful, moving)

    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """New flows take their paths, all flows send, and some finish."""
        d, s, pair = self.demand, self.setting, state["pair"]
        path = np.where(choice >= 0, choice, state["path"])
        load, rate = np.empty_like(state["load"]), np.empty(pair.shape)
        done = np.empty(pair.shape, np.bool_)
        carry(
            pair, path, d.links, d.stretch, d.kept, self.draws(DONE), s.capacity, s.size, load,
            rate, done,
        )  # fmt: skip
        return {"pair": pair, "path": path, "done": done, "load": load}, rate.mean(axis=1)

    def harmed(self, state: State) -> Harmed:
        """Flows on grey links, and the links that reports will name."""
        d, pair = self.demand, state["pair"]
        weight = np.empty(pair.shape, np.bool_)
        where = np.empty((*pair.shape, d.blamed.shape[2]), np.int32)
        expose(pair, state["path"], d.crossings, d.blamed, weight, where)
        return Harmed(weight, where)

    def reach(self, state: State) -> Array:
        """Flows in flight."""
        return np.asarray((state["pair"] >= 0).sum(axis=1))

    def sensitive_mass(self, state: State) -> Array:
        """Flows on grey links."""
        inside = np.empty(len(state["pair"]), np.int64)
        count_exposed(state["pair"], state["path"], self.demand.crossings, inside)
        return inside

    def observation(self, state: State, clock: Array) -> Array:
        """The view of an operator: flows, their detours and the load of links."""
        s = self.setting
        x = np.empty((self.episodes, PLAIN + s.pairs + s.paths))
        observe_flows(state["pair"], state["path"], self.demand.stretch, state["load"], s.pairs, x)
        x[:, [FULLEST, MEAN_LOAD]] /= s.capacity
        x[:, CLOCK] = clock / 500
        return x

    def report(self, state: State) -> dict[str, Array]:
        """Whether the network is a stand-in, 0 or 1."""
        return {"stand_in": np.full(self.episodes, 0.0 if self.demand.topology.real else 1.0)}

    def describe(self) -> dict[str, Any]:
        """Which network and kernel this is, and the source of the network."""
        topology = self.demand.topology
        return {
            "topology": topology.name,
            "data": "topology_zoo" if topology.real else "stand-in",
            "nodes": len(topology.place),
            "links": len(topology.ends),
            "grey_links": int(self.demand.grey.sum()),
            "seed": self.seed,
            "kernel": self.kernel,
        }

    def frame(self, episode: int) -> Array:
        """The map: loads, grey links, scars."""
        from rapo.platforms.canvas import when
        from rapo.platforms.routing.picture import Picture

        if self._picture is None:
            self._picture = Picture(self.demand)
        assert self.H is not None
        title = (
            f"{self.demand.topology.name}: {when(self, episode)}   "
            f"{self.reach(self.state)[episode]} flows, "
            f"{self.sensitive_mass(self.state)[episode]} on grey links"
        )
        return np.asarray(self._picture.draw(self.state["load"][episode], self.H[episode], title))

    def map(self) -> PlatformMap:
        """The links between routers."""
        from rapo.platforms.routing.map import routing_map

        return routing_map(self.demand)
