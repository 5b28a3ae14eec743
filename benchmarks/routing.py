"""`rapo/Routing-v0`: the choice of its operating point, and its rows of numbers.

python -m benchmarks.routing choose     # platform seeds from 1000 on
python -m benchmarks.routing score      # platform seeds 0-9, once, when the setting is frozen
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo import FieldParams
from rapo.platforms import PlatformVectorEnv
from rapo.platforms.routing import Routing
from rapo.rsd import evaluate
from rapo.rsd.bootstrap import ratio_bootstrap
from rapo.rsd.pooled import totals

FOLDER = Path(__file__).resolve().parent.parent / "results" / "platforms"
HORIZONS = (500, 200, 500)
EPISODES = 6
ACTION = 1
"""Of the policy that is scored; all constants are printed beside it."""
CHOOSING, SCORING = range(1000, 1005), range(10)
LADDER = (0.1, 0.3, 0.65, 1.0)
NARROW = (0.15, 0.4, 0.8, 1.6)
PENALTIES = ((1000.0, 2000.0), (1000.0, 6000.0), (10_000.0, 2000.0), (10_000.0, 6000.0))
"""Of a step's full harm, and at which a link is suppressed."""
KERNELS: dict[str, dict[str, Any]] = {
    "off (P0)": {"deformation": "off"},
    "RAPO": {},
    "off@rep": {"off_at_replay": True},
    "trace alone": {"params": FieldParams(eta=0)},
    "route-flap damping": {"kernel": "damping"},
    "RAPO, path blamed": {"setting": {"blame": "path"}},
}


class Always:
    """The same spread, whatever happens."""

    batched = True

    def __init__(self, action: int) -> None:
        self.action = action

    def __call__(self, x: Any) -> Any:
        return np.full(len(x), self.action)


def run(seed: int, how: dict[str, Any], action: int = ACTION) -> dict[str, float]:
    """Sums over the episodes of one platform, of RSD with coupled draws."""
    options = {"off_at_replay": False, **how}
    off = options.pop("off_at_replay")
    env = PlatformVectorEnv(1, platform=Routing, seed=seed, data="real", **options)
    result = evaluate(
        env, Always(action), EPISODES, seed * 1000, True, horizons=HORIZONS, off_at_replay=off
    )
    sums = {"return": float(result.frame["ReplayReturn"].sum())}
    for name in ("RAG", "AUC_R", "SM_R"):
        sums[f"{name} replay"], sums[f"{name} exposure"] = (
            float(part.sum()) for part in totals(result, name)
        )
    return {**sums, "OddsRatio": float(result.frame["OddsRatio"].mean())}


def runs(seeds: range, wanted: Sequence[tuple[dict[str, Any], int]]) -> Iterator[list[Any]]:
    """`run` of all platforms for every (options, action) in turn, two at a time."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        asked = [[pool.submit(run, s, how, action) for s in seeds] for how, action in wanted]
        for one in asked:
            yield [task.result() for task in one]


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


def choose() -> pd.DataFrame:
    """Saturations and spreads, with RAPO and the damping, on seeds that are scored nowhere.

    Taken: the largest saturation with an OddsRatio of at most .41 (the operating point) and SM-R of
    at most .70; for the damping, whose best is compared, the penalty with the least SM_vs_P0.
    """
    tried: list[tuple[str, dict[str, Any]]]
    tried = [("RAPO", {"saturation": s}) for s in LADDER]
    tried += [
        ("RAPO", {"saturation": 0.1, "temperatures": NARROW}),
        ("RAPO", {"saturation": 0.1, "links_per_node": 1.45}),
    ]
    tried += [("route-flap damping", {"flap": f, "suppress": s}) for f, s in PENALTIES]
    asked = [
        ({"setting": setting, **KERNELS[kernel]}, ACTION)
        for name, setting in tried
        for kernel in (name, "off (P0)")
    ]
    found = runs(CHOOSING, asked)
    rows = []
    for name, setting in tried:
        shown = {k: str(v) for k, v in setting.items()}
        rows.append({"kernel": name, **shown, **row(next(found), next(found))})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def score() -> pd.DataFrame:
    """Every kernel under one policy; then `P0`, RAPO and the damping under other constants.

    All ratios to `P0` are to that of the policy that is scored, so the rows make one frontier.
    """
    others = [a for a in range(Routing(data="real").actions) if a != ACTION]
    wanted = [(name, ACTION) for name in KERNELS] + [("off (P0)", a) for a in others]
    wanted += [("RAPO", others[0]), ("route-flap damping", others[0])]
    found = runs(SCORING, [(KERNELS[name], action) for name, action in wanted])
    nominal, rows = [], []
    for (name, action), sums in zip(wanted, found, strict=True):
        nominal = nominal or sums  # the first is `P0` under the policy that is scored
        rows.append({"kernel": name, "action": action, **row(sums, nominal)})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in ("choose", "score"):
        sys.exit(__doc__)
    table = choose() if what == "choose" else score()
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = "routing_choice.csv" if what == "choose" else "routing.csv"
    table.round(4).to_csv(FOLDER / name, index=False)
    print(table.round(3).to_string())
