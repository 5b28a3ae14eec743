"""`Setting`: every open value of the feed, frozen in `setting.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from rapo.platforms.settings import FrozenSetting
from rapo_core.checks import Count, FromOne, FromZero, Level, Share, ShareOrNone, UserError


@dataclass(frozen=True)
class Setting(FrozenSetting):
    """What each value means stands beside it in `setting.toml`."""

    users: Count
    stimuli: Count
    push: Count
    up_next: Count
    personal: Count
    pages: Count
    push_level: Level
    follow: Level
    taste: Level
    boosts: tuple[FromZero, ...]
    heat_kept: ShareOrNone
    heat_gain: FromZero
    come: Share
    leave: Share
    popular: ShareOrNone
    social: ShareOrNone
    delay: Count
    regions: Count
    saturation: Share
    rate_strength: FromZero
    rate_window: FromOne

    def check(self) -> None:
        """Refuse values that do not go together."""
        if self.popular + self.social > 1:
            raise UserError(
                f"popular + social must be at most 1, got {self.popular} + {self.social}"
            )
