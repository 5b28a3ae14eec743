"""`Setting`: every open value of the routing platform, frozen in `setting.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from rapo.platforms.settings import FrozenSetting
from rapo_core.checks import Count, Ends, FromOne, Positive, Share, UserError


@dataclass(frozen=True)
class Setting(FrozenSetting):
    """What each value means stands beside it in `setting.toml`."""

    nodes: Annotated[tuple[Count, Count], Ends()]
    links_per_node: Positive
    hop_km: Positive
    paths: Count
    penalty: FromOne
    pool: Count
    pairs: Count
    stimuli: Count
    flows: Count
    temperatures: tuple[Positive, ...]
    arrival: Share
    size: FromOne
    capacity: Positive
    grey: Share
    loss: Share
    touched: Annotated[tuple[Share, Share], Ends()]
    blame: Literal["link", "path"]
    delay: Count
    saturation: Share
    half_life: Positive
    reuse: Positive
    suppress: Positive
    longest: Positive
    flap: Positive

    def check(self) -> None:
        """Refuse values that do not go together."""
        if self.suppress < self.reuse:
            raise UserError(f"suppress must be >= {self.reuse:g}, got {self.suppress}")
