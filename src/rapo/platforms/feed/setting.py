"""`Setting`: every open value of the feed, read from `setting.toml` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from math import isfinite
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Choices about users, candidates, heat, engagement and memory; `Setting.frozen()` reads them.

    Raises:
        ValueError: a value out of its range, by name.
    """

    users: int
    """m, >= 1; accounts of the data that shared five claims or more."""
    stimuli: int
    """False claims that may be pushed, >= 1."""
    push: int
    """Slots of pushed claims, >= 1: the false claim and its nearest neighbours by audience."""
    up_next: int
    """Slots of the last item's nearest neighbours, >= 1."""
    personal: int
    """Slots of a user's own, >= 1: nobody is ever without a candidate."""
    pages: int
    """Pages of personal claims that are shown in turn, >= 1."""
    push_level: float
    """Score of a pushed claim."""
    follow: float
    """Score of the nearest neighbour of the last item; others in proportion to their likeness."""
    taste: float
    """Score of a user's best personal claim; the last of the pool has 0."""
    boosts: tuple[float, ...]
    """Weight of virality (size of the real tree, heat) in the score, by action, >= 0."""
    heat_kept: float
    """Share of the heat that is left after a step, in [0, 1)."""
    heat_gain: float
    """Heat that a claim gains when it is served to everybody, >= 0."""
    come: float
    """Probability that an absent user opens the feed in a step of a campaign, in (0, 1]."""
    leave: float
    """Probability that a user closes it in a step, in (0, 1]; nobody comes after a campaign."""
    popular: float
    """Share of popularity in engagement, in [0, 1]; what `social` leaves is fit to the user."""
    social: float
    """Share of heat (at most 1) in engagement, in [0, 1 - popular]."""
    delay: int
    """D: steps until a served false claim is reported, >= 1."""
    regions: int
    """Clusters of the co-audience embedding, >= 1."""
    saturation: float
    """Share of users on false claims at which harm reaches 1, in (0, 1]."""
    rate_strength: float
    """Of the field's own baseline: psi = exp(-strength * false rate), >= 0."""
    rate_window: float
    """Of the same: mean age in steps of the serves that its rates count, >= 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "boosts", tuple(self.boosts))
        zero_to_one = ("heat_kept", "popular", "social", "come", "leave", "saturation")
        at_least_one = ("users", "stimuli", "push", "up_next", "personal", "pages", "delay",
                        "regions", "rate_window")  # fmt: skip
        for name in (f.name for f in fields(self)):
            for value in self.boosts if name == "boosts" else (getattr(self, name),):
                low = 1 if name in at_least_one else -100 if name in _SCORES else 0
                high = 1 if name in zero_to_one else float("inf")
                if not (isfinite(value) and low <= value <= high):
                    raise ValueError(f"{name} must be in [{low}, {high}], got {value!r}")
        if self.popular + self.social > 1:
            raise ValueError(
                f"popular + social must be at most 1, got {self.popular} + {self.social}"
            )
        if not self.boosts:
            raise ValueError("boosts must name at least one action, got none")

    @classmethod
    def frozen(cls) -> Setting:
        """The setting of `rapo/Feed-v0`."""
        text = files("rapo.platforms.feed").joinpath("setting.toml").read_text("utf-8")
        return cls(**tomllib.loads(text))

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Setting | None = None) -> Setting:
        """The frozen setting, with some values changed; an unknown name is an error."""
        if isinstance(changes, Setting):
            return changes
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(known))
        if unknown:
            raise ValueError(f"unknown values {unknown} of the feed's setting; known are {known}")
        return replace(cls.frozen(), **(changes or {}))


_SCORES = ("push_level", "follow", "taste")
