"""`Warehouse`: robots choose routes over a real floor in which some zones are hazardous."""

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
from rapo.platforms.warehouse.baseline import locked_out
from rapo.platforms.warehouse.entry import WAREHOUSE
from rapo.platforms.warehouse.kernel import (
    CLOCK,
    MEAN_X,
    MEAN_Y,
    NOBODY,
    SEEN,
    SPREAD,
    drive,
    expose,
    give,
    observe_robots,
    offer,
)
from rapo.platforms.warehouse.orders import orders_of
from rapo.platforms.warehouse.setting import Setting
from rapo_core.checks import one_of, whole_number

KERNELS = ("rapo", "lockout")
ERRAND, SENT, HELD, MISTAKE = 1, 2, 3, 4  # lanes of draws
FAR = 1e6
"""Upper end of `x`, which is never reached: learners and checkers want a finite one."""


class Warehouse(BatchPlatform):
    """Robots that fetch goods from around a shelf, by one of up to six routes there and back.

    The stimulus is a wave of orders. While it is on, a docked robot is sent with a chance that the
    action sets. The robot gets an errand and chooses a route by
    `P0 = exp(-excess length / temperature)`, deformed by psi of the zones on the route; a robot
    that has picked chooses a route back. Then robots move by a cell along one-way aisles if the
    next cell is free or becomes free. Of several robots that want a cell the longest stopped goes,
    but rings of robots turn first. A robot in a hazard is reported `delay` steps later, and now and
    then a robot elsewhere is reported by mistake.

    `x`, float32, >= 0: shares of robots that are docked, on the way out, picking, on the way back,
    stopped; mean steps stopped; clock / 500; mean position of the robots on the floor and their
    spread, over the floor's longer side. Reward: deliveries. `x` does not depend on hazards.

    Args:
        episodes: E.
        seed: of the platform: it draws hazards, shelves and waves.
        data: `real`, `stand-in`, or `auto`: a stand-in with a warning where data are missing.
        kernel: `rapo`, or `lockout` for closed zones in place of the harm memory.
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
        o = self.orders = orders_of(
            self.seed, s.layout(), data_source(data, WAREHOUSE.env, *WAREHOUSE.files)
        )
        super().__init__(
            episodes, walkers=s.robots, actions=len(s.dispatch), stimuli=s.stimuli,
            observed=gymnasium.spaces.Box(0, FAR, (SEEN,), np.float32),
            regions=len(o.hazard), harm_regions=np.flatnonzero(o.hazard),
            **{"delay": s.delay, "saturation": s.saturation, **options},
        )  # fmt: skip
        if kernel == "lockout" and isinstance(self.memory, RegionMemory):
            self.memory = locked_out(self.memory, s.timer)
        self._rates = np.array(s.dispatch)
        # These arrays are filled at every step; new pages are slow.
        self._where = np.full((episodes, s.robots, s.routes, o.zones.shape[2]), -1, np.int32)
        self._cells = np.full((2, o.floor.free.size), NOBODY, np.int32)
        self._robots = np.zeros((3, s.robots), np.int32)
        self._nobody = np.zeros((episodes, s.robots), np.bool_)
        self._picture: Any = None

    def rest(self, episodes: int) -> State:
        """An idle floor: every robot is in the dock."""
        nowhere = np.full((episodes, self.walkers), NOBODY, np.int32)
        none = np.zeros_like(nowhere)
        stray = np.zeros(nowhere.shape, np.bool_)
        return {
            "row": nowhere, "route": nowhere, "at": nowhere, "wait": none, "waited": none,
            "stray": stray,
        }  # fmt: skip

    def arrive(self, state: State) -> State:
        """Docked robots get errands while the stimulus is on, and robots that picked turn back."""
        row, route, at = (np.empty_like(state[name]) for name in ("row", "route", "at"))
        give(
            state["row"], state["route"], state["at"], state["wait"], self.orders.last,
            self.stimulus_on, self.draws(ERRAND), self.setting.errands, row, route, at,
        )  # fmt: skip
        return {**state, "row": row, "route": route, "at": at}

    def candidates(self, state: State, action: Array) -> Candidates:
        """Routes for the robots that are sent or turn back."""
        o, shape = self.orders, (self.episodes, self.walkers, self.setting.routes)
        P0, harmful = np.empty(shape), np.empty(shape, np.bool_)
        moving = np.empty(shape[:2], np.bool_)
        offer(
            state["row"], state["route"], state["at"], action, self._rates, self.draws(SENT), o.law,
            o.zones, o.enters, P0, self._where, harmful, moving,
        )  # fmt: skip
        return Candidates(P0, self._where, harmful, moving)

    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """All robots that can move go on by a cell; the reward is the number of deliveries."""
        o, s = self.orders, self.setting
        held = self._nobody
        if s.stall > 0:
            held = self._exposed(state)[0] & (self.draws(HELD) < s.stall)
        new = {name: np.empty_like(array) for name, array in state.items()}
        delivered = np.empty(self.episodes)
        drive(
            state["row"], state["route"], state["at"], state["wait"], state["waited"], choice, held,
            o.cells, o.last, s.pick, *self._cells, *self._robots, new["row"], new["route"],
            new["at"], new["wait"], new["waited"], delivered,
        )  # fmt: skip
        new["stray"] = (new["at"] >= 0) & (self.draws(MISTAKE) < s.stray)
        return new, delivered

    def harmed(self, state: State) -> Harmed:
        """Robots in a hazard and robots that will be reported by mistake, with their zones."""
        inside, where = self._exposed(state)
        return Harmed(inside | state["stray"], where)

    def reach(self, state: State) -> Array:
        """Stopped robots."""
        return np.asarray((state["waited"] > 0).sum(axis=1))

    def sensitive_mass(self, state: State) -> Array:
        """Robots in a hazard."""
        return np.asarray(self._exposed(state)[0].sum(axis=1))

    def observation(self, state: State, clock: Array) -> Array:
        """The view of a supervisor: how many robots do what, are stopped, and where robots are."""
        o, shape = self.orders, self.orders.floor.free.shape
        x = np.empty((self.episodes, SEEN))
        observe_robots(
            state["row"], state["route"], state["at"], state["waited"], o.cells, o.last, shape[1], x
        )
        x[:, [MEAN_Y, MEAN_X, SPREAD]] /= max(shape)
        x[:, CLOCK] = clock / 500
        return x

    def report(self, state: State) -> dict[str, Array]:
        """Whether the floor is a stand-in, 0 or 1."""
        return {"stand_in": np.full(self.episodes, 0.0 if self.orders.floor.real else 1.0)}

    def describe(self) -> dict[str, Any]:
        """Which floor and kernel this is, and the source of the floor."""
        floor = self.orders.floor
        return {
            "floor": "warehouse-10-20-10-2-1" if floor.real else "stand-in",
            "data": "movingai_mapf_maps" if floor.real else "stand-in",
            "cells": int(floor.free.sum()),
            "zones": len(self.orders.hazard),
            "hazards": int(self.orders.hazard.sum()),
            "seed": self.seed,
            "kernel": self.kernel,
        }

    def frame(self, episode: int) -> Array:
        """The floor: robots, where they go, hazards, scars."""
        from rapo.platforms.canvas import when
        from rapo.platforms.warehouse.picture import Picture

        o, state = self.orders, self.state
        if self._picture is None:
            self._picture = Picture(o, self.setting.zone)
        assert self.H is not None
        row, route, at = (state[name][episode] for name in ("row", "route", "at"))
        out = np.flatnonzero(at >= 0)
        ahead = [o.cells[row[w], route[w], at[w] : o.last[row[w], route[w]] + 1] for w in out]
        loaded = (row[out] % 2 == 1) | np.array([len(cells) == 1 for cells in ahead], np.bool_)
        stopped = state["waited"][episode][out] > 0
        inside = self.sensitive_mass(state)[episode]
        title = (
            f"{when(self, episode)}   {len(out)} robots on the floor, "
            f"{np.count_nonzero(stopped)} stopped, {inside} in a hazard"
        )
        return np.asarray(self._picture.draw(ahead, loaded, stopped, self.H[episode], title))

    def map(self) -> PlatformMap:
        """The floor by zones."""
        from rapo.platforms.warehouse.map import warehouse_map

        return warehouse_map(self.orders)

    def _exposed(self, state: State) -> tuple[Array, Array]:
        """Which robots are in a hazard (E, m), and the zone of every robot (E, m)."""
        o, row = self.orders, state["row"]
        inside, where = np.empty(row.shape, np.bool_), np.empty(row.shape, np.int32)
        expose(row, state["route"], state["at"], o.cells, o.zone_of, o.hazard, inside, where)
        return inside, where
