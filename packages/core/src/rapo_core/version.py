"""The installed version, and what is wrong with an installation of which parts do not fit."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed(distribution: str) -> str | None:
    """Version of an installed distribution, such as `rapo-core`; None where there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


VERSION = installed("rapo-core") or "0+unknown"
"""One number for all of our distributions; `0+unknown` in a source tree that is not installed."""


def installation_fault(distribution: str) -> str | None:
    """Say in one line what is wrong with the installed parts of `rapo`, and the command to run.

    Args:
        distribution: the one that was imported, `rapo-rl` or `rapo-gate`.
    """
    number = installed(distribution)
    if number is not None and number != VERSION:
        return (
            f"{distribution} {number} and rapo-core {VERSION} are installed side by side, and only "
            f"equal versions fit: pip install --upgrade {distribution} rapo-core"
        )
    stranger = installed("rapo")
    if distribution == "rapo-rl" and stranger is not None:
        return (
            f"the distribution rapo {stranger} is another project, whose package is called rapo "
            "too: the files of one replace those of the other. pip uninstall rapo rapo-rl, then "
            "pip install rapo-rl"
        )
    return None
