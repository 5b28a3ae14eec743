"""`rapo/Twin-v0`: the choice of its operating point, and what the suite does not run.

python -m benchmarks.twin choice       # platform seeds from 1000 on
python -m benchmarks.twin variants     # platform seeds 0-9: trips, and every field with its widths
python -m benchmarks.twin network      # the network's field, which takes long, on two platforms
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.platform_rows import CHOOSING, SCORING, Wanted, main, rows
from rapo.platforms.twin import Setting

WINDOWS = (
    ((0.0, 0.33), (360.25, 414.25)),
    ((0.0, 0.44), (349.0, 421.0)),
    ((0.0, 0.66), (329.5, 437.5)),
)
"""Cells of 1.5, 2 and 3 K; in each 394 K is the middle of a cell, the worst case."""
SATURATIONS = (0.05, 0.1, 0.2)
SPREADS = (0.25, 0.5, 1.0, 2.0, 4.0)
TRIPS = [(above, to) for to in (0, 2, 3) for above in (386.0, 388.0, 390.0, 391.0, 392.0, 393.0)]
FEW = range(2)


def choice() -> pd.DataFrame:
    """Cells, saturations, widths and trips on seeds that are scored nowhere.

    Taken: window and saturation with the least SM_vs_P0 of those with an OddsRatio of at most .41
    (the operating point); `spreads` of the kernel field likewise; of the trips, whose best is
    compared, the one with the least SM_vs_P0 of those that keep RAPO's return.
    """
    cells = [{"window": window, "saturation": s} for window in WINDOWS for s in SATURATIONS]
    return rows(
        "twin",
        CHOOSING,
        [Wanted({"kernel": "RAPO", **s}, {"setting": s}) for s in cells]
        + [_field("kernel", n) for n in SPREADS]
        + [_trip("trip", above, to) for above, to in TRIPS],
    )


def variants() -> pd.DataFrame:
    """Trips that keep less of the return, and scars without cells."""
    frozen = Setting.of()
    return rows(
        "twin",
        SCORING,
        [
            _trip("trip, low and mild", 386.0, 3),
            _trip("trip, coldest coolant", frozen.trip_above, 0),
            *(_field("kernel", n) for n in SPREADS),
            _field("density"),
            _field("grid"),
        ],
    )


def network() -> pd.DataFrame:
    """The experimental field: milliseconds an update, so few platforms."""
    return rows("twin", FEW, [_field("network"), _field("kernel", Setting.of().spreads)])


def _trip(name: str, above: float, to: int) -> Wanted:
    setting = {"trip_above": above, "trip_to": to}
    return Wanted({"kernel": name, **setting}, {"kernel": "trip", "setting": setting})


def _field(field: str, spreads: float | None = None) -> Wanted:
    told: dict[str, Any] = {"kernel": "RAPO", "field": field}
    setting = {} if spreads is None else {"spreads": spreads}
    return Wanted({**told, **setting}, {"field": field, "setting": setting})


if __name__ == "__main__":
    main(__doc__, {"choice": choice, "variants": variants, "network": network}, "twin")
