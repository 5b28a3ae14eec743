"""Films of replay: `P0` beside RAPO with the same draws, as GIF or MP4.

Its files, in the order in which data flows:

- recording: one episode, kept at the steps that are shown
- panels, scene: a graph or a platform's picture; both halves and their curves, a frame at a
  time
- palette, encode, output: colours of a GIF; GIF or MP4, whole or not at all; `film`
- subject, command, cli: behind `rapo watch`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.show.film.output import film
    from rapo.show.film.recording import GraphView, PlatformView, Recording, record

_HOME = {
    "GraphView": "rapo.show.film.recording",
    "PlatformView": "rapo.show.film.recording",
    "Recording": "rapo.show.film.recording",
    "film": "rapo.show.film.output",
    "record": "rapo.show.film.recording",
}

__all__ = ["GraphView", "PlatformView", "Recording", "film", "record"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rapo.show.film' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
