"""`rapo/Feed-v0`: the choice of its operating point, and of its baseline's strength.

python -m benchmarks.feed choice              # platform seeds from 1000 on
python -m benchmarks.feed choice_baseline
"""

from __future__ import annotations

import pandas as pd

from benchmarks.platform_rows import Wanted, main, rows
from rapo.platforms.feed import Setting

REGIONS, SATURATIONS = (60, 90), (0.2, 0.3, 0.45, 0.65)
ALL_TIME = 1e9
STRENGTHS = (2.0, 4.0, 8.0)
CHOOSING = range(1000, 1002)


def choice() -> pd.DataFrame:
    """Taken: the least SM_vs_P0 of what has an OddsRatio of at most .41, the operating point."""
    tried = [{"regions": r, "saturation": s} for r in REGIONS for s in SATURATIONS]
    return rows("feed", CHOOSING, [Wanted({"kernel": "rapo", **s}, {"setting": s}) for s in tried])


def choice_baseline() -> pd.DataFrame:
    """Taken: the strength with the least SM_vs_P0 at RAPO's return or more."""
    tried = [
        {"rate_strength": strength, "rate_window": window}
        for window in (Setting.of().rate_window, ALL_TIME)
        for strength in STRENGTHS
    ]
    return rows(
        "feed",
        CHOOSING,
        [
            Wanted({"kernel": "false-rate", **s}, {"kernel": "false-rate", "setting": s})
            for s in tried
        ],
    )


if __name__ == "__main__":
    main(__doc__, {"choice": choice, "choice_baseline": choice_baseline}, "feed")
