"""Interleaved timing: every contestant runs once a round, so a slow moment hits all of them.

Two numbers come out. The *best time* of a contestant over the rounds is its undisturbed cost; the
*ratio* of two is the median over rounds of their quotient, which noise that lasts longer than a
round cannot move.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BLOCK_SECONDS = 0.04
"""Time of one contestant in one round: long against the clock, short against drifts in speed."""
_SINGLE = 1.3
"""Processor time over elapsed time above which a block has used more than one thread."""


@dataclass(frozen=True)
class Contestant:
    """Something to be timed. `run(repeats)` does `repeats * units` units of work."""

    name: str
    run: Callable[[int], object]
    units: float = 1.0
    prepare: Callable[[], object] | None = None
    """Called before each block, outside the clock (a reset, for example)."""
    most: int | None = None
    """Largest number of repeats of a block (the length of an episode, for example)."""


@dataclass(frozen=True)
class Timings:
    """Nanoseconds per unit: one number per contestant and round."""

    ns: dict[str, list[float]]
    threads: dict[str, float]
    """Processor time over elapsed time: about 1 on one thread."""

    def best(self, name: str) -> float:
        """Nanoseconds per unit in the best round."""
        return min(self.ns[name])

    def ratio(self, slow: str, fast: str) -> float:
        """How many times longer `slow` takes than `fast`: median over rounds."""
        return statistics.median(s / f for s, f in zip(self.ns[slow], self.ns[fast], strict=True))

    def fastest(self, names: Sequence[str]) -> str:
        """The contestant with the best time."""
        return min(names, key=self.best)

    def threaded(self) -> list[str]:
        """Contestants that have used more than one thread: their times must not be compared."""
        return [name for name, share in self.threads.items() if share > _SINGLE]


def interleave(
    contestants: Sequence[Contestant],
    rounds: int,
    progress: Callable[[str], object] = lambda text: None,
) -> Timings:
    """Time the contestants in turn, `rounds` times, after a warm-up that also sets block sizes.

    Args:
        contestants: with distinct names.
        rounds: >= 1.
        progress: told what is being timed.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be >= 1, got {rounds}")
    names = [c.name for c in contestants]
    if len(set(names)) < len(names):
        raise ValueError(f"contestants must have distinct names, got {names}")
    repeats = {}
    for c in contestants:
        progress(f"warming up {c.name}")
        repeats[c.name] = _block_size(c)
    ns: dict[str, list[float]] = {name: [] for name in names}
    share: dict[str, list[float]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(rounds):
            progress(f"round {i + 1} of {rounds}")
            for k in range(len(contestants)):
                c = contestants[(i + k) % len(contestants)]  # no one always follows the same one
                elapsed, busy = _block(c, repeats[c.name])
                ns[c.name].append(1e9 * elapsed / (repeats[c.name] * c.units))
                share[c.name].append(busy / elapsed)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return Timings(ns, {name: statistics.median(values) for name, values in share.items()})


def _block(c: Contestant, repeats: int) -> tuple[float, float]:
    """Elapsed and processor seconds of one block."""
    if c.prepare is not None:
        c.prepare()
    busy, start = time.process_time(), time.perf_counter()
    c.run(repeats)
    return time.perf_counter() - start, time.process_time() - busy


def _block_size(c: Contestant) -> int:
    """Repeats that fill a block; the first call, which may compile, is not counted."""
    _block(c, 1)
    repeats = 1
    while True:
        elapsed, _ = _block(c, repeats)
        if c.most is not None and repeats >= c.most:
            return c.most
        if elapsed >= BLOCK_SECONDS / 4:
            fitting = max(1, round(repeats * BLOCK_SECONDS / elapsed))
            return fitting if c.most is None else min(fitting, c.most)
        repeats = 4 * repeats if c.most is None else min(4 * repeats, c.most)
