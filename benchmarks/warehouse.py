"""`rapo/Warehouse-v0`: the choice of its operating point, and what the suite does not run.

python -m benchmarks.warehouse choice       # platform seeds from 1000 on
python -m benchmarks.warehouse variants     # platform seeds 0-9
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.platform_rows import CHOOSING, OFF, SCORING, Wanted, main, rows

LADDER = (0.025, 0.05, 0.1, 0.2, 0.4)
FOR_GOOD = 10**6
TIMERS = (20, 50, 100, 200, 400, FOR_GOOD)
EXACT, HELD_UP = {"stray": 0.0}, {"stall": 0.3}
"""Readings that differ: no report by mistake; hazards that hold robots up."""


def locked(**setting: Any) -> dict[str, Any]:
    """Options of a lock-out."""
    return {"kernel": "lockout", "setting": setting}


def choice() -> pd.DataFrame:
    """Saturations of RAPO and timers of the lock-out, on seeds that are scored nowhere.

    Taken: the largest saturation with an OddsRatio of at most .41 (the operating point) and SM-R of
    at most .70; for the lock-out, whose best is compared, the timer with the least SM_vs_P0 of
    those that keep RAPO's return, else of all. The one with the least SM_vs_P0 of all, 200 steps,
    is among the variants.
    """
    timers: list[dict[str, Any]] = [{"timer": t} for t in TIMERS]
    timers += [{"timer": t, **EXACT} for t in (200, FOR_GOOD)]
    wanted = [
        Wanted({"kernel": "RAPO", "saturation": s}, {"setting": {"saturation": s}}) for s in LADDER
    ]
    wanted += [Wanted({"kernel": "zone lock-out", **t}, locked(**t)) for t in timers]
    return rows("warehouse", CHOOSING, wanted)


def variants() -> pd.DataFrame:
    """Other timers, no report by mistake, hazards that hold up."""
    return rows(
        "warehouse",
        SCORING,
        [
            Wanted({"kernel": "zone lock-out, 200 steps"}, locked(timer=200)),
            Wanted({"kernel": "RAPO, exact reports"}, {"setting": EXACT}),
            Wanted({"kernel": "lock-out for good, exact reports"}, locked(**EXACT, timer=FOR_GOOD)),
            Wanted({"kernel": "off (P0), hazards hold up"}, {**OFF, "setting": HELD_UP}, True),
            Wanted({"kernel": "RAPO, hazards hold up"}, {"setting": HELD_UP}, True),
        ],
    )


if __name__ == "__main__":
    main(__doc__, {"choice": choice, "variants": variants}, "warehouse")
