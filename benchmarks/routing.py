"""`rapo/Routing-v0`: the choice of its operating point, and its rows of numbers.

python -m benchmarks.routing choose     # platform seeds from 1000 on
python -m benchmarks.routing score      # platform seeds 0-9, once, when the setting is frozen
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo import FieldParams
from rapo.platforms import PlatformVectorEnv
from rapo.platforms.routing import Routing
from rapo.rsd import RSDResult, evaluate
from rapo.rsd.bootstrap import ratio_bootstrap
from rapo.rsd.pooled import totals

FOLDER = Path(__file__).resolve().parent.parent / "results" / "platforms"
HORIZONS = (500, 200, 500)
EPISODES = 6
ACTION = 1
"""Of the policy that is scored; all constants are printed beside it."""
CHOOSING, SCORING = range(1000, 1005), range(10)
LADDER = (0.1, 0.3, 0.65, 1.0)
SPREADS = {"narrow": (0.15, 0.4, 0.8, 1.6), "wide": (0.25, 0.7, 1.5, 3.0)}
RATIOS = ("RAG", "AUC_R", "SM_R", "SM_vs_P0", "ReturnKept")
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


def run(seed: int, action: int = ACTION, **how: Any) -> RSDResult:
    """RSD on one platform."""
    off = how.pop("off_at_replay", False)
    env = PlatformVectorEnv(1, platform=Routing, seed=seed, data="real", **how)
    twin = how.get("deformation") != "off"
    return evaluate(
        env, Always(action), EPISODES, seed * 1000, True, horizons=HORIZONS, off_at_replay=off,
        against_P0=twin,
    )  # fmt: skip


def row(results: list[RSDResult]) -> dict[str, Any]:
    """Means over platforms of the pooled ratios, with a bootstrap over platforms."""
    out: dict[str, Any] = {}
    for name in RATIOS:
        sums = np.array([[part.sum() for part in totals(r, name)] for r in results])
        if np.isfinite(sums).all():
            found = ratio_bootstrap(sums[:, 0], sums[:, 1], 0.95, 4000, rng=0)
            out |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
    out["OddsRatio"] = np.mean([r.frame["OddsRatio"].mean() for r in results])
    out["return"] = np.mean([r.frame["ReplayReturn"].mean() for r in results])
    out["sensitive_mass"] = np.mean([r.of_phase("sensitive_mass", 2).mean() for r in results])
    return out


def choose() -> pd.DataFrame:
    """Saturations and spreads, with RAPO and the damping, on seeds that are scored nowhere."""
    tried = [({"saturation": s}, "RAPO") for s in LADDER]
    tried += [({"temperatures": SPREADS["narrow"]}, "RAPO"), ({"links_per_node": 1.45}, "RAPO")]
    tried += [({"suppress": s}, "route-flap damping") for s in (2000.0, 6000.0)]
    rows = []
    for setting, name in tried:
        found = row([run(s, setting=setting, **KERNELS[name]) for s in CHOOSING])
        rows.append({"kernel": name, **{k: str(v) for k, v in setting.items()}, **found})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def score() -> pd.DataFrame:
    """Every kernel under one policy, then every constant under `P0`."""
    rows = []
    for name, how in KERNELS.items():
        results = [run(s, **how) for s in SCORING]
        rows.append({"kernel": name, "action": ACTION, **row(results)})
        print(rows[-1], flush=True)
    actions = Routing(data="real").actions
    for action in set(range(actions)) - {ACTION}:
        results = [run(s, action, deformation="off") for s in SCORING]
        rows.append({"kernel": "off (P0)", "action": action, **row(results)})
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
