"""The two memory layouts of the engine, each with its kernel, behind one small interface."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rapo.cascade import lanes_kernel, push_kernel
from rapo.cascade.clock import EPISODE_ROWS
from rapo.cascade.kernel_arrays import SITE, law_of, sites_of
from rapo.cascade.lanes_kernel import RUN_LANES, SUMS
from rapo.cascade.push_kernel import RUN_PUSH
from rapo_core.bits import packed, unpacked, word_count
from rapo_core.bundle import Bundle
from rapo_core.checks import UserError
from rapo_core.lanes import LANES

if TYPE_CHECKING:
    from rapo.cascade.engine import Cascade

Float = npt.NDArray[np.float32]
_MEASURED = 16_000


def choose_backend(name: str, engine: Cascade) -> str:
    """`lanes` or `push`; `auto` takes the one that is expected to be faster.

    A block of lanes costs much the same for one episode as for 32, so it must hold enough of them:
    the fewer the nodes, the more of what they touch they share (measured up to `_MEASURED` nodes).
    """
    if name not in ("auto", "lanes", "push"):
        raise UserError(f"backend must be auto, lanes or push, got {name!r}")
    if engine.scope.kind == "topk":  # ranking an episode's destinations needs all of them at once
        if name == "lanes":
            raise UserError(f"deformation {engine.scope} runs on backend push only, got {name!r}")
        return "push"
    if name == "auto":
        in_block = engine.episodes / -(-engine.episodes // LANES)
        enough = in_block >= min(0.4 * engine.graph.n**0.5, 18)
        return "lanes" if enough and engine.graph.n <= _MEASURED else "push"
    return name


def _live_index(engine: Cascade, region: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Index into the live regions for each node's region, -1 for the others."""
    index = np.full(engine.region_count, -1, np.int64)
    index[engine.live] = np.arange(len(engine.live))
    return index[region]


def _turns(engine: Cascade, count: int) -> list[npt.NDArray[np.int64]]:
    """The turn of each thread over `count` rows or blocks, see `clock`."""
    bounds = [i * count // engine.threads for i in range(engine.threads + 1)]
    return [np.array([0, *pair, engine.episodes], np.int64) for pair in pairwise(bounds)]


def _aligned(shape: tuple[int, ...], dtype: type) -> npt.NDArray[Any]:
    """Zeros that start on a cache line: lanes that straddle two cost up to a fifth more."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


class LanesBackend:
    """Blocks of 32 episodes, element (i, lane) of every table at 32 i + lane."""

    name = "lanes"

    def __init__(self, engine: Cascade, schedule: npt.NDArray[np.int64]) -> None:
        graph = engine.graph
        self.engine = engine
        self.blocks = -(-engine.episodes // LANES)
        self.rows = self.blocks * LANES
        self.episode = np.zeros((EPISODE_ROWS, self.rows), np.int64)
        self.keys = np.zeros((2, self.rows), np.uint64)
        live, delay = len(engine.live), engine.setting.delay
        nodes, regions = word_count(graph.n), word_count(live)
        self._active = np.zeros((self.blocks, graph.n), np.uint32)
        self._now = np.zeros((self.blocks, nodes), np.uint64)
        self._spent = np.zeros((self.blocks, graph.n), np.uint32)
        self._run = RUN_LANES[engine.setting.spread]
        self._m = _aligned((self.blocks, 2 * graph.n * LANES), np.float32)
        self._m[...] = 1
        self._holders = np.zeros((self.blocks, graph.n), np.uint32)
        self._laid = np.zeros((self.blocks, nodes), np.uint64)
        self._fields = _aligned((2, self.blocks, live * LANES), np.float32)
        self._ring = _aligned((self.blocks, delay * live * LANES), np.float32)
        self._awake = np.zeros((self.blocks, regions), np.uint64)
        self._stirred = np.zeros((self.blocks, delay * regions), np.uint64)
        self.turns = _turns(engine, self.blocks)
        fixed = (
            graph.indptr, graph.indices, graph.prob,
            sites_of(graph), _live_index(engine, engine.regions), graph.sensitive,
            packed(graph.sensitive), _live_index(engine, engine.credit),
            packed(engine.designated), law_of(engine.params, engine.setting.persistence),
            graph.support.astype(np.int64),
            np.ascontiguousarray(np.float32(1) - engine.rates), schedule,
        )  # fmt: skip
        state = (
            self._active, self._now, self._spent, self._m, self._holders, self._laid,
            self._fields, self._ring, self._awake, self._stirred,
            _aligned((self.blocks, (SITE + SUMS + 1 + live) * LANES), np.float32),
            _aligned((self.blocks, 2 * LANES), np.uint32),
            np.zeros((self.blocks, nodes + regions), np.uint64),
        )  # fmt: skip
        self._bundles = [
            Bundle(lanes_kernel.KINDS, (*fixed, self.episode, self.keys, turn, *state))
            for turn in self.turns
        ]

    def run(self, part: int, actions: npt.NDArray[np.int64], trace: Float) -> Any:
        """Run the blocks of one thread; -1 or the index of an action that is unknown."""
        return self._run(self._bundles[part].table, actions, trace)

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes, and forget who was active."""
        kept = np.ones((self.rows, 1), np.bool_)
        kept[rows] = False
        self._active &= self._lane_bits(kept)
        self._spent &= self._lane_bits(kept)
        self._now[...] = packed(self._active > 0)

    def write_active(self, rows: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Set the active sets of some episodes, (rows, n) bool."""
        self.clear_active(rows)
        whole = np.zeros((self.rows, self.engine.graph.n), np.bool_)
        whole[rows] = active
        self._active |= self._lane_bits(whole)
        self._now[...] = packed(self._active > 0)

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields.reshape(2, self.blocks, -1, LANES)[:, rows // LANES, :, rows % LANES] = 0
        self._ring.reshape(self.blocks, -1, LANES)[rows // LANES, :, rows % LANES] = 0
        forgotten = np.zeros(self.engine.episodes, np.bool_)
        forgotten[rows] = True
        if forgotten.all():  # else the sets may hold more than they need to
            self._awake[...] = self._stirred[...] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        return self._nodes(self._active)

    def read_spent(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        return self._nodes(self._spent)

    def _nodes(self, table: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """(E, n) from a bit per lane, (B, n)."""
        octets = table.view(np.uint8).reshape(self.blocks, -1, 4)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")
        nodes: npt.NDArray[np.bool_] = self._by_episode(bits.view(np.bool_))
        return nodes

    def read_field(self, which: int) -> Float:
        """(E, R_live) of G (0) or H (1)."""
        field: Float = self._by_episode(self._fields[which])
        return field

    def read_ring(self) -> Float:
        """(D, E, R_live) in ring order."""
        live = len(self.engine.live)
        flat = self._by_episode(self._ring)
        return np.ascontiguousarray(flat.reshape(len(flat), -1, live).transpose(1, 0, 2))

    def write(self, active: Any, spent: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state; the injection is laid out anew at the next step."""
        self.write_active(np.arange(self.engine.episodes), active)
        whole = np.zeros((self.rows, self.engine.graph.n), np.bool_)
        whole[: self.engine.episodes] = spent
        self._spent[...] = self._lane_bits(whole)
        self._put(self._fields[0], G)
        self._put(self._fields[1], H)
        self._put(self._ring, ring.transpose(1, 0, 2).reshape(self.engine.episodes, -1))
        self._awake[...] = packed(self._any_lane(self._fields[0] + self._fields[1]))
        used = self._any_lane(self._ring).reshape(self.blocks, -1, len(self.engine.live))
        self._stirred[...] = packed(used).reshape(self.blocks, -1)
        self._m[...] = 1
        self._holders[...] = self._laid[...] = 0

    def _lane_bits(self, table: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        """(B, size) with a bit per lane, of truth values (rows, size)."""
        lanes = np.ascontiguousarray(table.reshape(self.blocks, LANES, -1).transpose(0, 2, 1))
        return np.packbits(lanes, axis=-1, bitorder="little").view(np.uint32)[..., 0]

    def _any_lane(self, table: Float) -> npt.NDArray[np.bool_]:
        """Whether any of the 32 lanes of each element is not 0."""
        return np.asarray(table.reshape(len(table), -1, LANES).any(axis=-1))

    def _by_episode(self, table: Any) -> Any:
        lanes = table.reshape(self.blocks, -1, LANES).transpose(0, 2, 1)
        return lanes.reshape(self.rows, -1)[: self.engine.episodes].copy()

    def _put(self, table: Float, values: Any) -> None:
        padded = np.zeros((self.rows, values.shape[1]), np.float32)
        padded[: len(values)] = values
        table[...] = padded.reshape(self.blocks, LANES, -1).transpose(0, 2, 1).reshape(table.shape)


class PushBackend:
    """One row per episode, active sets as bitmaps."""

    name = "push"

    def __init__(self, engine: Cascade, schedule: npt.NDArray[np.int64]) -> None:
        graph = engine.graph
        self.engine = engine
        self.rows = engine.episodes
        self.episode = np.zeros((EPISODE_ROWS, self.rows), np.int64)
        self.keys = np.zeros((2, self.rows), np.uint64)
        live, delay = len(engine.live), engine.setting.delay
        nodes, regions = word_count(graph.n), word_count(live)
        self._active = np.zeros((self.rows, nodes), np.uint64)
        self._spent = np.zeros((self.rows, nodes), np.uint64)
        self._run = RUN_PUSH[engine.setting.spread]
        self._fields = np.zeros((2, self.rows, regions * 64), np.float32)
        self._ring = np.zeros((self.rows, delay * live), np.float32)
        self._awake = np.zeros((self.rows, regions), np.uint64)
        self._stirred = np.zeros((self.rows, delay * regions), np.uint64)
        self.turns = _turns(engine, self.rows)
        fixed = (
            graph.indptr, graph.indices, graph.prob,
            sites_of(graph), _live_index(engine, engine.regions), graph.sensitive,
            packed(graph.sensitive), _live_index(engine, engine.credit),
            packed(engine.designated), law_of(engine.params, engine.setting.persistence),
            graph.support, np.ascontiguousarray(np.float32(1) - engine.rates), schedule,
        )  # fmt: skip
        state = (
            self._active,
            self._spent,
            self._fields,
            self._ring,
            self._awake,
            self._stirred,
        )
        self._bundles = [
            Bundle(
                push_kernel.KINDS,
                (
                    *fixed, self.episode, self.keys, turn, *state, np.zeros(nodes, np.uint64),
                    np.ones(graph.n, np.float32), np.ones(regions * 64, np.float32),
                ),
            )
            for turn in self.turns
        ]  # fmt: skip
        ranked = engine.scope.k > 0
        self._ranks = [np.zeros(graph.n, np.float32) if ranked else None for _ in self.turns]

    def run(self, part: int, actions: npt.NDArray[np.int64], trace: Float) -> Any:
        """Run the episodes of one thread; -1 or the index of an action that is unknown."""
        table, k = self._bundles[part].table, self.engine.scope.k
        return self._run(table, actions, trace, k, self._ranks[part])

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes, and forget who was active."""
        self._active[rows] = self._spent[rows] = 0

    def write_active(self, rows: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Set the active sets of some episodes, (rows, n) bool."""
        self._active[rows] = packed(active)
        self._spent[rows] = 0

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields[:, rows] = 0
        self._ring[rows] = 0
        self._awake[rows] = self._stirred[rows] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        return unpacked(self._active, self.engine.graph.n)

    def read_spent(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        return unpacked(self._spent, self.engine.graph.n)

    def read_field(self, which: int) -> Float:
        """(E, R_live) of G (0) or H (1)."""
        return np.array(self._fields[which, :, : len(self.engine.live)])

    def read_ring(self) -> Float:
        """(D, E, R_live) in ring order."""
        live = len(self.engine.live)
        return np.ascontiguousarray(self._ring.reshape(self.rows, -1, live).transpose(1, 0, 2))

    def write(self, active: Any, spent: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state."""
        self._active[...] = packed(active)
        self._spent[...] = packed(spent)
        self._fields[:, :, : G.shape[1]] = G, H
        by_episode = ring.transpose(1, 0, 2)
        self._ring[...] = by_episode.reshape(self.rows, -1)
        self._awake[...] = packed((G != 0) | (H != 0))
        self._stirred[...] = packed(by_episode != 0).reshape(self.rows, -1)
