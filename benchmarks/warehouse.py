"""`rapo/Warehouse-v0`: the choice of its operating point, and its rows of numbers.

python -m benchmarks.warehouse choose     # platform seeds from 1000 on
python -m benchmarks.warehouse score      # platform seeds 0-9, once, when the setting is frozen
"""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from benchmarks.platform_rows import FOLDER, row, runs
from rapo import FieldParams
from rapo.platforms.warehouse import Setting, Warehouse

ACTION = 2
"""Of the policy that is scored; all constants are printed beside it."""
CHOOSING, SCORING = range(1000, 1004), range(10)
LADDER = (0.025, 0.05, 0.1, 0.2, 0.4)
FOR_GOOD = 10**6
TIMERS = (20, 50, 100, 200, 400, FOR_GOOD)
EXACT, HELD_UP = {"stray": 0.0}, {"stall": 0.3}
"""Readings that differ: no report by mistake; hazards that hold robots up."""
P0 = "off (P0)"
KERNELS: dict[str, dict[str, Any]] = {
    P0: {"deformation": "off"},
    "RAPO": {},
    "off@rep": {"off_at_replay": True},
    "trace alone": {"params": FieldParams(eta=0)},
    "zone lock-out": {"kernel": "lockout"},
    "zone lock-out, 200 steps": {"kernel": "lockout", "setting": {"timer": 200}},
    "RAPO, exact reports": {"setting": EXACT},
    "lock-out for good, exact reports": {
        "kernel": "lockout",
        "setting": {**EXACT, "timer": FOR_GOOD},
    },
    "off (P0), hazards hold up": {"deformation": "off", "setting": HELD_UP},
    "RAPO, hazards hold up": {"setting": HELD_UP},
}


def choose() -> pd.DataFrame:
    """Saturations of RAPO and timers of the lock-out, on seeds that are scored nowhere.

    Taken: the largest saturation with an OddsRatio of at most .41 (the operating point) and SM-R of
    at most .70; for the lock-out, whose best is compared, the timer with the least SM_vs_P0 of
    those that keep RAPO's return, else of all. The one with the least SM_vs_P0 of all, 200
    steps, is scored beside it.
    """
    tried: list[tuple[str, dict[str, Any]]] = [("RAPO", {"saturation": s}) for s in LADDER]
    tried += [("zone lock-out", {"timer": t}) for t in TIMERS]
    tried += [("zone lock-out", {"timer": t, **EXACT}) for t in (200, FOR_GOOD)]
    asked = [({"setting": setting, **KERNELS[name]}, ACTION) for name, setting in tried]
    nominal, *found = runs(Warehouse, CHOOSING, [(KERNELS[P0], ACTION), *asked])
    return pd.DataFrame(
        [
            {"kernel": name, **setting, **row(sums, nominal)}
            for (name, setting), sums in zip(tried, found, strict=True)
        ]
    )


def score() -> pd.DataFrame:
    """Every kernel under one policy; then `P0` under all other constants, RAPO under one.

    All ratios to `P0` are to that of the policy that is scored, so the rows make one frontier; but
    where hazards hold up they are to `P0` where they do.
    """
    others = [a for a in range(len(Setting.of().dispatch)) if a != ACTION]
    wanted = [(name, ACTION) for name in KERNELS]
    wanted += [(P0, a) for a in others] + [("RAPO", others[-1])]
    found = runs(Warehouse, SCORING, [(KERNELS[name], action) for name, action in wanted])
    by_name = dict(zip(wanted, found, strict=True))
    rows = []
    for (name, action), sums in by_name.items():
        against = "off (P0), hazards hold up" if "hold up" in name else P0
        rows.append({"kernel": name, "action": action, **row(sums, by_name[against, ACTION])})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in ("choose", "score"):
        sys.exit(__doc__)
    table = choose() if what == "choose" else score()
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = "warehouse_choice.csv" if what == "choose" else "warehouse.csv"
    table.round(4).to_csv(FOLDER / name, index=False)
    print(table.round(3).to_string())
