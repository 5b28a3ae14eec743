"""`Names`: many strings as one piece of memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rapo_core.checks import UserError

_BREAK = ord("\n")


class Names:
    """n >= 1 strings as UTF-8, one after the other.

    >>> Names.of(["a", "é"]).listed()
    ['a', 'é']
    """

    __slots__ = ("joined", "longest", "plain", "spans")

    def __init__(self, joined: bytes, count: int) -> None:
        """Take apart what was joined by line breaks.

        Raises:
            ValueError: it is not `count` lines.
        """
        text = np.frombuffer(joined, np.uint8)
        breaks = np.flatnonzero(text == _BREAK)
        if breaks.size + 1 != count:
            raise UserError(f"{breaks.size + 1} lines for {count} names")
        self.joined = joined
        """UTF-8, a line break between two names."""
        self.spans = np.empty((count, 2), np.int32)
        """First byte of each and the first after it, (n, 2)."""
        self.spans[0, 0], self.spans[-1, 1] = 0, text.size
        self.spans[1:, 0], self.spans[:-1, 1] = breaks + 1, breaks
        lengths = self.spans[:, 1] - self.spans[:, 0]
        self.longest = int(lengths.max())
        """Bytes of the longest."""
        unprintable = int(((text < 32) | (text > 126)).sum()) - breaks.size
        self.plain = unprintable == 0 and int(lengths.min()) > 0
        """Whether every name is printable ASCII and has a character."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """Join strings, none of which has a line break.

        Raises:
            TypeError: not all of them are strings.
            ValueError: one has a line break or cannot be written as UTF-8.
        """
        return cls("\n".join(names).encode(), len(names))

    def __len__(self) -> int:
        return len(self.spans)

    def listed(self) -> list[str]:
        """As Python's strings."""
        return self.joined.decode().split("\n")
