"""A picture of the feed: claims by region, heat, false claims and scars."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib.collections import PatchCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from rapo.platforms.canvas import SCAR, Canvas, when
from rapo.platforms.feed.claims import Claims
from rapo_core.deformation import conductance

if TYPE_CHECKING:
    from rapo.platforms.feed.platform import Feed

Array = npt.NDArray[Any]

QUIET, FALSE, HOT, PUSHED, RIM = "#5f6b7a", "#D55E00", "#F0E442", "#56B4E9", "#2d333d"
SPIRAL = np.pi * (3 - np.sqrt(5))


@lru_cache(maxsize=4)
def places(claims: Claims, regions: int) -> tuple[Array, Array, Array]:
    """Positions of claims (N, 2) and of regions' centres (R, 2), and radii of regions (R,).

    Regions with a common audience lie near each other; their claims form spirals.
    """
    region = claims.clusters(regions)
    member = np.eye(regions)[region]
    ties = member.T @ claims.likeness @ member
    radius = 0.022 * np.sqrt(member.sum(axis=0) + 0.5)
    graph = nx.from_numpy_array(np.sqrt(ties * (1 - np.eye(regions))))
    layout = nx.spring_layout(graph, k=1.5 / np.sqrt(regions), iterations=200, seed=1)
    centre = np.array([layout[r] for r in range(regions)])
    centre = 1.3 * centre / np.sqrt(np.linalg.norm(centre, axis=1, keepdims=True) + 0.05)
    for _ in range(300):  # push overlapping regions apart
        apart = centre[:, None] - centre[None]
        distance = np.linalg.norm(apart, axis=2) + np.eye(regions)
        overlap = np.maximum(radius[:, None] + radius[None] + 0.02 - distance, 0)
        np.fill_diagonal(overlap, 0)
        centre = centre + 0.3 * (apart / distance[..., None] * overlap[..., None]).sum(axis=1)
    rank = np.zeros(len(region))
    for r in range(regions):  # the largest trees in the middle
        inside = np.flatnonzero(region == r)
        rank[inside[np.argsort(-claims.size[inside])]] = np.arange(len(inside))
    angle, out = rank * SPIRAL, 0.022 * np.sqrt(rank)
    return centre[region] + np.stack([out * np.cos(angle), out * np.sin(angle)], 1), centre, radius


class Picture:
    """Frames of one feed. The figure is made once; its regions and claims change.

    Args:
        feed: what to draw.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        claims = feed.claims
        self._at, centre, radius = places(claims, feed.setting.regions)
        self._canvas = Canvas((8, 8), (0.01, 0.05, 0.98, 0.87))
        ax = self._canvas.ax
        discs = [
            Circle((left, up), r + 0.012) for (left, up), r in zip(centre, radius, strict=True)
        ]
        self._regions: Any = PatchCollection(discs)
        ax.add_collection(self._regions)
        self._heat: Any = ax.scatter([], [], c=HOT, alpha=0.22, lw=0)
        shade = np.where(claims.false, FALSE, QUIET)
        x, y = self._at.T
        self._claims: Any = ax.scatter(x, y, c=shade, lw=0)
        self._pushed: Any = ax.scatter([], [], s=150, marker="o", fc="none", ec=PUSHED, lw=1.6)
        ax.set_aspect("equal")
        ax.margins(0.03)
        keys = (("false claim", FALSE), ("other claim", QUIET), ("heat", HOT), ("pushed", PUSHED),
                ("scarred region", SCAR))  # fmt: skip
        self._canvas.legend([Line2D([], [], marker="o", ls="", color=c, label=n) for n, c in keys])
        self._canvas.finish(self._regions, self._heat, self._claims, self._pushed)

    def draw(self, episode: int) -> Array:
        """A picture (800, 800, 3) uint8 of one episode."""
        feed, e = self._feed, episode
        item, heat = feed.state["item"][e], feed.state["heat"][e]
        psi = conductance(np.asarray(feed.G)[e], np.asarray(feed.H)[e], feed.params)
        dark = (1 - psi) / max(1 - feed.params.psi_min, 1e-9)  # a floor of 1 is no gate
        self._regions.set_facecolors([(SCAR, 0.45 * d) for d in dark])
        self._regions.set_edgecolors(np.where(dark > 0.02, SCAR, RIM))
        self._regions.set_linewidths(0.4 + 2.2 * dark)
        hot = np.flatnonzero(heat > 0.01)
        self._heat.set_offsets(self._at[hot])
        self._heat.set_sizes(40 + 900 * np.minimum(heat[hot], 1))
        there = item >= 0
        served = np.bincount(item[there], minlength=len(heat))
        self._claims.set_sizes(3 + 9 * feed.popularity + 12 * np.minimum(served, 12))
        on = feed.stimulus_on[e] > 0
        self._pushed.set_offsets(self._at[feed.pushed[feed.stimulus[e] - 1] if on else []])
        return self._canvas.pixels(
            f"{when(feed, e)}      {there.sum()} users in the feed, "
            f"{(there & feed.claims.false[item]).sum()} on false claims"
        )
