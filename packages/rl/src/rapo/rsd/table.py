"""The table of metrics, in words: which rows, in which order, and what a reader must know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rapo.cascade.setting import REPLAY
from rapo.rsd.bootstrap import HEAVY
from rapo.rsd.pooled import POOLED
from rapo.rsd.result import METRICS, ON_REQUEST, RSDResult
from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rich.table import Table

MEANINGS = {
    "RAG": "peak reach, Replay over Exposure",
    "AUC_R": "total reach, Replay over Exposure",
    "SM_R": "total sensitive mass, Replay over Exposure",
    "ExposureReturn": "discounted return of Exposure",
    "ReplayReturn": "discounted return of Replay",
    "OddsRatio": "odds of harmful entry in Replay, deformed over nominal",
    "EventOdds": "odds that any harmful node is entered in Replay, deformed over nominal",
    "R_c": "largest hop distance from the seeds that Replay reaches",
    "ASD": "shift of the action law when Replay's memory replaces Exposure's (total variation)",
    "GatingRate": "share of nominal harmful entry that the deformation removes in Replay",
    "ScarMass": "sum of the scars when Replay begins",
    "SM_vs_P0": "total sensitive mass of Replay over that of the same run under P0",
    "Reach_vs_P0": "total reach of Replay over that of the same run under P0",
    "ReturnKept": "discounted return of Replay over that of the same run under P0",
    "OddsSame": "OddsRatio when Replay begins, first 50 steps",
    "OddsOther": "the same under another stimulus, with the same memory",
    "Selectivity": "OddsOther - OddsSame: how much more the known stimulus is held back",
}
UNAVAILABLE = "not available"
_POOLED = " pooled"
_NONE = "–"  # noqa: RUF001 (an empty cell of a table)


class Row(NamedTuple):
    """One metric of one result in words; all but the names are empty if it is not available."""

    metric: str
    result: str
    value: str
    interval: str
    n: str
    undefined: str


def rows_of(results: Mapping[str, RSDResult]) -> dict[str, list[Row]]:
    """Rows by name of the metric, results in their order.

    Ratios have a second, pooled entry: before the mean of ratios if a result has heavy tails, else
    after it. Metrics that nobody asked for are left out.
    """
    if not results:
        raise UserError("there are no results to report")
    summaries = {name: result.summary() for name, result in results.items()}
    together = {name: result.pooled() for name, result in results.items()}
    heavy = any(result.heavy_tailed for result in results.values())
    table = {}
    for metric in METRICS:
        of_metric = {name: summary[metric] for name, summary in summaries.items()}
        if metric in ON_REQUEST and not any(of["n"] for of in of_metric.values()):
            continue
        entries = {metric: of_metric}
        if metric in POOLED and any(of[metric]["n"] for of in together.values()):
            entries[metric + _POOLED] = {name: of[metric] for name, of in together.items()}
        for entry in sorted(entries, key=len, reverse=heavy):
            digits = _digits([of["mean"] for of in entries[entry].values()])
            table[entry] = [_row(entry, name, of, digits) for name, of in entries[entry].items()]
    return table


def text_table(results: Mapping[str, RSDResult]) -> Table:
    """The report's table of metrics for the terminal, with what decided its order below it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows_by = rows_of(results)
    several = len(results) > 1
    title = "Replay Suppression Diagnostic"
    caption = Text("\n".join([*tail_notes(results), *memory_notes(results)]))
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=title if several else f"{title}: {next(iter(results))}",
        caption=caption,
        caption_justify="left",
    )
    table.add_column("metric", style="bold", no_wrap=True)
    if several:  # of one, the title tells, and the numbers have room
        table.add_column("result", overflow="fold")
    for name in ("mean ± std", "95% CI", "n", "undefined"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric, rows in rows_by.items():
        for row in rows:
            first = row is rows[0]
            table.add_row(
                label(metric, results) if first else "",
                *([Text(row.result)] if several else []),
                *row[2:],
                end_section=several and row is rows[-1],
            )
    return table


def meaning(entry: str) -> str:
    """What a metric is, or its pooled ratio."""
    metric = entry.removesuffix(_POOLED)
    return MEANINGS[metric] + ("" if metric == entry else ", all episodes together")


def label(entry: str, results: Mapping[str, RSDResult] | None = None) -> str:
    """A metric as the paper writes it; odds that a fit aimed at are called calibrated."""
    fitted = any(_calibrated(result) for result in (results or {}).values())
    aimed_at = entry in ("OddsRatio", "OddsSame")
    return entry.replace("_R", "-R") + (" (calibrated)" if fitted and aimed_at else "")


def _calibrated(result: RSDResult) -> bool:
    """Whether the odds are those that a fit measured: fitted, and fully deformed in Replay."""
    manifest = result.manifest
    full = manifest.get("deformation") == "full" and manifest.get("deform_phases", [True])[-1]
    return bool(manifest.get("fit")) and full and not manifest.get("off_at_replay")


def notes(results: Mapping[str, RSDResult]) -> Iterator[str]:
    """What a reader must know before comparing rows."""
    yield from tail_notes(results)
    yield from memory_notes(results)
    hashes = {name: result.graph_hash for name, result in results.items()}
    if len(set(hashes.values())) > 1:
        listed = ", ".join(f"{name} {number or UNAVAILABLE}" for name, number in hashes.items())
        yield (
            "These results are of different graphs or environments, so their rows differ for more "
            f"than one reason. Graph hashes: {listed}."
        )
    shares = {}
    for name, result in results.items():
        steps = len(result.frame) * int((result.phase == REPLAY).sum())
        if "undefined_odds" in result.frame and result.frame["OddsRatio"].notna().any() and steps:
            shares[name] = float(result.frame["undefined_odds"].sum()) / steps
    if shares:
        listed = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        yield f"OddsRatio leaves out the Replay steps without nominal harmful mass: {listed}."


def memory_notes(results: Mapping[str, RSDResult]) -> Iterator[str]:
    """What was fitted, and where the memory is idle."""
    for name, result in results.items():
        fit, point = result.manifest.get("fit"), result.manifest.get("operating_point")
        if fit:
            yield f"{name} is fitted to its graph: {fit['words']}."
        if point and point["idle"]:
            yield (
                f"{name} is idle: {point['scarring']:,} of {point['regions']:,} regions can scar; "
                f"highest steady trace {point['highest_steady_trace']:.2g}, tau {point['tau']:.2g}."
            )


def tail_notes(results: Mapping[str, RSDResult]) -> Iterator[str]:
    """Which ratios stand first, and why."""
    tails = {name: result.tails for name, result in results.items()}
    measured = ", ".join(
        f"{name} {of.variation:.2f} (of {label(of.metric)})"
        for name, of in tails.items()
        if of.metric is not None
    )
    if not measured:
        return
    if any(of.heavy for of in tails.values()):
        yield (
            "Heavy tails: pooled ratios stand first. Exposure varies so much between episodes that "
            "a mean of per-episode ratios is biased upwards; its coefficient of variation is "
            f"{measured}, heavy above {HEAVY:g}. Pooled is a ratio of means, its interval a "
            "bootstrap over whole episodes."
        )
        return
    yield (
        "No heavy tails: the paper's mean of per-episode ratios stands first, the ratio of means "
        "(pooled, with a bootstrap over whole episodes) after it. The coefficient of variation of "
        f"Exposure between episodes is {measured}, heavy above {HEAVY:g}."
    )


def _row(metric: str, name: str, numbers: Mapping[str, Any], digits: int) -> Row:
    if numbers["n"] == 0:
        return Row(metric, name, UNAVAILABLE, "", "", "")
    mean, std, low, high = (
        _number(value, digits) for value in (numbers["mean"], numbers["std"], *numbers["ci95"])
    )
    interval = _NONE if low == _NONE else f"[{low}, {high}]"
    # The spread of a pooled ratio is its interval: a std of resamples would read like one of
    # episodes.
    value = mean if std == _NONE or "ratio" in numbers else f"{mean} ± {std}"
    return Row(metric, name, value, interval, str(numbers["n"]), str(numbers["undefined"]))


def _digits(means: list[float]) -> int:
    """Decimals that give the smallest mean three digits, one number for a whole metric."""
    sizes = [abs(mean) for mean in means if math.isfinite(mean) and mean != 0]
    return int(np.clip(2 - math.floor(math.log10(min(sizes))), 0, 4)) if sizes else 2


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return _NONE
    if value != 0 and abs(value) < 0.5 * 10**-digits:  # small is not 0
        return f"{value:.1e}"
    return f"{value:.{digits}f}"
