"""`rapo/Twin-v0`: the choice of its operating point, and its rows of numbers.

python -m benchmarks.twin choose     # platform seeds from 1000 on
python -m benchmarks.twin score      # platform seeds 0-9, once, when the setting is frozen
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pandas as pd

from benchmarks.platform_rows import EPISODES, FOLDER, HORIZONS, Always, row
from rapo import FieldParams
from rapo.platforms import PlatformVectorEnv
from rapo.platforms.twin import Setting, Twin
from rapo.rsd import evaluate
from rapo.rsd.pooled import totals
from rapo.scars import FullWarning

ACTION = 4
"""Of the policy that is scored, the set-point with the highest return."""
CHOOSING, SCORING = range(1000, 1004), range(10)
WINDOWS = (
    ((0.0, 0.33), (360.25, 414.25)),
    ((0.0, 0.44), (349.0, 421.0)),
    ((0.0, 0.66), (329.5, 437.5)),
)
"""Cells of 1.5, 2 and 3 K; in each 394 K is the middle of a cell, the worst case."""
SATURATIONS = (0.05, 0.1, 0.2)
SPREADS = (0.25, 0.5, 1.0, 2.0, 4.0)
TRIPS = [(above, to) for to in (0, 2, 3) for above in (386.0, 388.0, 390.0, 391.0, 392.0, 393.0)]
MILD = {"trip_above": 386.0, "trip_to": 3}
OFF: dict[str, Any] = {"deformation": "off"}
TRIP: dict[str, Any] = {"kernel": "trip"}
Wanted = tuple[dict[str, Any], int]
Row = tuple[dict[str, Any], dict[str, Any], int]
"""What a row says of itself, its options, its action."""


def run(seed: int, how: dict[str, Any], action: int = ACTION) -> dict[str, float]:
    """Sums over the episodes of one platform, of RSD with coupled draws.

    With `brief`, of a kernel without a memory, of Replay alone: it stands for Exposure too.
    """
    options = {"off_at_replay": False, "brief": False, **how}
    off, brief = options.pop("off_at_replay"), options.pop("brief")
    env = PlatformVectorEnv(1, platform=Twin, seed=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FullWarning)  # a narrow width fills the centres
        result = evaluate(
            env, Always(action), EPISODES, seed * 1000, True,
            horizons=(1, 1, HORIZONS[2]) if brief else HORIZONS, off_at_replay=off,
        )  # fmt: skip
    sums = {"return": float(result.frame["ReplayReturn"].sum())}
    for name, mine in (("RAG", "reach"), ("AUC_R", "reach"), ("SM_R", "sensitive_mass")):
        after, before = (float(part.sum()) for part in totals(result, name))
        if brief:
            after = before = float(result.of_phase(mine, 2).sum())
        sums[f"{name} replay"], sums[f"{name} exposure"] = after, before
    return {**sums, "OddsRatio": float(result.frame["OddsRatio"].mean())}


def runs(seeds: range, wanted: Sequence[Wanted]) -> Iterator[list[Any]]:
    """`run` of all platforms for every (options, action) in turn, two at a time."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        asked = [[pool.submit(run, s, how, action) for s in seeds] for how, action in wanted]
        for one in asked:
            yield [task.result() for task in one]


def choose() -> None:
    """Cells, saturations, widths and trips on seeds that are scored nowhere.

    Taken: window and saturation with the least SM_vs_P0 of those with an OddsRatio of at most .41
    (the operating point); `spreads` of the kernel field likewise; of the trips, whose best is
    compared, the one with the least SM_vs_P0 of those that keep RAPO's return.
    """
    cells = [{"window": window, "saturation": s} for window in WINDOWS for s in SATURATIONS]
    trips = [{"trip_above": above, "trip_to": to} for above, to in TRIPS]
    tried: list[Row] = [({"kernel": "off (P0)"}, {**OFF, "brief": True}, ACTION)]
    tried += [({"kernel": "RAPO", **s}, {"setting": s}, ACTION) for s in cells]
    tried += [_kernel_field(n) for n in SPREADS]
    tried += [({"kernel": "trip", **s}, {**TRIP, "setting": s}, ACTION) for s in trips]
    _tell(tried, CHOOSING, "twin_choice.csv")


def score() -> None:
    """Every kernel and constant, then every field with the curve of widths.

    All ratios to `P0` are to that of the policy that is scored, so the rows make one frontier.
    """
    others = [a for a in range(len(Setting.of().set_points)) if a != ACTION]
    rows: list[Row] = [
        ({"kernel": "off (P0)"}, OFF, ACTION),
        ({"kernel": "RAPO"}, {}, ACTION),
        ({"kernel": "off@rep"}, {"off_at_replay": True}, ACTION),
        ({"kernel": "trace alone"}, {"params": FieldParams(eta=0)}, ACTION),
        ({"kernel": "trip, at RAPO's return"}, TRIP, ACTION),
        _kernel_field(Setting.of().spreads),
    ]
    rows += [({"kernel": "off (P0)"}, {**OFF, "brief": True}, a) for a in others]
    for name, changes in (("low and mild", MILD), ("coldest coolant", {"trip_to": 0})):
        how = {**TRIP, "brief": True, "setting": changes}
        rows.append(({"kernel": f"trip, {name}"}, how, ACTION))
    rows += [_kernel_field(n) for n in SPREADS if n != Setting.of().spreads]
    rows += [({"kernel": "RAPO", "field": f}, {"field": f}, ACTION) for f in ("density", "grid")]
    rows.append(({"kernel": "RAPO", "field": "network"}, {"field": "network"}, ACTION))
    _tell(rows, SCORING, "twin.csv")


def _kernel_field(spreads: float) -> Row:
    told = {"kernel": "RAPO", "field": "kernel", "spreads": spreads}
    return told, {"field": "kernel", "setting": {"spreads": spreads}}, ACTION


def _tell(rows: list[Row], seeds: range, name: str) -> None:
    """Print and keep rows as they come; the first is `P0` under the policy that is scored."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    nominal: list[dict[str, float]] = []
    out = []
    found = runs(seeds, [(how, action) for _, how, action in rows])
    for (told, how, action), sums in zip(rows, found, strict=True):
        nominal = nominal or sums
        ratios = row(sums, nominal)
        if how.get("brief"):  # nothing was exposed
            ratios |= {k: None for k in ratios if k.startswith(("RAG", "AUC_R", "SM_R"))}
        field = "cells" if told["kernel"] == "RAPO" else ""
        out.append({"field": field, **told, "action": action, "platforms": len(seeds), **ratios})
        pd.DataFrame(out).round(4).to_csv(FOLDER / name, index=False)
        shown = {k: v for k, v in out[-1].items() if not k.endswith(("_low", "_high"))}
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in shown.items()}, flush=True)


if __name__ == "__main__":
    parts = {"choose": choose, "score": score}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        sys.exit(__doc__)
    parts[sys.argv[1]]()
