"""Where the real data of platforms are, and what a platform runs on where they are missing."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from rapo_core.checks import UserError, one_of

AUTO, REAL, STAND_IN = "auto", "real", "stand-in"
"""Values of the option `data`. `describe()["data"]` says `stand-in` of generated data."""
REMEDY = "`rapo docs suite` says where the real data come from; set RAPO_DATA to their folder"


def data_folder() -> Path | None:
    """Return the folder that `RAPO_DATA` names, or else `shared/data` beside a checkout.

    An installed package is in no checkout: without `RAPO_DATA` it has no folder of data.
    """
    named = os.environ.get("RAPO_DATA")
    if named:
        return Path(named)
    checkout = Path(__file__).resolve().parents[5]
    in_checkout = (checkout / "packages" / "rl" / "src" / "rapo").is_dir()
    return checkout.parent / "shared" / "data" if in_checkout else None


def missing_data(*files: str) -> str:
    """Say why files of real data cannot be read; empty if all of them are there."""
    folder = data_folder()
    if folder is None:
        return "RAPO_DATA is not set" if files else ""
    return next((f"there is no {folder / f}" for f in files if not (folder / f).is_file()), "")


def data_path(file: str) -> Path:
    """Return where a file of real data is.

    Raises:
        UserError: the file is missing; the message says how to get the real data.
    """
    folder, reason = data_folder(), missing_data(file)
    if folder is None or reason:
        raise UserError(f"{reason}; {REMEDY}")
    return folder / file


def data_source(source: str, platform: str, *files: str) -> str:
    """Return `real` or `stand-in`, whichever a platform runs on.

    Args:
        source: `real`, `stand-in`, or `auto`: a stand-in with a warning where data are missing.
        platform: Gymnasium id that the warning names.
        files: of the real data, in the folder of data sets.

    Raises:
        UserError: the source is unknown, or real data are demanded and missing.
    """
    if one_of("data", source, (AUTO, REAL, STAND_IN)) == STAND_IN:
        return STAND_IN
    reason = missing_data(*files)
    if not reason:
        return REAL
    if source == REAL:
        raise UserError(f"{reason}; {REMEDY}")
    warnings.warn(f"{reason}: {platform} runs on generated data (stand-in); {REMEDY}", stacklevel=3)
    return STAND_IN
