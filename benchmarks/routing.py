"""`rapo/Routing-v0`: the choice of its operating point, and its rows of numbers.

python -m benchmarks.routing choose     # platform seeds from 1000 on
python -m benchmarks.routing score      # platform seeds 0-9, once, when the setting is frozen
"""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from benchmarks.platform_rows import FOLDER, row, runs
from rapo import FieldParams
from rapo.platforms.routing import Routing

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
    found = iter(runs(Routing, CHOOSING, asked))
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
    found = runs(Routing, SCORING, [(KERNELS[name], action) for name, action in wanted])
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
