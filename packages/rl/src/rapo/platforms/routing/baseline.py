"""Route-flap damping of links (RFC 2439, RFC 7196): the field's own baseline, as a memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.platforms.memory import RegionMemory
from rapo.platforms.routing.setting import Setting
from rapo_core.memory import Array, HarmMemory

LEAST = 1e-6
"""Psi of paths over suppressed links: flows take such a path only where there is no other."""


class Penalties(HarmMemory):
    """`G` is a link's penalty, `H` is 1 while the link is suppressed; harm arrives after the delay.

    A penalty halves in `half_life` steps. Above `suppress` the link is suppressed until the penalty
    falls below `reuse`. The penalty is capped, so that suppression ends after `longest` steps.
    """

    def __init__(self, regions: int, setting: Setting, **options: Any) -> None:
        super().__init__(regions, **options)
        self.setting = setting

    def _apply(self, harm: Array, weights: Array) -> None:
        s = self.setting
        keep, most = 0.5 ** (1 / s.half_life), s.reuse * 2 ** (s.longest / s.half_life)
        penalty = np.minimum(keep * self._G + s.flap * harm[:, None] * weights, most)
        suppressed = np.where(penalty > s.suppress, 1.0, np.where(penalty < s.reuse, 0.0, self._H))
        self._G, self._H = penalty, suppressed


def damped(memory: RegionMemory, setting: Setting) -> RegionMemory:
    """A memory under which flows avoid suppressed links and else follow `P0`."""
    links = memory.harm
    penalties = Penalties(
        links.regions, setting, params=links.params, batch=links.batch, delay=links.delay
    )
    return memory.ruled_by(penalties, (0.0, -np.log(LEAST), LEAST))
