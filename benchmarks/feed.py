"""`rapo/Feed-v0`: the choice of its operating point, and of its baseline's strength.

`python -m benchmarks.feed choose` and `choose_baseline` look at platform seeds from 1000 on. Seeds
from 0 on are scored by `rapo suite run --domains feed`, when the setting is frozen.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.platforms import PlatformVectorEnv
from rapo.platforms.feed import Feed, Setting, claims_of
from rapo.rsd import evaluate
from rapo.rsd.bootstrap import ratio_bootstrap
from rapo.rsd.pooled import totals

FOLDER = Path(__file__).resolve().parent.parent / "results" / "platforms"
HORIZONS = (500, 200, 500)
EPISODES = 10
THETA = 0.41
"""OddsRatio of the operating point: the paper's."""
ALL_TIME = 1e9
LADDER = {"regions": (60, 90), "saturation": (0.2, 0.3, 0.45, 0.65)}
STRENGTHS = (2.0, 4.0, 8.0)
CHOICE = range(1000, 1002)
RATIOS = ("RAG", "AUC_R", "SM_R")


class Always:
    """The same boost of virality, whatever happens."""

    batched = True

    def __init__(self, action: int) -> None:
        self.action = action

    def __call__(self, x: Any) -> Any:
        return np.full(len(x), self.action)


Sums = dict[str, Any]


def run(task: tuple[int, Setting, int, dict[str, Any]]) -> Sums:
    """RSD on one platform: seed, setting, action, options; sums and curves of its episodes."""
    seed, setting, action, how = task
    options = dict(how)
    off, horizons = options.pop("off_at_replay", False), options.pop("horizons", HORIZONS)
    env = PlatformVectorEnv(1, platform=Feed, seed=seed, setting=setting, **options)
    found = evaluate(
        env, Always(action), EPISODES, seed * 1000, True, horizons=horizons, off_at_replay=off
    )
    for name in ("reach", "sensitive_mass", "reward"):  # what P0 must do, bit for bit
        if options.get("deformation") == "off" and horizons[0] == horizons[2]:
            assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    ratios = {n: [float(part.sum()) for part in totals(found, n)] for n in RATIOS}
    return {
        **ratios,
        "OddsRatio": float(found.frame["OddsRatio"].mean()),
        "return": float(found.frame["ReplayReturn"].mean()),
        "sensitive_mass": float(found.of_phase("sensitive_mass", 2).mean()),
    }


def runs(seeds: range, setting: Setting, action: int | None = None, **how: Any) -> list[Sums]:
    """One run a platform, with the strongest boost unless told."""
    chosen = len(setting.boosts) - 1 if action is None else action
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(run, [(seed, setting, chosen, how) for seed in seeds]))


def row(found: list[Sums], nominal: list[Sums]) -> dict[str, Any]:
    """Pooled over platforms, with the 95% interval of a bootstrap over platforms.

    Args:
        found: one a platform.
        nominal: the same platforms and draws under `P0`: one twin serves all kernels.
    """
    pairs = {name: [sums[name] for sums in found] for name in RATIOS}
    for name, total in (("SM_vs_P0", "sensitive_mass"), ("ReturnKept", "return")):
        pairs[name] = [[a[total], b[total]] for a, b in zip(found, nominal, strict=True)]
    out: dict[str, Any] = {}
    for name, values in pairs.items():
        after, before = np.array(values).T
        ratio = ratio_bootstrap(after, before, 0.95, 4000, rng=0)
        out |= {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    means = ("OddsRatio", "return", "sensitive_mass")
    return out | {name: float(np.mean([sums[name] for sums in found])) for name in means}


def tell(rows: list[dict[str, Any]], name: str) -> pd.DataFrame:
    """Print the last row and keep all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows)
    frame.round(4).to_csv(FOLDER / name, index=False)
    shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}
    print({k: v for k, v in shown.items() if "_low" not in k and "_high" not in k}, flush=True)
    return frame


def choose() -> None:
    """The operating point: least sensitive mass of what has OddsRatio at most THETA."""
    frozen = Setting.frozen()
    nominal = runs(CHOICE, frozen, deformation="off")
    rows: list[dict[str, Any]] = []
    for regions in LADDER["regions"]:
        for saturation in LADDER["saturation"]:
            setting = replace(frozen, regions=int(regions), saturation=saturation)
            found = row(runs(CHOICE, setting), nominal)
            rows.append({"kernel": "rapo", "regions": regions, "saturation": saturation, **found})
            frame = tell(rows, "feed_choice.csv")
    fine = frame[frame["OddsRatio"] <= THETA].sort_values("SM_vs_P0")
    print("operating point:", fine.iloc[0][["regions", "saturation"]].to_dict(), flush=True)


def choose_baseline() -> None:
    """Its strength: least sensitive mass at RAPO's return or more."""
    frozen = Setting.frozen()
    nominal = runs(CHOICE, frozen, deformation="off")
    rows: list[dict[str, Any]] = []
    for window in (frozen.rate_window, ALL_TIME):
        for strength in STRENGTHS:
            kept = {"rate_strength": strength, "rate_window": window}
            found = row(runs(CHOICE, replace(frozen, **kept), kernel="false-rate"), nominal)
            rows.append({"kernel": "false-rate", "regions": frozen.regions, **kept, **found})
            tell(rows, "feed_choice_baseline.csv")


if __name__ == "__main__":
    parts = (choose, choose_baseline)
    claims_of()  # once, not in every worker
    {part.__name__: part for part in parts}[sys.argv[1]]()
