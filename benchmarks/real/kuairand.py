"""Likes and hates as a stream in time: rows, regions, the split into tuning and test."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FILE = "interactions.csv.gz"
_HERE = Path(__file__).resolve().parents[2]
PLACES = (_HERE / "data/kuairand_like_hate", _HERE.parent / "shared/data/kuairand_like_hate")
"""Where the data is looked for: in the repository and beside it."""
HOUR = 3600
DELAY = 6
"""Hours after which a report counts, for every method. The data does not say when a hate would
reach a reviewer; six hours is an assumption."""
SKIPPED_MS = 3000
"""A video left before this was skipped: the player's signal, whatever the person pressed."""
FIRST_TEST_DAY = 20220417
"""8-16 April for tuning, 17-21 April for the score."""
WARM_DAYS = 4
"""First days of a stream that feed the memory but are not scored in tuning."""
GRAINS = ("video", "bands:8", "bands:32")
"""What a region may be: a video, or all videos of about one duration."""

_COLUMNS = ["user_id", "video_id", "date", "time_ms", "play_time_ms", "duration_ms", "label"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows in order of time, each one exposure; all arrays are (n,)."""

    user: Ints
    video: Ints
    day: Ints
    """As 20220408, local time."""
    time: npt.NDArray[np.float64]
    """Unix seconds."""
    duration: Ints
    """Of the video, milliseconds; 0 if it is not known."""
    hated: Bools
    """The hate button; every other row was liked."""
    skipped: Bools

    def __len__(self) -> int:
        return self.user.size

    def ticks(self, hours: int = 1) -> Ints:
        """Tick of each row, of so many hours each."""
        return np.asarray(self.time // (hours * HOUR), np.int64)

    def part(self, keep: Bools) -> Stream:
        """Some of the rows."""
        return Stream(*(getattr(self, f.name)[keep] for f in fields(self)))


def find(places: tuple[Path, ...] = PLACES) -> Path | None:
    """The first folder that has the data, or None."""
    return next((place for place in places if (place / FILE).exists()), None)


def read(folder: Path) -> Stream:
    """The whole stream.

    Raises:
        ValueError: the file is not what it should be.
        FileNotFoundError: there is none.
    """
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"there is no {FILE} in {folder}")
    try:
        frame = pd.read_csv(path, usecols=_COLUMNS)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as likes and hates: {error}") from None
    frame = frame.sort_values(["time_ms", "user_id", "video_id"], kind="stable")

    def column(name: str) -> npt.NDArray[Any]:
        return frame[name].to_numpy()

    return Stream(
        user=column("user_id").astype(np.int64),
        video=column("video_id").astype(np.int64),
        day=column("date").astype(np.int64),
        time=column("time_ms") / 1000.0,
        duration=column("duration_ms").astype(np.int64),
        hated=column("label") == 0,
        skipped=column("play_time_ms") < SKIPPED_MS,
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """A stream that feeds a memory, and which of its rows are scored."""

    stream: Stream
    scored: Bools


def split(stream: Stream, seed: int) -> tuple[Trial, Trial]:
    """Tuning and test: other people, later days.

    Tuning has half of the people and the first days; the test has the other half, whose first
    days only feed the memory. No row is in both.
    """
    people = np.unique(stream.user)
    chosen = np.random.default_rng(seed).permutation(people)[: people.size // 2]
    mine = np.isin(stream.user, chosen)
    early = stream.day < FIRST_TEST_DAY
    tuning = stream.part(mine & early)
    first = int(stream.day.min())
    test = stream.part(~mine)
    return (
        Trial(tuning, tuning.day >= first + WARM_DAYS),
        Trial(test, test.day >= FIRST_TEST_DAY),
    )


class Grain:
    """Numbers the regions of rows.

    Authors and topics are not in the data, so a region is a video, or a band of durations with
    equally many tuning rows each. Ids of videos say nothing about what is in them; the rare
    videos have the high ones, which would give away how the slice was made.

    Args:
        name: one of `GRAINS`.
        tuning: where the ends of the bands come from.
    """

    def __init__(self, name: str, tuning: Stream) -> None:
        self.name = name
        self.ends = np.zeros(0)
        if name != "video":
            known = tuning.duration[tuning.duration > 0]
            bands = int(name.partition(":")[2])
            self.ends = np.unique(np.quantile(known, np.arange(1, bands) / bands))

    def regions(self, stream: Stream) -> Ints:
        """Region of each row: the video's id; or 0 for an unknown duration and bands from 1."""
        if self.name == "video":
            return stream.video
        band = 1 + np.searchsorted(self.ends, stream.duration, side="right")
        return np.where(stream.duration > 0, band, 0)


def sparsity(stream: Stream) -> dict[str, float]:
    """What memory per video could reach at most: rows on videos that somebody hated before."""
    order = pd.DataFrame({"video": stream.video, "user": stream.user, "hated": stream.hated})
    before = order.groupby("video")["hated"].cumsum() - order["hated"]
    hating = order[order["hated"]].groupby("video")["user"].nunique()
    first = ~order.duplicated("video")
    return {
        "rows": len(stream),
        "people": int(np.unique(stream.user).size),
        "videos": int(np.unique(stream.video).size),
        "hated_rows": int(stream.hated.sum()),
        "videos_hated": int(hating.size),
        "videos_hated_by_3": int((hating >= 3).sum()),
        "hated_rows_hated_before": float((before[order["hated"]] > 0).mean()),
        "liked_rows_hated_before": float((before[~order["hated"]] > 0).mean()),
        "hated_rows_first_seen": float(first[order["hated"]].mean()),
        "liked_rows_first_seen": float(first[~order["hated"]].mean()),
    }
