"""Statistics of the paper's tables as pure functions: arrays in, small frozen results out.

The graph seed is the unit: reduce episodes with `by_unit` before a test. NaN (an undefined
episode) is left out and counted in `undefined`, never read as 0; a pair is left out if either side
is. `n` counts what remains; where that is too few the result is NaN.
Spread within rounding counts as none: a test on it has no scale, so its t and p are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special, stats

from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]

ROUNDING = 16 * float(np.finfo(float).eps)
"""Relative to the largest value: a range below it is rounding, not spread."""


@dataclass(frozen=True)
class MeanInterval:
    """Mean of n values with its t interval; `std` has ddof 1."""

    mean: float
    std: float
    low: float
    high: float
    n: int
    undefined: int


@dataclass(frozen=True)
class Welch:
    """Difference of means a - b with unequal variances; `p` is two-sided."""

    difference: float
    t: float
    dof: float
    p: float
    low: float
    high: float
    n_a: int
    n_b: int
    undefined_a: int
    undefined_b: int


@dataclass(frozen=True)
class Paired:
    """Mean of the pair differences a - b; `std` has ddof 1, `p` is two-sided."""

    difference: float
    std: float
    t: float
    dof: float
    p: float
    low: float
    high: float
    n: int
    undefined: int


@dataclass(frozen=True)
class Correlation:
    """Correlation of n pairs, its two-sided p and Fisher interval."""

    r: float
    p: float
    low: float
    high: float
    n: int
    undefined: int


def interval_name(level: float) -> str:
    """How a summary calls an interval of a level, such as `ci95`.

    >>> interval_name(0.95), interval_name(0.995)
    ('ci95', 'ci99.5')
    """
    check_level(level)
    return f"ci{100 * level:g}"


def mean_interval(
    values: npt.ArrayLike, level: float = 0.95, *, least: float = -np.inf
) -> MeanInterval:
    """Mean and t interval of values, (n,); one value has a mean and no interval.

    Args:
        values: NaN is left out.
        level: of the interval, in (0, 1).
        least: the smallest value that there can be, below which no interval reaches.

    >>> mean_interval([1.0, 2.0, 3.0, float("nan")]).undefined
    1
    """
    check_level(level)
    kept, undefined = defined(values)
    std = std_of(kept)
    _, _, low, high = _t_test(_mean(kept), std / np.sqrt(max(kept.size, 1)), kept.size - 1, level)
    return MeanInterval(_mean(kept), std, max(low, least), high, kept.size, undefined)


def welch(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Welch:
    """Welch's t test of mean(a) - mean(b), with its interval.

    Written on the t law, not `scipy.stats.ttest_ind`, which warns on a constant side: coupled runs
    have those. With no spread on either side t, dof and p are NaN and the interval has no width.

    Args:
        a: values of one method, (n_a,), at least two defined.
        b: values of the other, (n_b,), at least two defined.
        level: of the interval, in (0, 1).
    """
    check_level(level)
    (x, undefined_a), (y, undefined_b) = defined(a), defined(b)
    difference, error, dof = _mean(x) - _mean(y), np.nan, np.nan
    if min(x.size, y.size) >= 2:
        part_x, part_y = std_of(x) / np.sqrt(x.size), std_of(y) / np.sqrt(y.size)
        error = float(np.hypot(part_x, part_y))
        if error > 0:
            share_x, share_y = (part_x / error) ** 2, (part_y / error) ** 2
            dof = 1 / (share_x**2 / (x.size - 1) + share_y**2 / (y.size - 1))
    t, p, low, high = _t_test(difference, error, dof, level)
    return Welch(difference, t, float(dof), p, low, high, x.size, y.size, undefined_a, undefined_b)


def paired_interval(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Paired:
    """Interval and t test of the mean pair difference a - b, for runs that share graphs and draws.

    Args:
        a: values of one method, (n,).
        b: values of the other on the same units, (n,). Two Series must have the same index.
        level: of the interval, in (0, 1).
    """
    check_level(level)
    x, y, undefined = pairs(a, b)
    kept = x - y
    std = std_of(kept, scale=_size(x, y))
    dof = kept.size - 1 if std > 0 else np.nan
    t, p, low, high = _t_test(_mean(kept), std / np.sqrt(max(kept.size, 1)), dof, level)
    return Paired(_mean(kept), std, t, float(dof), p, low, high, kept.size, undefined)


def holm(p_values: npt.ArrayLike) -> Float:
    """Holm's step-down adjusted p-values in the order given, (m,) to (m,).

    NaN stays NaN and is no member of the family: a test that could not be made rejects nothing.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _vector(p_values)
    if np.any((p < 0) | (p > 1)):
        raise UserError(f"p-values must be in [0, 1], got {p[(p < 0) | (p > 1)].tolist()}")
    adjusted = np.full(p.shape, np.nan)
    members = np.flatnonzero(~np.isnan(p))
    order = members[np.argsort(p[members], kind="stable")]
    scaled = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


def cohen_d(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Difference of means a - b over the pooled std; a is (n_a,), b is (n_b,).

    NaN below two values a side, or with no spread on either.
    """
    (x, _), (y, _) = defined(a), defined(b)
    if min(x.size, y.size) < 2:
        return np.nan
    squares = (x.size - 1) * std_of(x) ** 2 + (y.size - 1) * std_of(y) ** 2
    pooled = np.sqrt(squares / (x.size + y.size - 2))
    return float((_mean(x) - _mean(y)) / pooled) if pooled > 0 else np.nan


def hedges_g(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """`cohen_d` with its exact small-sample correction; a is (n_a,), b is (n_b,)."""
    d = cohen_d(a, b)
    if np.isnan(d):
        return d
    half = (defined(a)[0].size + defined(b)[0].size - 2) / 2
    return float(d * np.exp(special.gammaln(half) - special.gammaln(half - 0.5)) / np.sqrt(half))


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    kind: Literal["pearson", "spearman"] = "pearson",
    level: float = 0.95,
) -> Correlation:
    """Correlation with its p and Fisher interval.

    Below three pairs, or where a side is constant, all is NaN; the interval needs four. Ranks are
    more variable than values: the Spearman interval takes Bonett and Wright's (2000) variance.

    Args:
        x: (n,).
        y: (n,), paired with x. Two Series must have the same index.
        kind: "pearson" or "spearman".
        level: of the interval, in (0, 1).
    """
    check_level(level)
    if kind not in ("pearson", "spearman"):
        raise UserError(f'kind must be "pearson" or "spearman", got {kind!r}')
    first, second, undefined = pairs(x, y)
    n = first.size
    if n < 3 or std_of(first) == 0 or std_of(second) == 0:
        return Correlation(np.nan, np.nan, np.nan, np.nan, n, undefined)
    pearson = kind == "pearson"
    result: Any = stats.pearsonr(first, second) if pearson else stats.spearmanr(first, second)
    r, low, high = float(result.statistic), np.nan, np.nan
    if n > 3:
        spread = 1.0 if pearson else 1 + r**2 / 2
        half = stats.norm.ppf((1 + level) / 2) * np.sqrt(spread / (n - 3))
        with np.errstate(divide="ignore"):  # r of exactly 1 lies at infinity and comes back as 1
            low, high = np.tanh(np.arctanh(r) + np.array([-half, half]))
    return Correlation(r, float(result.pvalue), float(low), float(high), n, undefined)


def by_unit(frame: pd.DataFrame, metric: str, unit: str = "graph_seed") -> pd.Series[float]:
    """Mean of a metric in each unit, indexed by unit, sorted: the values tests are made on.

    A unit whose episodes are all undefined stays, as NaN, so that tests count it.

    Args:
        frame: one row per episode of one method, with the columns `metric` and `unit`.
        metric: the column to average, NaN left out.
        unit: the column to group by.
    """
    for column in (metric, unit):
        if column not in frame.columns:
            raise UserError(f"no column {column!r} in the frame, which has {list(frame.columns)}")
    if frame[unit].isna().any():
        raise UserError(f"{int(frame[unit].isna().sum())} rows have no {unit!r}: name their unit")
    values = pd.Series(_vector(frame[metric]), index=frame.index, name=metric)
    return values.groupby(frame[unit]).mean()


def tests_against(
    samples: Mapping[str, npt.ArrayLike],
    control: str,
    level: float = 0.95,  # noqa: PT028 (not a pytest function)
) -> pd.DataFrame:
    """Welch's test of every method against a control, Holm over the methods.

    Args:
        samples: by method, the values of its units, (n,) each: see `by_unit`.
        control: the method the others are compared with; it has no row of its own.
        level: of each method's interval, in (0, 1); only the p-values are adjusted.

    Returns:
        A row per method in the order given: the fields of `Welch` (a is the method, b the control),
        then `p_holm` and the effect size `hedges_g`.
    """
    check_level(level)
    if control not in samples:
        raise UserError(f"no control {control!r} among the methods {list(samples)}")
    methods = [name for name in samples if name != control]
    table = pd.DataFrame(
        [asdict(welch(samples[name], samples[control], level)) for name in methods],
        index=pd.Index(methods, name="method"),
        columns=[field.name for field in fields(Welch)],
    )
    table["p_holm"] = holm(table["p"])
    table["hedges_g"] = [hedges_g(samples[name], samples[control]) for name in methods]
    return table


tests_against.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def check_level(level: float) -> None:
    """Refuse what is no confidence level."""
    if not 0 < level < 1:
        raise UserError(f"level must be in (0, 1), such as 0.95, got {level!r}")


def _vector(values: npt.ArrayLike) -> Float:
    """Values as floats, (n,), NaN kept."""
    vector = np.asarray(values, float)
    if vector.ndim != 1:
        raise UserError(f"values must have shape (n,), got {vector.shape}: a frame needs by_unit")
    if np.any(np.isinf(vector)):
        raise UserError(f"values must be finite or NaN, got {vector[np.isinf(vector)].tolist()}")
    return vector


def defined(values: npt.ArrayLike) -> tuple[Float, int]:
    """The values that are not NaN, (n,), and how many are."""
    vector = _vector(values)
    kept = vector[~np.isnan(vector)]
    return kept, vector.size - kept.size


def pairs(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Float, Float, int]:
    """Both sides of the defined pairs, (n,) each, and how many pairs are undefined."""
    if isinstance(a, pd.Series) and isinstance(b, pd.Series) and not a.index.equals(b.index):
        raise UserError(
            "paired Series must have the same units in the same order, got "
            f"{a.index.tolist()} and {b.index.tolist()}; pass arrays to pair by position"
        )
    x, y = _vector(a), _vector(b)
    if x.shape != y.shape:
        raise UserError(f"pairs need sides of one length, got {x.shape} and {y.shape}")
    kept = ~(np.isnan(x) | np.isnan(y))
    return x[kept], y[kept], x.size - int(kept.sum())


def _size(*arrays: Float) -> float:
    return max(float(np.max(np.abs(array), initial=0)) for array in arrays)


def _mean(values: Float) -> float:
    return float(values.mean()) if values.size else np.nan


def std_of(values: Float, scale: float | None = None) -> float:
    """Std (ddof 1) of values (n,): NaN below two, 0 where they differ by rounding of `scale`."""
    if values.size < 2:
        return np.nan
    scale = _size(values) if scale is None else scale
    return float(values.std(ddof=1)) if np.ptp(values) > ROUNDING * scale else 0.0


def _t_test(
    mean: float, error: float, dof: float, level: float
) -> tuple[float, float, float, float]:
    """(t, two-sided p, low, high) of a mean with a standard error; error 0 has no t and no p."""
    error = float(error)
    if error == 0 or np.isnan(error):
        return np.nan, np.nan, mean + error, mean + error
    t = mean / error
    half = float(stats.t.ppf((1 + level) / 2, dof)) * error
    return t, 2 * float(stats.t.sf(abs(t), dof)), mean - half, mean + half
