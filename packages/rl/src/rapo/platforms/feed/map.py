"""The lab's map of the feed: claims in the discs of their regions, users on the claims they see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rapo.platforms.candidates import Array, State
from rapo.platforms.feed.picture import places
from rapo.platforms.map import PlatformMap, coordinates, extent

if TYPE_CHECKING:
    from rapo.platforms.feed.platform import Feed


def feed_map(feed: Feed) -> PlatformMap:
    """The discs of the regions, and a dot for each claim."""
    claims, (points, centre, radius) = feed.claims, places(feed.claims, feed.setting.regions)
    low, size = extent(np.concatenate([centre - radius[:, None], centre + radius[:, None]]))
    dots = (points - low) / size
    discs = np.column_stack([(centre - low) / size, radius / size.max()])
    of_claims = coordinates(dots)

    def walkers(state: State) -> Array:
        item = state["item"][0]
        return np.where(item[:, None] >= 0, of_claims[item], coordinates(dots[:1], False))

    return PlatformMap(
        kind="discs",
        aspect=float(size[0] / size[1]),
        harmful=np.bincount(feed.region[claims.false], minlength=len(radius)) > 0,
        arrays={"shapes": discs.astype(np.float32), "dots": dots.astype(np.float32)},
        walkers=walkers,
    )
