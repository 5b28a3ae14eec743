"""The version of the installed package, and a warning where a stranger shares its import name."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "rapo-rl"
"""What pip installs; the package that is imported is `rapo`."""


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"


def warn_of_stranger() -> None:
    """Say so where the distribution `rapo`, another project's, is installed beside ours."""
    try:
        found = version("rapo")
    except PackageNotFoundError:
        return
    text = (
        f"the distribution rapo {found} is another project, whose package is called rapo too: the "
        f"files of one replace those of the other. pip uninstall rapo {DISTRIBUTION}, then pip "
        f"install {DISTRIBUTION}"
    )
    warnings.warn(text, stacklevel=2)


VERSION = _version()
