"""Where the real data of platforms are, and what happens where they are not."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from rapo_core.checks import UserError, one_of

SOURCES = ("auto", "real", "stand-in")
STAND_IN = "stand-in"
"""What `describe()["data"]` says of generated data."""


def data_folder() -> Path:
    """`RAPO_DATA`, or the folder `shared/data` beside a checkout."""
    given = os.environ.get("RAPO_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[6] / "shared" / "data"


def settled(source: str, platform: str, *files: str) -> str:
    """`real` or `stand-in`, whichever a platform runs on.

    Args:
        source: `real`, `stand-in`, or `auto`: a stand-in with a warning where the data are missing.
        platform: Gymnasium id that the warning names.
        files: of the real data, in the folder of the data sets.

    Raises:
        ValueError: another source, or the data are not there and only these will do.
    """
    if one_of("data", source, SOURCES) == STAND_IN:
        return source
    absent = [path for file in files if not (path := data_folder() / file).is_file()]
    if not absent:
        return "real"
    if source == "real":
        raise UserError(f"there is no {absent[0]}; set RAPO_DATA to the folder of the data sets")
    warnings.warn(
        f"{absent[0]} is absent: {platform} runs on generated data (stand-in). Set RAPO_DATA to "
        "the folder of the data sets for the real ones.",
        stacklevel=3,
    )
    return STAND_IN
