"""Arrays that grow, and lists of things that belong together within one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import kernel

Array = npt.NDArray[Any]


def grown(array: Array, size: int, fill: int) -> Array:
    """`array` if it has `size` elements, else a longer copy; those handed out stay as they were."""
    if size <= array.size:
        return array
    size = max(size, 2 * array.size)
    longer = np.zeros(size, array.dtype) if fill == 0 else np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer


@kernel
def _append(owners: Any, start: int, first: Any, last: Any, following: Any) -> None:
    for i in range(owners.size):
        item, owner = start + i + 1, owners[i]
        if last[owner] == 0:
            first[owner] = item
        else:
            following[last[owner] - 1] = item
        last[owner] = item


class Links:
    """Lists of items, one list for each owner, in the order in which items came.

    Items are numbered from 1; 0 is the end of a list.

    >>> links = Links(); links.append(np.array([0, 1, 0]), owners=2, start=0)
    >>> int(links.first[0]), int(links.next[0]), int(links.next[2])
    (1, 3, 0)
    """

    def __init__(self) -> None:
        self.first = np.zeros(16, np.int64)
        """First item of each owner."""
        self.last = np.zeros(16, np.int64)
        self.next = np.zeros(16, np.int64)
        """What follows each item (that of item 1 comes first)."""

    def append(self, owner_of: Array, owners: int, start: int) -> None:
        """Add items `start + 1` and on; room is made for so many `owners`."""
        self.room(owners, start + owner_of.size)
        _append(owner_of.astype(np.int64), start, self.first, self.last, self.next)

    def room(self, owners: int, items: int) -> None:
        """Make room."""
        self.first, self.last = grown(self.first, owners, 0), grown(self.last, owners, 0)
        self.next = grown(self.next, items, 0)
