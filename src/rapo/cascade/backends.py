"""The two memory layouts of the engine, each with its kernel, behind one small interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.lanes_kernel import SUMS, run_lanes
from rapo.cascade.push_kernel import run_push
from rapo.core.fields import HARM_PER_NODE
from rapo.core.lanes import LANES

if TYPE_CHECKING:
    from rapo.cascade.engine import Cascade

Float = npt.NDArray[np.float32]


def choose_backend(name: str, engine: Cascade) -> str:
    """`lanes` or `push`; `auto` takes the one that is expected to be faster.

    A block of lanes costs about 20 ns a node; push costs about 400 ns an episode and 50 ns more for
    every active node (measured on generated graphs).
    """
    if name not in ("auto", "lanes", "push"):
        raise ValueError(f"backend must be auto, lanes or push, got {name!r}")
    if engine.scope.kind == "topk":  # ranking an episode's destinations needs all of them at once
        if name == "lanes":
            raise ValueError(f"deformation {engine.scope} runs on backend push only, got {name!r}")
        return "push"
    if name == "auto":
        lanes = -(-engine.episodes // LANES) * engine.graph.n * 20
        push = engine.episodes * (400 + 50 * min(engine.setting.cascade_target, engine.graph.n))
        return "lanes" if lanes < push else "push"
    return name


def _law(engine: Cascade) -> Float:
    """The constants of the step as the kernels index them: (10,) float32."""
    p = engine.params
    values = (
        engine.setting.persistence, 1 - p.lam, p.alpha, p.delta, p.eta, p.tau, p.w_G, p.w_H,
        p.psi_min, HARM_PER_NODE,
    )  # fmt: skip
    return np.array(values, np.float32)


def _live_index(engine: Cascade, region: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Index into the live regions for each node's region, -1 for the others."""
    index = np.full(engine.region_count, -1, np.int64)
    index[engine.live] = np.arange(len(engine.live))
    return index[region]


def _centred(engine: Cascade) -> tuple[Float, Float]:
    """Positions minus 0.5: small numbers keep the variance's cancellation harmless."""
    x, y = (engine.graph.positions - np.float32(0.5)).T
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def _aligned(shape: tuple[int, ...], dtype: type) -> npt.NDArray[Any]:
    """Zeros that start on a cache line: lanes that straddle two cost up to a fifth more."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


class LanesBackend:
    """Blocks of 32 episodes, element (i, lane) of every table at 32 i + lane."""

    name = "lanes"

    def __init__(self, engine: Cascade) -> None:
        graph = engine.graph
        self.engine = engine
        self.blocks = -(-engine.episodes // LANES)
        self.rows = self.blocks * LANES
        live, delay = len(engine.live), engine.setting.delay
        seeded = np.unique(graph.support)
        seed_row = np.full(graph.n, -1, np.int64)
        seed_row[seeded] = np.arange(len(seeded))
        members = np.flatnonzero(graph.sensitive)
        self._net: Any = (
            (*graph.incoming, *_centred(engine), _live_index(engine, engine.regions), seed_row,
             graph.sensitive),
            (members, _live_index(engine, engine.credit)[members]),
            (seed_row[graph.support], np.float32(1) - engine.rates),
            engine.designated,
            _law(engine),
        )  # fmt: skip
        self._parity = 0
        self._active = _aligned((2, self.blocks, graph.n * LANES), np.float32)
        self._bits = np.zeros((2, self.blocks, graph.n), np.uint32)
        self._miss = _aligned((self.blocks, len(seeded) * LANES), np.float32)
        self._miss[...] = 1
        self._fields = _aligned((2, self.blocks, live * LANES), np.float32)
        self._ring = _aligned((self.blocks, delay * live * LANES), np.float32)
        self._scratch = (
            _aligned((self.blocks, (2 * live + SUMS + 1) * LANES), np.float32),
            _aligned((self.blocks, 2 * LANES), np.uint32),
        )

    def run(
        self, part: int, parts: int, steps: int, slot: int, schedule: Any, episode: Any, keys: Any,
        actions: Any, trace: Any,
    ) -> None:  # fmt: skip
        """Run part `part` of `parts` of the blocks."""
        bounds = (part * self.blocks // parts, (part + 1) * self.blocks // parts)
        run_lanes(
            bounds, steps, self._parity, slot, *self._net, schedule, episode, keys, actions,
            self._active, self._bits, self._miss, self._fields, self._ring, self._scratch, trace,
        )  # fmt: skip

    def finish(self, steps: int) -> None:
        """Note that all parts have run `steps` steps."""
        self._parity = (self._parity + steps) & 1

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes."""
        self.write_active(rows, False)

    def write_active(self, rows: npt.NDArray[np.int64], active: Any) -> None:
        """Set the active sets of some episodes: (rows, n) bool, or one value for all."""
        now = self._active[self._parity].reshape(self.blocks, -1, LANES)
        now[rows // LANES, :, rows % LANES] = active
        self._note_bits()

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields.reshape(2, self.blocks, -1, LANES)[:, rows // LANES, :, rows % LANES] = 0
        self._ring.reshape(self.blocks, -1, LANES)[rows // LANES, :, rows % LANES] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        return self._by_episode(self._active[self._parity]) > 0

    def read_field(self, which: int) -> Float:
        """(E, R_live) of G (0) or H (1)."""
        return self._by_episode(self._fields[which])

    def read_ring(self) -> Float:
        """(D, E, R_live) in ring order."""
        live = len(self.engine.live)
        flat = self._by_episode(self._ring)
        return np.ascontiguousarray(flat.reshape(len(flat), -1, live).transpose(1, 0, 2))

    def write(self, active: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state; the injection is laid out anew at the next step."""
        self._put(self._active[self._parity], active)
        self._note_bits()
        self._put(self._fields[0], G)
        self._put(self._fields[1], H)
        self._put(self._ring, ring.transpose(1, 0, 2).reshape(self.engine.episodes, -1))
        self._miss[...] = 1

    def _note_bits(self) -> None:
        now = self._active[self._parity].reshape(self.blocks, -1, LANES) > 0
        packed = np.packbits(now, axis=-1, bitorder="little")
        self._bits[self._parity] = packed.view(np.uint32)[..., 0]

    def _by_episode(self, table: Float) -> Float:
        lanes = table.reshape(self.blocks, -1, LANES).transpose(0, 2, 1)
        return lanes.reshape(self.rows, -1)[: self.engine.episodes].copy()

    def _put(self, table: Float, values: Any) -> None:
        padded = np.zeros((self.rows, values.shape[1]), np.float32)
        padded[: len(values)] = values
        table[...] = padded.reshape(self.blocks, LANES, -1).transpose(0, 2, 1).reshape(table.shape)


class PushBackend:
    """One row per episode, active sets as bitmaps."""

    name = "push"

    def __init__(self, engine: Cascade) -> None:
        graph = engine.graph
        self.engine = engine
        self.rows = engine.episodes
        self.words = -(-graph.n // 64)
        live, delay = len(engine.live), engine.setting.delay
        credit_of = np.where(graph.sensitive, _live_index(engine, engine.credit), -1)
        self._net: Any = (
            (graph.indptr, graph.indices, graph.prob),
            (*_centred(engine), _live_index(engine, engine.regions), graph.sensitive),
            credit_of,
            (graph.support, np.float32(1) - engine.rates),
            engine.designated,
            _law(engine),
        )
        self._active = np.zeros((self.rows, self.words), np.uint64)
        self._fields = np.zeros((2, self.rows, live), np.float32)
        self._ring = np.zeros((self.rows, delay * live), np.float32)
        self._touched = [np.zeros((2, self.words), np.uint64) for _ in range(engine.threads)]
        self._scratch = [
            (
                np.ones(graph.n, np.float32),
                np.zeros(live, np.float32),
                np.zeros(live, np.float32),
                np.zeros(graph.n, np.float32) if engine.scope.k > 0 else None,
            )
            for _ in range(engine.threads)
        ]

    def run(
        self, part: int, parts: int, steps: int, slot: int, schedule: Any, episode: Any, keys: Any,
        actions: Any, trace: Any,
    ) -> None:  # fmt: skip
        """Run part `part` of `parts` of the episodes."""
        bounds = (part * self.rows // parts, (part + 1) * self.rows // parts)
        run_push(
            bounds, steps, self.engine.scope.k, slot, *self._net, schedule, episode, keys, actions,
            self._active, self._fields, self._ring, self._touched[part], self._scratch[part], trace,
        )  # fmt: skip

    def finish(self, steps: int) -> None:
        """Nothing to note: the active set stays where it is."""

    def clear_active(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the active set of some episodes."""
        self._active[rows] = 0

    def write_active(self, rows: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Set the active sets of some episodes, (rows, n) bool."""
        self._active[rows] = self._packed(active)

    def clear_memory(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget fields and delay buffer of some episodes."""
        self._fields[:, rows] = 0
        self._ring[rows] = 0

    def read_active(self) -> npt.NDArray[np.bool_]:
        """(E, n)."""
        bits = np.unpackbits(self._active.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self.engine.graph.n].astype(np.bool_)

    def read_field(self, which: int) -> Float:
        """(E, R_live) of G (0) or H (1)."""
        return np.array(self._fields[which])

    def read_ring(self) -> Float:
        """(D, E, R_live) in ring order."""
        live = len(self.engine.live)
        return np.ascontiguousarray(self._ring.reshape(self.rows, -1, live).transpose(1, 0, 2))

    def write(self, active: Any, G: Any, H: Any, ring: Any) -> None:
        """Take over a state."""
        self._active[...] = self._packed(active)
        self._fields[0], self._fields[1] = G, H
        self._ring[...] = ring.transpose(1, 0, 2).reshape(self.rows, -1)

    def _packed(self, active: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
        """(rows, words) bitmaps of (rows, n) active sets."""
        padded = np.zeros((len(active), self.words * 64), np.uint8)
        padded[:, : active.shape[1]] = active
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
