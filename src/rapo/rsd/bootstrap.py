"""The percentile bootstrap, seeded: one generator threaded through, never the global one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.rsd.statistics import check_level, defined, pairs, std_of

BLOCK = 2**21
"""Most values drawn at once by the bootstrap, to bound its memory (about 32 MB)."""


@dataclass(frozen=True)
class Bootstrap:
    """A statistic, the std of its resamples and their percentile interval."""

    estimate: float
    error: float
    low: float
    high: float
    n: int
    undefined: int


def bootstrap_interval(
    values: npt.ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    level: float = 0.95,
    resamples: int = 10_000,
    *,
    rng: int | np.random.Generator,
) -> Bootstrap:
    """Percentile bootstrap of a statistic.

    Args:
        values: (n,).
        statistic: reduces (..., n) to (...) and takes `axis`, as np.mean and np.median do.
        level: of the interval, in (0, 1).
        resamples: how many samples of n are drawn with replacement.
        rng: a seed, or a Generator, which advances: its next call draws anew.

    >>> bootstrap_interval([1, 2, 4], rng=0) == bootstrap_interval([1, 2, 4], rng=0)
    True
    """
    check_level(level)
    generator = _generator(rng)
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples!r}")
    kept, undefined = defined(values)
    n = kept.size
    estimate = float(statistic(kept, axis=-1)) if n else np.nan
    if n < 2:
        return Bootstrap(estimate, np.nan, np.nan, np.nan, n, undefined)

    rows = max(BLOCK // n, 1)
    blocks = []
    for start in range(0, resamples, rows):
        drawn = generator.integers(n, size=(min(rows, resamples - start), n))
        block = np.asarray(statistic(kept[drawn], axis=-1), float)
        if block.shape != drawn.shape[:1]:
            raise ValueError(
                f"statistic must reduce {drawn.shape} to {drawn.shape[:1]} over axis=-1, "
                f"got shape {block.shape}"
            )
        blocks.append(block)
    resampled = np.concatenate(blocks)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Bootstrap(estimate, std_of(resampled), float(low), float(high), n, undefined)


def paired_bootstrap(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    level: float = 0.95,
    resamples: int = 10_000,
    *,
    rng: int | np.random.Generator,
) -> Bootstrap:
    """Percentile bootstrap of a statistic of the pair differences a - b; whole pairs are drawn.

    Args:
        a: values of one method, (n,).
        b: values of the other on the same units, (n,). Two Series must have the same index.
        statistic: this and the rest as in `bootstrap_interval`.
        level: of the interval, in (0, 1).
        resamples: how many samples of n pairs.
        rng: a seed or a Generator.
    """
    x, y, undefined = pairs(a, b)
    result = bootstrap_interval(x - y, statistic, level, resamples, rng=rng)
    return replace(result, undefined=undefined)


def _generator(rng: object) -> np.random.Generator:
    """One generator from a seed or itself; None, which would draw anew each time, is refused."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise ValueError(f"rng must be a seed (int >= 0) or a numpy.random.Generator, got {rng!r}")
