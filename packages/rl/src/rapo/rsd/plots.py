"""Figures of RSD results; every function returns `(fig, ax)` and leaves pyplot alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import DECAY, EXPOSURE, PHASES, REPLAY
from rapo.envs.render import ACTIVE, QUIET, SCAR, draw_graph, node_size
from rapo.rsd.result import RSDResult
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]
Results = RSDResult | Mapping[str, RSDResult]

# Okabe-Ito, dark enough for lines; dashes and widths show both of two curves that coincide, as the
# coupled Replays of two policies may.
COLOURS = ("#0072B2", "#D55E00", "#CC79A7", "#009E73", "#4D4D4D", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (4, 3)), (0, (1.2, 2.2)), (0, (7, 3, 1.5, 3)))
WIDTHS = (2.4, 2.0, 2.2, 1.6)
_MOMENTS = (0.02, 0.1, 0.4, 1.0)
"""Shares of Exposure and of Replay that `plot_cascade` shows unless told."""
_COLUMNS = 4
_NAMES = tuple("washout" if phase == DECAY else name for phase, name in enumerate(PHASES))


def plot_reach(results: Results, *, smooth: int = 1) -> tuple[Any, Any]:
    """Reach over the three phases: mean over episodes and the band of their middle half.

    Args:
        results: one result, or several by name with the same phases.
        smooth: steps of a moving mean within each phase; 1 shows the steps as they are.

    Raises:
        ValueError: the phases differ, or no result reports reach.
    """
    named = _named(results)
    nodes = all(result.graph is not None for result in named.values())
    label = "active nodes $|A_t|$" if nodes else "reach"
    return _over_phases(named, "reach", "Reach", label, smooth)


def plot_scar_mass(results: Results, *, smooth: int = 1) -> tuple[Any, Any]:
    """Scar mass over the three phases, drawn as in `plot_reach`.

    Args:
        results: one result, or several by name with the same phases.
        smooth: steps of a moving mean within each phase; 1 shows the steps as they are.

    Raises:
        ValueError: the phases differ, or no result reports a scar mass.
    """
    return _over_phases(_named(results), "scar_mass", "Scar mass", "scar mass (sum of $H$)", smooth)


def plot_odds_ratio(results: Results) -> tuple[Any, Any]:
    """OddsRatio(t) in Replay: mean over episodes +- 1 sd; undefined steps are left out.

    Args:
        results: one result, or several by name with the same phases.

    Raises:
        ValueError: the phases differ, or no result reports an odds ratio in Replay.
    """
    named = _named(results)
    replay = {name: result.of_phase("odds_ratio", REPLAY) for name, result in named.items()}
    _refuse_empty("odds_ratio in Replay", replay)
    figure, ax = _axes()
    for number, (name, values) in enumerate(replay.items()):
        mean, std = _moments(values)
        _curve(ax, number, name, mean, mean - std, mean + std)
    ax.axhline(1, color="#777777", lw=0.9, zorder=1)
    top = max(ax.get_ylim()[1], 1.1)
    ax.set(xlim=(0, len(mean)), ylim=(0, top))
    ax.set(xlabel="step of Replay", ylabel="OddsRatio(t)")
    title = "Odds of harmful entry in Replay, deformed over nominal\n"
    ax.set_title(title, loc="left", fontsize=12)
    _subtitle(ax, "mean over episodes ± 1 sd; at 1 (grey line) nothing is suppressed")
    _legend(figure, ax, named)
    return figure, ax


def plot_cascade(result: RSDResult, steps: Iterable[int] | None = None) -> tuple[Any, Any]:
    """The graph with its active nodes at chosen times of the first episode.

    Args:
        result: one result with `cascade` and `graph`.
        steps: positions in the schedule, 0 is Exposure's first step and -1 Replay's last; by
            default the same four moments of Exposure (above) and of Replay (below).

    Returns:
        The figure and a 2-D array of axes, unused ones hidden.

    Raises:
        ValueError: the environment has no graph, or a step lies outside the schedule.
    """
    if result.graph is None or result.cascade is None:
        raise UserError(
            "the result has no graph and cascade to draw: its environment is not a graph; "
            "plot_reach works on every environment"
        )
    graph, cascade, total = result.graph, result.cascade, len(result.phase)
    chosen = _default_steps(result.phase) if steps is None else [int(step) for step in steps]
    outside = [step for step in chosen if not -total <= step < total]
    if outside or not chosen:
        raise UserError(f"steps must be some of 0..{total - 1}, got {outside or chosen}")
    columns = min(_COLUMNS, len(chosen)) if steps is not None else len(chosen) // 2
    rows = -(-len(chosen) // columns)
    figure = _figure(max(2.4 * columns, 4.8), 2.75 * rows + 0.75)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.set_axis_off()
    faces = np.array([QUIET, ACTIVE])
    for ax, step in zip(axes.flat, chosen, strict=False):
        active = cascade[step]
        nodes = draw_graph(ax, graph)
        handles = ax.get_legend().legend_handles[:2]  # active, sensitive: scars are not recorded
        ax.get_legend().remove()
        ax.set(ylim=(-0.02, 1.02))
        nodes.set_sizes(np.where(active, 0.85, 0.3) * node_size(graph.n))
        nodes.set_linewidths(np.where(graph.sensitive, 0.9, 0.25))
        nodes.set_facecolors(faces[active.astype(int)].tolist())
        phase = result.phase[step]
        clock = int((result.phase[: step % total + 1] == phase).sum())
        inside = int((active & graph.sensitive).sum())
        ax.set_title(
            f"{_NAMES[phase]}, step {clock} of {int((result.phase == phase).sum())}\n"
            f"active {int(active.sum())}, sensitive {inside}",
            fontsize=9, linespacing=1.3,
        )  # fmt: skip
    figure.suptitle("The cascade of the first episode", x=0.01, ha="left", fontsize=12)
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure, axes


def plot_scars(result: RSDResult) -> tuple[Any, Any]:
    """Histogram of the scars that regions carry at the end of Replay, per episode.

    Regions without a scar are most of them: they are counted in words, not in a bar.

    Raises:
        ValueError: the environment does not tell its scars.
    """
    if result.scars is None or not np.isfinite(result.scars).any():
        raise UserError("the result has no scars: its environment does not tell them")
    scars = result.scars[np.isfinite(result.scars)].astype(float)
    episodes, carried = len(result.scars), scars[scars > 0]
    figure, ax = _axes(height=3.4)
    if carried.size:
        weights = np.full(carried.size, 1 / episodes)
        ax.hist(
            carried, bins=min(40, max(10, int(np.sqrt(carried.size)))), weights=weights,
            range=(0, float(carried.max())), color=SCAR, alpha=0.8, edgecolor="white", lw=0.6,
        )  # fmt: skip
    else:
        ax.text(0.5, 0.5, "no region carries a scar", ha="center", transform=ax.transAxes)
        ax.set(xlim=(0, 1), ylim=(0, 1), yticks=[])
    ax.set_xlim(left=0)
    ax.set(xlabel="scar $H$ of a region", ylabel="regions per episode")
    ax.set_title("Scars of the regions at the end of Replay\n", loc="left", fontsize=12)
    share = carried.size / scars.size
    counted = "1 episode" if episodes == 1 else f"{episodes} episodes"
    _subtitle(ax, f"mean over {counted}; {share:.1%} of the regions carry a scar, the rest 0")
    return figure, ax


def _over_phases(
    named: Mapping[str, RSDResult], trace: str, title: str, label: str, smooth: int
) -> tuple[Any, Any]:
    if smooth < 1:
        raise UserError(f"smooth must be a number of steps >= 1, got {smooth}")
    _refuse_empty(trace, {name: result.traces[trace] for name, result in named.items()})
    phase = next(iter(named.values())).phase
    figure, ax = _axes()
    for number, (name, result) in enumerate(named.items()):
        values = smoothed(result.traces[trace].astype(float), phase, smooth)
        low, high = _middle_half(values)
        _curve(ax, number, name, _moments(values)[0], low, high)
    top = ax.get_ylim()[1]
    ax.set(xlim=(0, len(phase)), ylim=(0, top if top > 0 else 1), xlabel="step", ylabel=label)
    _mark_phases(ax, phase)
    ax.set_title(f"{title} over exposure, washout and replay\n", loc="left", fontsize=12)
    averaged = f", moving mean of {smooth} steps" if smooth > 1 else ""
    _subtitle(ax, f"mean over episodes, band: their middle half{averaged}")
    _legend(figure, ax, named)
    return figure, ax


def _named(results: Results) -> Mapping[str, RSDResult]:
    """Results by name, all of one schedule."""
    named = {"": results} if isinstance(results, RSDResult) else results
    if not named:
        raise UserError("there are no results to plot")
    first, *others = named.items()
    for name, result in others:
        if not np.array_equal(result.phase, first[1].phase):
            sizes = [np.bincount(r.phase, minlength=3).tolist() for r in (first[1], result)]
            raise UserError(
                f"{first[0]!r} and {name!r} have different phases ({sizes[0]} and {sizes[1]} "
                "steps): plot them apart"
            )
    return named


def _refuse_empty(what: str, values: Mapping[str, Float]) -> None:
    if all(np.isnan(series).all() for series in values.values()):
        raise UserError(f"no result reports {what}: it is not available in this environment")


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _axes(height: float = 4.0) -> tuple[Any, Any]:
    figure = _figure(8.0, height)
    ax = figure.subplots()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure, ax


def _curve(ax: Any, number: int, name: str, middle: Float, low: Float, high: Float) -> None:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    steps = np.arange(1, len(middle) + 1)  # a value is of after the step
    if np.isnan(middle).all():
        name = f"{name} (not available)"
    ax.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0, zorder=2)
    lonely = len(middle) == 1
    ax.plot(
        steps, middle, color=colour, ls=dash, lw=WIDTHS[number % len(WIDTHS)],
        marker="o" if lonely else "", label=_plain(name), zorder=3,
    )  # fmt: skip


def _plain(name: str) -> str:
    """A label as it is: no mathematics, and not hidden for its leading underscore."""
    escaped = name.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def _legend(figure: Any, ax: Any, named: Mapping[str, RSDResult]) -> None:
    if list(named) == [""]:
        return
    longest = max(len(name) for name in named)
    columns = max(1, min(len(named), 4, 90 // (longest + 12)))
    rows = -(-len(named) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * (rows - 1))  # not at the curves' expense
    figure.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=9,
        ncols=columns, handlelength=3,
    )  # fmt: skip


def _subtitle(ax: Any, text: str) -> None:
    """A second, lighter line in the space that the title's newline leaves."""
    ax.annotate(
        text, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
        fontsize=9, color="#555555",
    )  # fmt: skip


def _mark_phases(ax: Any, phase: npt.NDArray[np.int64]) -> None:
    """Shade the washout and name the phases in a strip above the curves."""
    top = ax.get_ylim()[1]
    ax.set_ylim(0, top * 1.12)
    names, centres = [], []
    for number in np.unique(phase):
        first, last = np.flatnonzero(phase == number)[[0, -1]]
        if number == DECAY:
            ax.axvspan(first, last + 1, color="#EFEFEF", lw=0, zorder=0)
        elif first > 0:
            ax.axvline(first, color="#999999", lw=0.8, ls=":", zorder=1)
        names.append(_NAMES[number])
        centres.append((first + last + 1) / 2 / len(phase))
    for name, x in zip(names, _apart(centres), strict=True):
        ax.text(
            x, 0.985, name, ha="center", va="top", color="#555555", fontsize=10,
            transform=ax.transAxes,
        )  # fmt: skip


def _apart(centres: Sequence[float], gap: float = 0.12) -> list[float]:
    """Ascending positions in [0, 1], moved as little as keeps labels from touching."""
    placed: list[float] = []
    for i, centre in enumerate(centres):
        highest = 1 - gap * (len(centres) - i - 0.5)  # leave room for the labels to come
        lowest = placed[-1] + gap if placed else gap / 2
        placed.append(max(lowest, min(centre, highest)))
    return placed


def smoothed(series: Float, phase: npt.NDArray[np.int64], width: int) -> Float:
    """Moving mean over the last steps that does not reach across phases; NaN is left out."""
    if width == 1:
        return series
    parts = []
    for number in np.unique(phase):
        part = series[:, phase == number]
        stop = np.arange(1, part.shape[1] + 1)
        start = np.maximum(stop - width, 0)
        total, count = (
            np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
            for values in (np.nan_to_num(part), (~np.isnan(part)).astype(float))
        )
        parts.append(_divide(total[:, stop] - total[:, start], count[:, stop] - count[:, start]))
    return np.concatenate(parts, axis=1)


def _divide(a: Float, b: Float) -> Float:
    return np.asarray(np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0))


def _moments(values: Float) -> tuple[Float, Float]:
    """Mean and std (ddof 1) over episodes, (E, T) to (T,) each; NaN where too few are defined."""
    wide = values.astype(float)
    n = (~np.isnan(wide)).sum(axis=0).astype(float)
    mean = _divide(np.nansum(wide, axis=0), n)
    return mean, np.sqrt(_divide(np.nansum((wide - mean) ** 2, axis=0), n - 1))


def _middle_half(values: Float) -> tuple[Float, Float]:
    """Quartiles over episodes, (E, T) to (T,) each."""
    low, high = np.full((2, values.shape[1]), np.nan)
    known = ~np.isnan(values).all(axis=0)
    if known.any():
        # nanquantile goes column by column
        quantile = np.nanquantile if np.isnan(values).any() else np.quantile
        low[known], high[known] = quantile(values[:, known], (0.25, 0.75), axis=0)
    return low, high


def _default_steps(phase: npt.NDArray[np.int64]) -> list[int]:
    """The same moments of Exposure and Replay, as far as the shorter of the two lasts."""
    exposure, replay = (np.flatnonzero(phase == number) for number in (EXPOSURE, REPLAY))
    last = min(len(exposure), len(replay))
    moments = sorted({max(round(share * last), 1) - 1 for share in _MOMENTS})
    return [int(steps[moment]) for steps in (exposure, replay) for moment in moments]
