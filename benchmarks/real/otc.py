"""Bitcoin OTC: traders rate traders, in time order; who is rated is the region, who rates reports.

35,592 ratings from -10 to 10 over five years, one per pair. Every rating is an exposure of its
target; a negative one is a report of harm. What the likes and hates of KuaiRand lack is here:
people who fall silent for months and come back.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

FILE = "edges.csv.gz"
_HERE = Path(__file__).resolve().parents[2]
PLACES = (_HERE / "data/bitcoin_otc", _HERE.parent / "shared/data/bitcoin_otc")
"""Where the data is looked for: in the repository and beside it."""
DAY = 86400
CHOICE_SHARE = 0.6
"""Of the time, from the first rating to the last: settings are chosen on it."""
INNER_SHARE = 0.3
"""Of the time: before it memory only fills, from there to `CHOICE_SHARE` settings are compared."""
KEPT_OUT = 5
"""Targets whose id is a multiple of this are in no choice."""
SILENCES = (30, 60)
"""Days without a rating after which a target counts as returning."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings in order of time; all arrays are (n,)."""

    rater: Ints
    target: Ints
    rating: Ints
    """-10 to 10, never 0."""
    day: Ints
    """Days since the first rating: the tick."""

    def __len__(self) -> int:
        return self.rater.size

    @property
    def bad(self) -> Bools:
        return self.rating < 0

    @property
    def silence(self) -> npt.NDArray[np.float64]:
        """Days since the target's rating before; -1 for its first."""
        order = np.lexsort((np.arange(len(self)), self.target))
        gap = np.diff(self.day[order], prepend=0).astype(np.float64)
        gap[np.diff(self.target[order], prepend=-1) != 0] = -1
        out = np.empty(len(self))
        out[order] = gap
        return out

    def part(self, keep: Bools) -> Ratings:
        return Ratings(self.rater[keep], self.target[keep], self.rating[keep], self.day[keep])


def find(places: tuple[Path, ...] = PLACES) -> Path | None:
    """The first folder that has the data, or None."""
    return next((place for place in places if (place / FILE).exists()), None)


def read(folder: Path) -> Ratings:
    """All ratings.

    Raises:
        FileNotFoundError: the file is not there.
        ValueError: it is not what it should be.
    """
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"there is no {FILE} in {folder}")
    try:
        with gzip.open(path, "rt") as file:
            rows = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as ratings: {error}") from None
    if rows.shape[1] != 4 or not (np.abs(rows[:, 2]) <= 10).all():
        raise ValueError(f"{path} must have src,dst,rating,time with ratings from -10 to 10")
    rows = rows[np.argsort(rows[:, 3], kind="stable")]
    day = (rows[:, 3] - rows[0, 3]) // DAY
    return Ratings(
        *(column.astype(np.int64) for column in (rows[:, 0], rows[:, 1], rows[:, 2], day))
    )


def day_at(ratings: Ratings, share: float) -> int:
    """The day at which this share of the time has passed."""
    return int(share * int(ratings.day[-1]))


def kept_out(ratings: Ratings) -> Bools:
    """Ratings of targets that take part in no choice."""
    return ratings.target % KEPT_OUT == 0
