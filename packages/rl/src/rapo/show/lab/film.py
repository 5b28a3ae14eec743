"""The shown episode of a variant: its arrays for the page, and the GIF of both variants."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.show.film import film
from rapo.show.lab.latest_job import OnProgress
from rapo.show.lab.policies import load_policy
from rapo.show.lab.request import Episodes, Variant
from rapo.show.lab.sources import Source
from rapo.show.record import GraphView, Recording, record

SCOPES = {"full": "RAPO", "off": "P0", "topk": "top k", "local": "local"}
"""Titles of the scopes of a deformation."""


def record_shown(
    source: Source,
    variant: Variant,
    episodes: Episodes,
    on_progress: OnProgress,
    *,
    name: str = "A",
    coupled: bool | None = None,
) -> Recording:
    """Run the shown episode of a variant once more and write it down.

    Args:
        source: the graph or platform.
        variant: the setting.
        episodes: which episodes, and which of them is shown.
        on_progress: called after every step; it may raise to end the run.
        name: letter of the variant.
        coupled: whether Replay reuses the draws of Exposure; default as in `episodes`.
    """
    loaded = load_policy(source, variant)
    return record(
        source.make(variant, loaded.observe), loaded.policy, deformed=variant.scope != "off",
        name=f"{name}: {SCOPES[variant.scope.partition(':')[0]]}",
        seed=episodes.seed + episodes.shown, stimulus=episodes.stimulus or None,
        coupled=episodes.coupled if coupled is None else coupled, on_progress=on_progress,
    )  # fmt: skip


def arrays_of(recording: Recording) -> dict[str, npt.NDArray[Any]]:
    """What the page draws of T steps on n nodes, or of a platform with m walkers.

    Of a graph `active` (T, bytes) has a bit per node and `region` (n,) its column in the fields or
    -1; of a platform there are `walkers` (T, m, 2) and `load` (T, R). `G` and `H` (rows, R) are
    those of `Fields`, and `never_gated` (R,) is 1 where the deformation never acts.
    """
    fields, view = recording.fields, recording.view
    memory: dict[str, npt.NDArray[Any]] = {
        "G": fields.G,
        "H": fields.H,
        "never_gated": fields.never_gated.astype(np.uint8),
    }
    if not isinstance(view, GraphView):
        return {"walkers": view.walkers, "load": view.load, **memory}
    column = np.full(int(view.regions.max()) + 1, -1, np.int32)
    column[fields.regions] = np.arange(len(fields.regions))
    return {"active": view.bits, "region": column[view.regions], **memory}


def gif_of(
    source: Source,
    variants: tuple[Variant, Variant],
    episodes: Episodes,
    on_progress: OnProgress,
) -> bytes:
    """The film of both variants as a GIF; B stands on the left, in the colours of the page.

    Replay has the draws of Exposure, whatever is chosen on the page, as in every film.

    Args:
        source: the graph or platform.
        variants: A and B.
        episodes: which episodes, and which of them is shown.
        on_progress: called after every step and every frame; it may raise to end the work.
    """
    a, b = (
        record_shown(source, variant, episodes, on_progress, name=name, coupled=True)
        for name, variant in zip("AB", variants, strict=True)
    )
    with tempfile.TemporaryDirectory(prefix="rapo-lab-") as folder:
        return film(b, a, Path(folder) / "lab.gif", on_progress=on_progress).read_bytes()
