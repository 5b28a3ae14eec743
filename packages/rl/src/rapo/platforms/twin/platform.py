"""`Twin`: units of a stirred reactor get one of nine coolants a step; hot units are damaged."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from rapo.platforms.candidates import Array, Candidates, Harmed, State
from rapo.platforms.map import PlatformMap
from rapo.platforms.memory import RegionMemory
from rapo.platforms.platform import BatchPlatform
from rapo.platforms.twin.baseline import TrippedUnits
from rapo.platforms.twin.plane import Plane
from rapo.platforms.twin.plant import plant_of
from rapo.platforms.twin.reactor import FEED_C, FEED_T, predict
from rapo.platforms.twin.setting import Setting
from rapo.scars import make, width_from
from rapo_core.checks import UserError, one_of, whole_number

KERNELS = ("rapo", "trip")
FIELDS = ("cells", "kernel", "density", "network", "grid")
"""Memories: cells of the phase plane, or a field of `rapo.scars` over the plane."""
OBSERVED = 8
AROUND_T, SCALE_T = 380.0, 20.0
FAR = 1e3
"""Bound of `x`, which is never reached: learners and checkers want a finite one."""


class Twin(BatchPlatform):
    """16 units of the textbook's stirred reactor, A -> B with heat, state (mol/L, K).

    In a step the model predicts the state to which each of nine coolants around the set-point would
    bring a unit. The unit gets one coolant by a Gaussian `P0`, deformed by psi of these states.
    While the stimulus is on, the feed swings. A unit above `damage` K is harmed; the harm is
    reported `delay` steps later.

    `x`, float32: mean, highest and spread of K, in 20 K and from 380 K; mean and highest mol/L;
    mean feed in tenths of a mol/L and in 10 K from nominal; clock / 500. Reward: mean conversion,
    the share of the nominal feed that has reacted. Reach: units above `warm` K.

    Args:
        episodes: E.
        seed: of the platform: it draws the units, which differ a little, and the disturbances.
        kernel: `rapo`, or `trip` for a high-temperature trip in place of the harm memory.
        field: the memory, one of FIELDS.
        width: of a scar field, as a share of the box; default `rule()`.
        setting: values that differ from `setting.toml`, or a whole `Setting`.
        options: of `BatchPlatform`.
    """

    def __init__(
        self,
        episodes: int = 1,
        *,
        seed: int = 0,
        kernel: str = "rapo",
        field: str = "cells",
        width: float | None = None,
        setting: Mapping[str, Any] | Setting | None = None,
        **options: Any,
    ) -> None:
        self.kernel = one_of("kernel", kernel, KERNELS)
        self.field = one_of("field", field, FIELDS)
        if field == "cells" and width is not None:
            raise UserError(f"width is of a scar field, and field is 'cells', got {width!r}")
        if kernel == "trip" and field != "cells":
            raise UserError(f"a trip has no scars; leave field at 'cells', got {field!r}")
        s = self.setting = Setting.of(setting)
        self.seed = whole_number("seed", seed, 0)
        self.plant, self.plane = plant_of(self.seed, s), Plane(s)
        self.set_points = np.array(s.set_points, np.float64)
        self.offsets = np.linspace(-s.farthest, s.farthest, s.candidates)
        law = np.exp(-0.5 * (self.offsets / s.spread) ** 2)
        episodes = whole_number("episodes", episodes, 1)
        self._P0 = np.tile(law / law.sum(), (episodes, s.units, 1))
        where: dict[str, Any] = {"regions": self.plane.count}
        self.width = width
        if field != "cells":
            self.width = self.rule() if width is None else width
            more: dict[str, Any] = {"centres": s.centres} if field == "kernel" else {}
            where = {"scars": partial(make, field, s.box, width=self.width, **more)}
        super().__init__(
            episodes,
            **{
                "walkers": s.units, "actions": len(s.set_points), "stimuli": s.stimuli,
                "observed": gymnasium.spaces.Box(-FAR, FAR, (OBSERVED,), np.float32),
                **where, "delay": s.delay, "saturation": s.saturation, **options,
            },
        )  # fmt: skip
        if kernel == "trip" and isinstance(self.memory, RegionMemory):
            self.memory = TrippedUnits(self.memory, s)
        self._fed: tuple[Array, Array, Array] | None = None
        self._picture: Any = None

    def rule(self) -> float:
        """Default width of a scar field: `spreads` times the spread of a step's draw at rest."""
        s, rest = self.setting, self.plant.rest
        middle = self.set_points[len(self.set_points) // 2 :][:1]
        calm = self.plant.feed(np.zeros(1, np.int64), np.zeros(1))
        to = self._led(rest[None, :, 0], rest[None, :, 1], calm, middle)
        return s.spreads * width_from(to, s.box, self._P0[0, 0])

    def rest(self, episodes: int) -> State:
        """Every unit in its hot steady state."""
        c, T = (np.tile(part, (episodes, 1)) for part in self.plant.rest.T)
        return {"c": c, "T": T}

    def candidates(self, state: State, action: Array) -> Candidates:
        """The states to which each coolant would lead."""
        s = self.setting
        to = self._led(state["c"], state["T"], self._feed(self.clock), self.set_points[action])
        return Candidates(self._P0, self._places(to), to[..., 1] > s.damage, items=(state["T"], to))

    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """The states to which the drawn coolants lead, and the mean conversion there."""
        to = np.take_along_axis(proposed.items[1], choice[:, :, None, None], 2)[:, :, 0]
        c, T = to[..., 0].copy(), to[..., 1].copy()
        return {"c": c, "T": T}, 1 - c.mean(axis=1) / FEED_C

    def harmed(self, state: State) -> Harmed:
        """Units above the temperature that does damage."""
        at = np.stack([state["c"], state["T"]], axis=2)
        return Harmed(state["T"] > self.setting.damage, self._places(at))

    def sensitive_mass(self, state: State) -> Array:
        """Units above the temperature that does damage."""
        return np.asarray((state["T"] > self.setting.damage).sum(axis=1))

    def reach(self, state: State) -> Array:
        """Units that are warm."""
        return np.asarray((state["T"] > self.setting.warm).sum(axis=1))

    def observation(self, state: State, clock: Array) -> Array:
        """The view of an operator: temperatures, concentrations of A, the feed."""
        c, T = state["c"], (state["T"] - AROUND_T) / SCALE_T
        feed = self._feed(clock).mean(axis=1)
        return np.stack(
            [
                T.mean(axis=1), T.max(axis=1), T.std(axis=1), c.mean(axis=1), c.max(axis=1),
                (feed[:, 0] - FEED_C) * 10, (feed[:, 1] - FEED_T) / 10, clock / 500,
            ],
            axis=1,
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """Which plant, memory and kernel this is."""
        width = {} if self.field == "cells" else {"width": self.width}
        return {
            "data": "none: a textbook's model", "seed": self.seed, "kernel": self.kernel,
            "field": self.field, **width,
        }  # fmt: skip

    def frame(self, episode: int) -> Array:
        """The phase plane: paths of the units, damage, scars."""
        from rapo.platforms.twin.picture import Picture

        if self._picture is None:
            self._picture = Picture(self)
        return np.asarray(self._picture.draw(episode))

    def map(self) -> PlatformMap:
        """The cells of the phase plane."""
        from rapo.platforms.twin.map import twin_map

        return twin_map(self)

    def psi_at(self, points: Array, episode: int) -> Array:
        """(n,) psi of points (n, 2) in mol/L and K in the memory of an episode."""
        if isinstance(self.memory, RegionMemory):
            psi = self.memory.harm.conductance()[episode]
            return np.asarray(psi[self.plane.cells(points)])
        every = np.broadcast_to(points, (self.episodes, *points.shape))
        return np.asarray(self.memory.field.conductance(every)[episode])

    def _feed(self, clock: Array) -> Array:
        """(E, m, 2) feed of a step; `x` shows the feed with which the next step begins."""
        on, fed = self.stimulus_on, self._fed
        if fed is None or not (np.array_equal(fed[0], on) and np.array_equal(fed[1], clock)):
            fed = on, clock, self.plant.feed(on, clock * self.setting.minutes)
            self._fed = fed
        return fed[2]

    def _led(self, c: Array, T: Array, feed: Array, set_point: Array) -> Array:
        """(E, m, K, 2) next states of units at c, T (E, m) with feed (E, m, 2), set_point (E,)."""
        coolant = set_point[:, None] + self.offsets
        return predict(c, T, feed, coolant, self.plant.unit, self.setting.minutes)

    def _places(self, points: Array) -> Array:
        """Cells of points (..., 2), or the points themselves for a scar field."""
        return self.plane.cells(points) if self.field == "cells" else points
