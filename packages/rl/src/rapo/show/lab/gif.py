"""The shown episode of both sides as a GIF, drawn by `rapo.show.film`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from rapo.show.film import Recording, film, record
from rapo.show.film.recording import frame_steps
from rapo.show.lab.film import film_of
from rapo.show.lab.numbers import Check, Tell
from rapo.show.lab.policies import find_policy
from rapo.show.lab.request import Draws, Side
from rapo.show.lab.sources import GraphSource, Source

EVERY = 10
"""Steps between two frames."""
NAMES = {"full": "RAPO", "off": "P0", "topk": "top k", "local": "local"}


def gif_of(
    source: Source, sides: tuple[Side, Side], draws: Draws, check: Check, tell: Tell
) -> bytes:
    """The film as bytes; B stands on the left, in the colours of the page.

    Replay has the draws of Exposure, whatever is chosen on the page, as in every film of
    `rapo watch`, which says so below its pictures.

    Args:
        source: where.
        sides: A and B.
        draws: which episodes, and which of them is shown.
        check: called now and then; it may raise to end the work.
        tell: told which share of the frames is drawn.
    """
    a, b = (
        _recording(source, side, draws, name, check) for name, side in zip("AB", sides, strict=True)
    )
    frames, drawn = len(frame_steps(a.spans, EVERY)), count(1)

    def tick(done: int) -> None:
        check()
        tell(next(drawn) / frames)

    with tempfile.TemporaryDirectory(prefix="rapo-lab-") as folder:
        path = film(b, a, Path(folder) / "lab.gif", tick=tick)
        return path.read_bytes()


def _recording(source: Source, side: Side, draws: Draws, name: str, check: Check) -> Recording:
    heading = f"{name}: {NAMES[side.scope.partition(':')[0]]}"
    deformed = side.scope != "off"
    if not isinstance(source, GraphSource):
        found = find_policy(source, side)
        return record(
            source.make(side, found.observe), found.policy, deformed=deformed, name=heading,
            seed=draws.seed + draws.shown, stimulus=draws.stimulus or None, every=EVERY,
            tick=lambda _: check(),
        )  # fmt: skip
    shown = film_of(source, side, replace(draws, coupled=True), check)
    regions = source.regions(side.regions)
    T = sum(source.horizons)
    active = np.unpackbits(
        shown.arrays["active"], axis=1, count=source.graph.n, bitorder="little"
    ).view(np.bool_)
    H: Any = np.zeros((T, int(regions.max()) + 1), np.float32)
    # A film of many regions tells their fields at fewer steps: the last that is known holds on.
    rows = (1 + np.arange(T)) // shown.every - 1
    live = np.unique(regions[source.graph.sensitive])
    H[:, live] = np.where(rows[:, None] >= 0, shown.arrays["H"][rows], 0)
    return Recording.of_steps(
        heading, source.graph, regions, active=active, H=H, params=side.params,
        spans=source.horizons, every=EVERY, deformed=deformed,
    )  # fmt: skip
