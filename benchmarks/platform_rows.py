"""Rows of numbers of a platform: RSD on many seeds, pooled, beside `P0` of the same draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.platforms import BatchPlatform, PlatformVectorEnv
from rapo.rsd import evaluate
from rapo.rsd.bootstrap import ratio_bootstrap
from rapo.rsd.pooled import totals

FOLDER = Path(__file__).resolve().parent.parent / "results" / "platforms"
HORIZONS = (500, 200, 500)
EPISODES = 6
Wanted = Sequence[tuple[dict[str, Any], int]]
"""(options, action) of every run; the option `off_at_replay` is the diagnostic's."""


class Always:
    """The same action, whatever happens."""

    batched = True

    def __init__(self, action: int) -> None:
        self.action = action

    def __call__(self, x: Any) -> Any:
        return np.full(len(x), self.action)


def run(
    platform: Callable[..., BatchPlatform], seed: int, how: dict[str, Any], action: int
) -> dict[str, float]:
    """Sums over the episodes of one platform, of RSD with coupled draws."""
    options = {"off_at_replay": False, **how}
    off = options.pop("off_at_replay")
    env = PlatformVectorEnv(1, platform=platform, seed=seed, data="real", **options)
    result = evaluate(
        env, Always(action), EPISODES, seed * 1000, True, horizons=HORIZONS, off_at_replay=off
    )
    sums = {"return": float(result.frame["ReplayReturn"].sum())}
    for name in ("RAG", "AUC_R", "SM_R"):
        sums[f"{name} replay"], sums[f"{name} exposure"] = (
            float(part.sum()) for part in totals(result, name)
        )
    return {**sums, "OddsRatio": float(result.frame["OddsRatio"].mean())}


def of_seed(
    platform: Callable[..., BatchPlatform], seed: int, wanted: Wanted
) -> list[dict[str, float]]:
    """Every run of one seed, whose tables are made once."""
    return [run(platform, seed, how, action) for how, action in wanted]


def runs(
    platform: Callable[..., BatchPlatform], seeds: range, wanted: Wanted
) -> list[list[dict[str, float]]]:
    """`run` of all platforms for every (options, action), two seeds at a time."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        asked = [pool.submit(of_seed, platform, seed, wanted) for seed in seeds]
        by_seed = [task.result() for task in asked]
    return [list(one) for one in zip(*by_seed, strict=True)]


def row(found: list[dict[str, float]], nominal: list[dict[str, float]]) -> dict[str, Any]:
    """Pooled ratios with the 95% interval of a bootstrap over platforms.

    Args:
        found: of every platform.
        nominal: of the same under `P0` and the policy that is scored, with the same draws.
    """
    sums, P0 = pd.DataFrame(found), pd.DataFrame(nominal)
    ratios = {
        name: (sums[f"{name} replay"], sums[f"{name} exposure"])
        for name in ("RAG", "AUC_R", "SM_R")
    }
    ratios["SM_vs_P0"] = sums["SM_R replay"], P0["SM_R replay"]
    ratios["ReturnKept"] = sums["return"], P0["return"]
    out: dict[str, Any] = {}
    for name, (above, below) in ratios.items():
        ratio = ratio_bootstrap(above.to_numpy(), below.to_numpy(), 0.95, 4000, rng=0)
        out |= {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    return {**out, "OddsRatio": sums["OddsRatio"].mean()}
