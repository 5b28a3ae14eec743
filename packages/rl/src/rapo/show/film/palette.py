"""`Palette`: the few colours of a GIF, and pictures reduced to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.frame_cache import Pixels

COLOURS = 250
"""Colours of a GIF; one of its 256 marks pixels that stay as in the frame before."""
COMMON = 100
"""How many of the commonest colours are kept exactly."""
UNKNOWN = 255
"""Entry of a colour whose nearest colour has not been looked up."""


class Palette:
    """Colours that suit some pictures.

    The commonest are kept as they are, so that grounds stay flat; the others are those of a median
    cut of the rest. Every colour becomes the nearest of them, without dithering: what does not
    change between frames must not flicker.

    Args:
        samples: pictures (H, W, 3).
        kept: (k, 3) colours that are among them anyway, at most 100.
    """

    def __init__(self, samples: Sequence[Pixels], kept: Pixels) -> None:
        from PIL import Image

        packed, count = np.unique(np.concatenate([_packed(s) for s in samples]), return_counts=True)
        ranked = packed[np.lexsort((packed, -count))]
        ranked = ranked[~np.isin(ranked, _packed(kept))]
        exact, rest = _unpacked(ranked[:COMMON]), _unpacked(ranked[COMMON:])
        room = COLOURS - COMMON - len(kept)
        if len(rest) > room:
            cut = Image.fromarray(rest[None]).quantize(room, Image.Quantize.MEDIANCUT)
            rest = np.array(cut.getpalette(), np.uint8).reshape(-1, 3)[:room]
        self.colours = np.concatenate([kept, exact, rest])
        """(C, 3)."""
        self._entry = np.full(1 << 24, UNKNOWN, np.uint8)  # by colour, filled as colours occur

    def reduce(self, picture: Pixels) -> Any:
        """A Pillow image of mode P of a picture (H, W, 3)."""
        from PIL import Image
        from scipy.spatial import cKDTree

        packed = _packed(picture)
        entry = self._entry[packed]
        if (entry == UNKNOWN).any():
            new = np.unique(packed[entry == UNKNOWN])
            self._entry[new] = cKDTree(self.colours.astype(float)).query(_unpacked(new))[1]
            entry = self._entry[packed]
        image = Image.frombytes("P", (picture.shape[1], picture.shape[0]), entry.tobytes())
        image.putpalette(self.colours.tobytes())
        return image


def _packed(picture: Pixels) -> npt.NDArray[np.uint32]:
    """(H W,) a number for each pixel."""
    padded = np.zeros((picture.size // 3, 4), np.uint8)
    padded[:, 2::-1] = picture.reshape(-1, 3)  # red highest
    return padded.view("<u4")[:, 0]


def _unpacked(packed: npt.NDArray[np.uint32]) -> Pixels:
    """(n, 3) colours of such numbers."""
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1).astype(np.uint8)
