"""`rapo/Routing-v0`: the choice of its operating point, and what the suite does not run.

python -m benchmarks.routing choice       # platform seeds from 1000 on
python -m benchmarks.routing variants     # platform seeds 0-9
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.platform_rows import SCORING, Wanted, main, rows

CHOOSING = range(1000, 1005)
LADDER = (0.1, 0.3, 0.65, 1.0)
OTHERWISE: tuple[dict[str, Any], ...] = (
    {"temperatures": (0.15, 0.4, 0.8, 1.6)},
    {"links_per_node": 1.45},
)
PENALTIES = ((1000.0, 2000.0), (1000.0, 6000.0), (10_000.0, 2000.0), (10_000.0, 6000.0))
"""Of a step's full harm, and at which a link is suppressed."""


def choice() -> pd.DataFrame:
    """Saturations and spreads, with RAPO and the damping, on seeds that are scored nowhere.

    Taken: the largest saturation with an OddsRatio of at most .41 (the operating point) and SM-R of
    at most .70; for the damping, whose best is compared, the penalty with the least SM_vs_P0.
    """
    tried: list[dict[str, Any]] = [{"saturation": s} for s in LADDER]
    tried += [{"saturation": 0.1, **more} for more in OTHERWISE]
    wanted = [Wanted({"kernel": "RAPO", **s}, {"setting": s}, own_P0=True) for s in tried]
    for flap, suppress in PENALTIES:
        s = {"flap": flap, "suppress": suppress}
        wanted.append(
            Wanted({"kernel": "route-flap damping", **s}, {"kernel": "damping", "setting": s})
        )
    return rows("routing", CHOOSING, wanted)


def variants() -> pd.DataFrame:
    """Reports that name the whole path."""
    blamed = Wanted({"kernel": "RAPO, path blamed"}, {"setting": {"blame": "path"}})
    return rows("routing", SCORING, [blamed])


if __name__ == "__main__":
    main(__doc__, {"choice": choice, "variants": variants}, "routing")
