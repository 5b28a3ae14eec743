"""`Setting`: every open value of the warehouse, frozen in `setting.toml`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from rapo.platforms.settings import FrozenSetting
from rapo_core.checks import Count, Ends, FromOne, Positive, Share, ShareOrNone, UserError, Within

MOST_ROUTES = 31
"""Routes are bits of a whole number while they are compared."""
NOT_LAID_OUT = ("robots", "dispatch", "pick", "stall", "stray", "delay", "saturation", "timer")


@dataclass(frozen=True)
class Setting(FrozenSetting):
    """What each value means stands beside it in `setting.toml`."""

    doors: Count
    gates: Count
    picks: Count
    radius: Count
    errands: Count
    trip: Annotated[tuple[Count, Count], Ends()]
    pool: Count
    stimuli: Count
    robots: Count
    dispatch: tuple[Share, ...]
    pick: Count
    routes: Annotated[int, Within(1, MOST_ROUTES)]
    longest: FromOne
    apart: ShareOrNone
    temperature: Positive
    zone: tuple[Count, Count]
    hazards: Count
    way_round: Share
    detour: ShareOrNone
    touched: Annotated[tuple[Share, Share], Ends()]
    stall: ShareOrNone
    stray: ShareOrNone
    delay: Count
    saturation: Share
    timer: Count

    def check(self) -> None:
        """Refuse values that do not go together."""
        for name, larger in (("gates", 2 * self.doors), ("errands", self.gates * self.picks)):
            if getattr(self, name) > larger:
                raise UserError(f"{name} must be <= {larger}, got {getattr(self, name)}")

    def layout(self) -> Setting:
        """This setting with frozen values in all fields that waves, routes, hazards do not need."""
        frozen = Setting.of()
        return replace(self, **{name: getattr(frozen, name) for name in NOT_LAID_OUT})
