"""Two memory layouts of the engine, each with its kernel, behind one small interface."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rapo.cascade import lanes_kernel, push_kernel
from rapo.cascade.kernel_arrays import FRAMES, MISS, PROB, SITE_SIZE, constants_of, sites_of
from rapo.cascade.lanes_kernel import RUN_LANES, SUMS
from rapo.cascade.phases import EPISODE_ROWS, INJECTING
from rapo.cascade.push_kernel import RUN_PUSH
from rapo_core.bits import packed, unpacked, word_count
from rapo_core.bundle import Bundle
from rapo_core.checks import UserError
from rapo_core.lanes import LANES

if TYPE_CHECKING:
    from rapo.cascade.engine import Cascade

Float = npt.NDArray[np.float32]
_MEASURED = 16_000
"""Largest graph, in nodes, on which the two backends were compared."""


def choose_backend(name: str, engine: Cascade) -> str:
    """Return `lanes` or `push`; for `auto` the backend that is expected to be faster.

    A block of lanes costs nearly the same for one episode as for 32, so it pays only with enough
    episodes. On a small graph the episodes of a block share most of the nodes that they reach, and
    fewer episodes are enough. This was measured up to `_MEASURED` nodes.
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


def _harm_index(engine: Cascade, region: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Index of each node's region among the harm regions; -1 for all other regions."""
    index = np.full(engine.region_count, -1, np.int64)
    index[engine.harm_regions] = np.arange(len(engine.harm_regions))
    return index[region]


def _thread_states(engine: Cascade, count: int) -> list[npt.NDArray[np.int64]]:
    """State of each thread, which runs a part of `count` rows or blocks; see `phases`."""
    bounds = [i * count // engine.threads for i in range(engine.threads + 1)]
    return [np.array([0, *pair, engine.episodes, 0], np.int64) for pair in pairwise(bounds)]


def _aligned(shape: tuple[int, ...], dtype: type) -> npt.NDArray[Any]:
    """Zeros that start on a cache line: lanes across two lines cost up to a fifth more."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def _reweight(bundles: list[Bundle], prob: Float, rates: Float) -> None:
    miss = np.ascontiguousarray(np.float32(1) - rates)
    for bundle in bundles:
        bundle.replace(PROB, prob)
        bundle.replace(MISS, miss)


class LanesBackend:
    """Blocks of 32 episodes with element (i, lane) of every table at 32 i + lane."""

    name = "lanes"

    def __init__(self, engine: Cascade, schedule: npt.NDArray[np.int64]) -> None:
        graph = engine.graph
        self.engine = engine
        self.blocks = -(-engine.episodes // LANES)
        self.rows = self.blocks * LANES
        self.episode = np.zeros((EPISODE_ROWS, self.rows), np.int64)
        self.keys = np.zeros((2, self.rows), np.uint64)
        self.own_harm = np.full(self.rows, -1, np.float32)
        harm_regions, delay = len(engine.harm_regions), engine.setting.delay
        nodes, regions = word_count(graph.n), word_count(harm_regions)
        self._active = np.zeros((self.blocks, graph.n), np.uint32)
        self._active_nodes = np.zeros((self.blocks, nodes), np.uint64)
        self._spent_lanes = np.zeros((self.blocks, graph.n), np.uint32)
        self._run = RUN_LANES[engine.setting.spread]
        self._m = _aligned((self.blocks, 2 * graph.n * LANES), np.float32)
        self._m[...] = 1
        self._injecting_lanes = np.zeros((self.blocks, graph.n), np.uint32)
        self._injected_nodes = np.zeros((self.blocks, nodes), np.uint64)
        self._fields = _aligned((2, self.blocks, harm_regions * LANES), np.float32)
        self._ring = _aligned((self.blocks, delay * harm_regions * LANES), np.float32)
        self._nonzero_regions = np.zeros((self.blocks, regions), np.uint64)
        self._hit_regions = np.zeros((self.blocks, delay * regions), np.uint64)
        self.constants = constants_of(engine.params, engine.setting.persistence)
        self.thread_states = _thread_states(engine, self.blocks)
        fixed = (
            graph.indptr, graph.indices, graph.prob,
            sites_of(graph), _harm_index(engine, engine.regions), graph.sensitive,
            packed(graph.sensitive), _harm_index(engine, engine.harm_region_of),
            packed(engine.gated_regions), self.constants,
            graph.support.astype(np.int64),
            np.ascontiguousarray(np.float32(1) - engine.rates), schedule,
        )  # fmt: skip
        state = (
            self._active, self._active_nodes, self._spent_lanes, self._m,
            self._injecting_lanes, self._injected_nodes,
            self._fields, self._ring, self._nonzero_regions, self._hit_regions,
            _aligned((self.blocks, (SITE_SIZE + SUMS + 1 + harm_regions) * LANES), np.float32),
            _aligned((self.blocks, 2 * LANES), np.uint32),
            np.zeros((self.blocks, nodes + regions), np.uint64),
        )  # fmt: skip
        self.visits = np.zeros((len(self.thread_states), graph.n), np.int64)
        self.ever = np.zeros((self.blocks, graph.n), np.uint32)
        self.frames = np.zeros((FRAMES, nodes), np.uint64)
        self._bundles = []
        for thread_state, visits in zip(self.thread_states, self.visits, strict=True):
            own = (self.episode, self.keys, thread_state, self.own_harm)
            arrays = (*fixed, *own, *state, visits, self.ever, self.frames)
            self._bundles.append(Bundle(lanes_kernel.KINDS, arrays))

    def reweight(self, prob: Float, rates: Float) -> None:
        """Take other edge probabilities and injection rates; the injection is written anew."""
        _reweight(self._bundles, prob, rates)
        self.episode[INJECTING] = 0
        self._m[...] = 1
        self._injecting_lanes[...] = self._injected_nodes[...] = 0

    def run(self, part: int, actions: npt.NDArray[np.int64], trace: Float) -> Any:
        """Run the blocks of one thread; -1 or the index of an action that is unknown."""
        return self._run(self._bundles[part].table, actions, trace)

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes, and forget which nodes were active."""
        kept = np.ones((self.rows, 1), np.bool_)
        kept[rows] = False
        self._active &= self._lane_bits(kept)
        self._spent_lanes &= self._lane_bits(kept)
        self._active_nodes[...] = packed(self._active > 0)

    def write_active(self, rows: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Set the active sets of some episodes, (rows, n) bool."""
        self.clear_active(rows)
        whole = np.zeros((self.rows, self.engine.graph.n), np.bool_)
        whole[rows] = active
        self._active |= self._lane_bits(whole)
        self._active_nodes[...] = packed(self._active > 0)

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields.reshape(2, self.blocks, -1, LANES)[:, rows // LANES, :, rows % LANES] = 0
        self._ring.reshape(self.blocks, -1, LANES)[rows // LANES, :, rows % LANES] = 0
        forgotten = np.zeros(self.engine.episodes, np.bool_)
        forgotten[rows] = True
        if forgotten.all():  # else the sets may hold more than they need to
            self._nonzero_regions[...] = self._hit_regions[...] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n) active sets."""
        return self._nodes(self._active)

    def read_spent(self) -> npt.NDArray[np.bool_]:
        """(E, n) nodes that were active in this phase and try no neighbours any more."""
        return self._nodes(self._spent_lanes)

    def read_ever(self) -> npt.NDArray[np.bool_]:
        """(E, n) nodes that were active in any recorded step."""
        return self._nodes(self.ever)

    def _nodes(self, table: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """(E, n) from a bit per lane, (B, n)."""
        octets = table.view(np.uint8).reshape(self.blocks, -1, 4)
        bits = np.unpackbits(octets, axis=-1, bitorder="little")
        nodes: npt.NDArray[np.bool_] = self._by_episode(bits.view(np.bool_))
        return nodes

    def read_field(self, which: int) -> Float:
        """(E, R) of G (0) or H (1)."""
        field: Float = self._by_episode(self._fields[which])
        return field

    def read_ring(self) -> Float:
        """(D, E, R) affected nodes, in the order of the ring."""
        harm_regions = len(self.engine.harm_regions)
        flat = self._by_episode(self._ring)
        return np.ascontiguousarray(flat.reshape(len(flat), -1, harm_regions).transpose(1, 0, 2))

    def write(self, active: Any, spent: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state; the next step writes the injection again."""
        self.write_active(np.arange(self.engine.episodes), active)
        whole = np.zeros((self.rows, self.engine.graph.n), np.bool_)
        whole[: self.engine.episodes] = spent
        self._spent_lanes[...] = self._lane_bits(whole)
        self._put(self._fields[0], G)
        self._put(self._fields[1], H)
        self._put(self._ring, ring.transpose(1, 0, 2).reshape(self.engine.episodes, -1))
        self._nonzero_regions[...] = packed(self._any_lane(self._fields[0] + self._fields[1]))
        used = self._any_lane(self._ring).reshape(self.blocks, -1, len(self.engine.harm_regions))
        self._hit_regions[...] = packed(used).reshape(self.blocks, -1)
        self._m[...] = 1
        self._injecting_lanes[...] = self._injected_nodes[...] = 0

    def _lane_bits(self, table: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        """(B, size) with a bit per lane, of truth values (rows, size)."""
        lanes = np.ascontiguousarray(table.reshape(self.blocks, LANES, -1).transpose(0, 2, 1))
        return np.packbits(lanes, axis=-1, bitorder="little").view(np.uint32)[..., 0]

    def _any_lane(self, table: Float) -> npt.NDArray[np.bool_]:
        """Whether an element is not 0 in any of the 32 lanes."""
        return np.asarray(table.reshape(len(table), -1, LANES).any(axis=-1))

    def _by_episode(self, table: Any) -> Any:
        lanes = table.reshape(self.blocks, -1, LANES).transpose(0, 2, 1)
        return lanes.reshape(self.rows, -1)[: self.engine.episodes].copy()

    def _put(self, table: Float, values: Any) -> None:
        padded = np.zeros((self.rows, values.shape[1]), np.float32)
        padded[: len(values)] = values
        table[...] = padded.reshape(self.blocks, LANES, -1).transpose(0, 2, 1).reshape(table.shape)


class PushBackend:
    """One row per episode, with active sets as bitmaps."""

    name = "push"

    def __init__(self, engine: Cascade, schedule: npt.NDArray[np.int64]) -> None:
        graph = engine.graph
        self.engine = engine
        self.rows = engine.episodes
        self.episode = np.zeros((EPISODE_ROWS, self.rows), np.int64)
        self.keys = np.zeros((2, self.rows), np.uint64)
        self.own_harm = np.full(self.rows, -1, np.float32)
        harm_regions, delay = len(engine.harm_regions), engine.setting.delay
        nodes, regions = word_count(graph.n), word_count(harm_regions)
        self._active = np.zeros((self.rows, nodes), np.uint64)
        self._spent_nodes = np.zeros((self.rows, nodes), np.uint64)
        self._run = RUN_PUSH[engine.setting.spread]
        self._fields = np.zeros((2, self.rows, regions * 64), np.float32)
        self._ring = np.zeros((self.rows, delay * harm_regions), np.float32)
        self._nonzero_regions = np.zeros((self.rows, regions), np.uint64)
        self._hit_regions = np.zeros((self.rows, delay * regions), np.uint64)
        self.constants = constants_of(engine.params, engine.setting.persistence)
        self.thread_states = _thread_states(engine, self.rows)
        fixed = (
            graph.indptr, graph.indices, graph.prob,
            sites_of(graph), _harm_index(engine, engine.regions), graph.sensitive,
            packed(graph.sensitive), _harm_index(engine, engine.harm_region_of),
            packed(engine.gated_regions), self.constants,
            graph.support, np.ascontiguousarray(np.float32(1) - engine.rates), schedule,
        )  # fmt: skip
        fields = (self._fields, self._ring, self._nonzero_regions, self._hit_regions)
        state = (self._active, self._spent_nodes, *fields)
        self.visits = np.zeros((len(self.thread_states), graph.n), np.int64)
        self.ever = np.zeros((self.rows, nodes), np.uint64)
        self.frames = np.zeros((FRAMES, nodes), np.uint64)
        self._bundles = []
        for thread_state, visits in zip(self.thread_states, self.visits, strict=True):
            reached_nodes = np.zeros(nodes, np.uint64)
            m, psi = np.ones(graph.n, np.float32), np.ones(regions * 64, np.float32)
            own = (self.episode, self.keys, thread_state, self.own_harm)
            recorded = (visits, self.ever, self.frames)
            arrays = (*fixed, *own, *state, reached_nodes, m, psi, *recorded)
            self._bundles.append(Bundle(push_kernel.KINDS, arrays))
        threads, ranked = len(self.thread_states), engine.scope.k > 0
        self._ranks = [np.zeros(graph.n, np.float32) if ranked else None for _ in range(threads)]

    def reweight(self, prob: Float, rates: Float) -> None:
        """Take other edge probabilities and injection rates."""
        _reweight(self._bundles, prob, rates)

    def run(self, part: int, actions: npt.NDArray[np.int64], trace: Float) -> Any:
        """Run the episodes of one thread; -1 or the index of an action that is unknown."""
        table, k = self._bundles[part].table, self.engine.scope.k
        return self._run(table, actions, trace, k, self._ranks[part])

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes, and forget which nodes were active."""
        self._active[rows] = self._spent_nodes[rows] = 0

    def write_active(self, rows: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Set the active sets of some episodes, (rows, n) bool."""
        self._active[rows] = packed(active)
        self._spent_nodes[rows] = 0

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields[:, rows] = 0
        self._ring[rows] = 0
        self._nonzero_regions[rows] = self._hit_regions[rows] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n) active sets."""
        return unpacked(self._active, self.engine.graph.n)

    def read_spent(self) -> npt.NDArray[np.bool_]:
        """(E, n) nodes that were active in this phase and try no neighbours any more."""
        return unpacked(self._spent_nodes, self.engine.graph.n)

    def read_ever(self) -> npt.NDArray[np.bool_]:
        """(E, n) nodes that were active in any recorded step."""
        return unpacked(self.ever, self.engine.graph.n)

    def read_field(self, which: int) -> Float:
        """(E, R) of G (0) or H (1)."""
        return np.array(self._fields[which, :, : len(self.engine.harm_regions)])

    def read_ring(self) -> Float:
        """(D, E, R) affected nodes, in the order of the ring."""
        harm_regions = len(self.engine.harm_regions)
        return np.ascontiguousarray(
            self._ring.reshape(self.rows, -1, harm_regions).transpose(1, 0, 2)
        )

    def write(self, active: Any, spent: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state."""
        self._active[...] = packed(active)
        self._spent_nodes[...] = packed(spent)
        self._fields[:, :, : G.shape[1]] = G, H
        by_episode = ring.transpose(1, 0, 2)
        self._ring[...] = by_episode.reshape(self.rows, -1)
        self._nonzero_regions[...] = packed((G != 0) | (H != 0))
        self._hit_regions[...] = packed(by_episode != 0).reshape(self.rows, -1)
