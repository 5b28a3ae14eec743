"""The film of one episode of a side: its active sets as bits, and the fields of its regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.stage import VectorStage
from rapo.rsd.episodes import walk
from rapo.rsd.policy import Watcher, as_actor
from rapo.rsd.stage import checked_stimuli
from rapo.show.lab.numbers import Check
from rapo.show.lab.policies import find_policy
from rapo.show.lab.request import Draws, Side
from rapo.show.lab.scenes import Walkers
from rapo.show.lab.sources import GraphSource, Source

Array = npt.NDArray[Any]
MOST_FIELDS = 400_000
"""Numbers of a field that a film holds; with many regions it is told at fewer steps."""


@dataclass(frozen=True)
class Film:
    """An episode of T steps, told at each; the fields at steps every, 2 every, ..."""

    stimulus: int
    every: int
    """Steps between two states of the fields."""
    arrays: dict[str, Array]
    """`active` (T, bytes) bits of nodes, lowest first, or `walkers` (T, m, 2) and `load` (T, R) of
    a platform; `G` and `H` (F, R) of the regions that can carry harm; `region` (n,) index of a
    node's among these or -1; `open` (R,) 1 where the scope never deforms."""


def film_of(source: Source, side: Side, draws: Draws, check: Check) -> Film:
    """Run the shown episode once more, with its own draws.

    Args:
        source: where.
        side: the setting.
        draws: which episodes, and which of them is shown.
        check: called now and then; it may raise to end the run.
    """
    found = find_policy(source, side)
    env: Any = source.make(side, found.observe)
    stage: VectorStage = env.stage(
        1,
        seed=draws.seed + draws.shown,
        stimuli=checked_stimuli(draws.stimulus or None, 1, env.stimuli),
        horizons=env.horizons,
        coupled=draws.coupled,
        deformed=(True, True, True),
    )
    actor: Any = as_actor(found.policy, env.single_action_space)
    if isinstance(actor, Watcher):
        actor.watch(stage.watched)
    notes: Any = _Graph(stage.env) if isinstance(source, GraphSource) else _Platform(stage, source)
    every = max(1, -(-sum(env.horizons) * len(notes.live) // MOST_FIELDS))
    fields: list[tuple[Array, Array]] = []
    t = 0
    for phase, span in enumerate(env.horizons):
        for _ in walk(stage, actor, phase, span, env.single_action_space, lambda _: check()):
            notes.note()
            t += 1
            if t % every == 0:
                engine = stage.env.engine
                fields.append((engine.G[0, notes.live], engine.H[0, notes.live]))
    G, H = (np.array(each, np.float32) for each in zip(*fields, strict=True))
    arrays = {**notes.arrays(), "G": G, "H": H, "open": notes.open}
    return Film(int(stage.stimulus[0]), every, arrays)


class _Graph:
    """Active sets of a graph, written down after every step."""

    def __init__(self, env: Any) -> None:
        self.engine, self.live = env.engine, env.engine.harm_regions
        self.open = (~self.engine.gated_regions).astype(np.uint8)
        self._active: list[Array] = []

    def note(self) -> None:
        self._active.append(np.packbits(self.engine.active[0], bitorder="little"))

    def arrays(self) -> dict[str, Array]:
        index = np.full(self.engine.region_count, -1, np.int32)
        index[self.live] = np.arange(len(self.live))
        return {"active": np.array(self._active), "region": index[self.engine.regions]}


class _Platform:
    """Walkers of a platform, written down after every step."""

    def __init__(self, stage: VectorStage, source: Any) -> None:
        self.engine = stage.env.engine
        self.live = np.arange(self.engine.G.shape[1])
        self.open = self.engine.memory.open_regions.astype(np.uint8)
        self._walkers = Walkers(source)
        self._at: list[Array] = []
        self._load: list[Array] = []

    def note(self) -> None:
        self._at.append(self._walkers.at(self.engine))
        self._load.append(self._walkers.load(self.engine))

    def arrays(self) -> dict[str, Array]:
        return {"walkers": np.array(self._at), "load": np.array(self._load)}
