"""`Setting`: every open value of the twin, frozen in `setting.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rapo.platforms.settings import FrozenSetting
from rapo_core.checks import Count, Ends, FromZero, Positive, Share, UserError, Within

Span = Annotated[tuple[FromZero, FromZero], Ends(equal=False)]
"""Low and high of mol/L or of K."""


@dataclass(frozen=True)
class Setting(FrozenSetting):
    """What each value means stands beside it in `setting.toml`."""

    units: Count
    activity: FromZero
    fouling: FromZero
    minutes: Positive
    set_points: tuple[Positive, ...]
    candidates: Annotated[int, Within(2)]
    farthest: Positive
    spread: Positive
    stimuli: Count
    swing_c: FromZero
    swing_T: FromZero
    mix: Annotated[tuple[FromZero, FromZero], Ends()]
    period: Annotated[tuple[Positive, Positive], Ends(equal=False)]
    lag: FromZero
    damage: Positive
    warm: Positive
    box: tuple[Span, Span]
    cells: tuple[Count, Count]
    window: tuple[Span, Span]
    delay: Count
    saturation: Share
    centres: Count
    spreads: Positive
    trip_above: Positive
    trip_to: Annotated[int, Within(0)]

    def check(self) -> None:
        """Refuse values that do not go together."""
        if self.trip_to >= self.candidates:
            raise UserError(f"trip_to must be below {self.candidates}, got {self.trip_to}")
