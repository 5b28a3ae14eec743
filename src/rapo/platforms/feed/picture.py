"""A picture of the feed: claims by region, what is hot, what is false, where the scars are."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from rapo.core.deformation import conductance
from rapo.platforms.canvas import SCAR, Canvas, when
from rapo.platforms.feed.claims import Claims

if TYPE_CHECKING:
    from rapo.platforms.feed.platform import Feed

Array = npt.NDArray[Any]

QUIET, FALSE, HOT, PUSHED, RIM = "#5f6b7a", "#D55E00", "#F0E442", "#56B4E9", "#2d333d"
SPIRAL = np.pi * (3 - np.sqrt(5))


@lru_cache(maxsize=4)
def places(claims: Claims, regions: int) -> tuple[Array, Array, Array]:
    """Where claims (N, 2) and centres of regions (R, 2) are, and the radii of these (R,).

    Regions with a common audience lie near each other; their claims form spirals.
    """
    region = claims.clusters(regions)
    member = np.eye(regions)[region]
    ties = member.T @ claims.likeness @ member
    radius = 0.022 * np.sqrt(member.sum(axis=0) + 0.5)
    graph = nx.from_numpy_array(np.sqrt(ties * (1 - np.eye(regions))))
    found = nx.spring_layout(graph, k=1.5 / np.sqrt(regions), iterations=200, seed=1)
    centre = np.array([found[r] for r in range(regions)])
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
    turn, out = rank * SPIRAL, 0.022 * np.sqrt(rank)
    return centre[region] + np.stack([out * np.cos(turn), out * np.sin(turn)], 1), centre, radius


def draw_feed(feed: Feed, episode: int) -> Array:
    """A frame (800, 800, 3) uint8 of one episode."""
    claims, e = feed.claims, episode
    at, centre, radius = places(claims, feed.setting.regions)
    item, heat = feed.state["item"][e], feed.state["heat"][e]
    psi = conductance(np.asarray(feed.G)[e], np.asarray(feed.H)[e], feed.params)
    canvas = Canvas((8, 8), (0.01, 0.05, 0.98, 0.87))
    ax = canvas.ax
    for r, (left, up) in enumerate(centre):
        dark = float(1 - psi[r]) / (1 - feed.params.psi_min)
        style = {"lw": 0.4 + 2.2 * dark, "ec": SCAR if dark > 0.02 else RIM}
        ax.add_patch(Circle((left, up), radius[r] + 0.012, fc=(SCAR, 0.45 * dark), **style))
    served = np.bincount(item[item >= 0], minlength=len(heat))
    hot = np.flatnonzero(heat > 0.01)
    x, y = at.T
    ax.scatter(x[hot], y[hot], s=40 + 900 * np.minimum(heat[hot], 1), c=HOT, alpha=0.22, lw=0)
    shade = np.where(claims.false, FALSE, QUIET)
    ax.scatter(x, y, s=3 + 9 * feed.popularity + 12 * np.minimum(served, 12), c=shade, lw=0)
    pushed = feed.pushed[feed.stimulus[e] - 1]
    if feed.stimulus_on[e] > 0:
        ax.scatter(x[pushed], y[pushed], s=150, marker="o", fc="none", ec=PUSHED, lw=1.6)
    ax.set_aspect("equal")
    ax.margins(0.03)
    keys = (("false claim", FALSE), ("other claim", QUIET), ("heat", HOT), ("pushed", PUSHED),
            ("scarred region", SCAR))  # fmt: skip
    canvas.legend([Line2D([], [], marker="o", ls="", color=c, label=n) for n, c in keys])
    there = item >= 0
    return canvas.pixels(
        f"{when(feed, e)}      {there.sum()} users in the feed, "
        f"{(there & claims.false[item]).sum()} on false claims"
    )
