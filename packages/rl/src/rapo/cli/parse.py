"""Values that options take in a form of their own: counts, lists of seeds, horizons."""

from __future__ import annotations

import re

from rapo_core.checks import UserError, whole_number


def parse_count(name: str, text: str) -> int:
    """A whole number from `2000000` or `2e6`."""
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise UserError(f"{name} must be a whole number such as 2e6, got {text!r}") from None
    return whole_number(name, int(value), 1, 10**15)


def parse_seeds(name: str, text: str) -> list[int]:
    """Seeds from `3`, `0,2,5` or `0-9`."""
    seeds: list[int] = []
    for part in text.split(","):
        bounds = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if bounds is None or (bounds[2] and int(bounds[2]) < int(bounds[1])):
            raise UserError(f"{name} must be seeds such as 3, 0,2,5 or 0-9, got {text!r}")
        seeds += range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"{name} names a seed twice: {text!r}")
    return seeds


def parse_horizons(text: str) -> tuple[int, int, int]:
    """Steps of Exposure, the washout and Replay from `500,200,500`."""
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"horizons must be three whole numbers such as 500,200,500, got {text!r}")
    exposure, washout, replay = (int(part) for part in parts)
    return exposure, washout, replay
