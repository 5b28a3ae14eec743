"""The shown episode of a variant: its arrays for the page, and the GIF of both variants."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.show.film import film
from rapo.show.lab.numbers import Check, Tell
from rapo.show.lab.policies import find_policy
from rapo.show.lab.request import Draws, Side
from rapo.show.lab.sources import Source
from rapo.show.record import GraphView, Recording, record

NAMES = {"full": "RAPO", "off": "P0", "topk": "top k", "local": "local"}
"""Names of the scopes of a deformation."""


def recorded(
    source: Source, side: Side, draws: Draws, check: Check, *, name: str = "A", coupled: bool
) -> Recording:
    """Run the shown episode of a side once more and write it down.

    Args:
        source: the graph or platform.
        side: the setting.
        draws: which episodes, and which of them is shown.
        check: called after every step; it may raise to end the run.
        name: letter of the side.
        coupled: whether Replay reuses the draws of Exposure.
    """
    found = find_policy(source, side)
    return record(
        source.make(side, found.observe), found.policy, deformed=side.scope != "off",
        name=f"{name}: {NAMES[side.scope.partition(':')[0]]}", seed=draws.seed + draws.shown,
        stimulus=draws.stimulus or None, coupled=coupled, on_progress=lambda done, total: check(),
    )  # fmt: skip


def arrays_of(recording: Recording) -> dict[str, npt.NDArray[Any]]:
    """What the page draws of T steps on n nodes, or of a platform with m walkers.

    Of a graph `active` (T, bytes) has a bit per node and `region` (n,) its row in the fields or
    -1; of a platform there are `walkers` (T, m, 2) and `load` (T, R). `G` and `H` (rows, R) are
    those of `Fields`, and `open` (R,) is 1 where the deformation never acts.
    """
    fields, view = recording.fields, recording.view
    memory: dict[str, npt.NDArray[Any]] = {
        "G": fields.G,
        "H": fields.H,
        "open": fields.never_gated.astype(np.uint8),
    }
    if not isinstance(view, GraphView):
        return {"walkers": view.walkers, "load": view.load, **memory}
    row = np.full(int(view.regions.max()) + 1, -1, np.int32)
    row[fields.regions] = np.arange(len(fields.regions))
    return {"active": view.bits, "region": row[view.regions], **memory}


def gif_of(
    source: Source, sides: tuple[Side, Side], draws: Draws, check: Check, tell: Tell
) -> bytes:
    """The film of both sides as a GIF; B stands on the left, in the colours of the page.

    Replay has the draws of Exposure, whatever is chosen on the page, as in every film.

    Args:
        source: the graph or platform.
        sides: A and B.
        draws: which episodes, and which of them is shown.
        check: called after every step and frame; it may raise to end the work.
        tell: called with the share of the frames that is drawn.
    """
    a, b = (
        recorded(source, side, draws, check, name=name, coupled=True)
        for name, side in zip("AB", sides, strict=True)
    )

    def on_progress(done: int, total: int) -> None:
        check()
        tell(done / total)

    with tempfile.TemporaryDirectory(prefix="rapo-lab-") as folder:
        return film(b, a, Path(folder) / "lab.gif", on_progress=on_progress).read_bytes()
