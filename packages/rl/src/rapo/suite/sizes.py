"""How much the suite runs: platform seeds, episodes, horizons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rapo_core.checks import UserError


@dataclass(frozen=True)
class Size:
    """A preset."""

    name: str
    seeds: tuple[int, ...]
    """Of the platforms; those from 1000 on chose the settings and are scored nowhere."""
    episodes: int
    """On each platform, with seeds 1000 s, 1000 s + 1, ... on platform s."""
    horizons: tuple[int, int, int]
    """Steps of exposure, decay and replay."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(self).items()}


SIZES = {
    size.name: size
    for size in (
        Size("smoke", (0, 1), 2, (200, 80, 200)),
        Size("quick", (0, 1, 2, 3, 4), 10, (500, 200, 500)),
        Size("full", tuple(range(10)), 20, (500, 200, 500)),
    )
}


def size_named(name: str) -> Size:
    """A preset by its name."""
    if name not in SIZES:
        raise UserError(f"preset must be one of {', '.join(SIZES)}, got {name!r}")
    return SIZES[name]
