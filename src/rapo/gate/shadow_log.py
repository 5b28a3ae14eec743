"""`ShadowLog`: exposures and reports as arrays, from a gate's log or from an exported one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.events import plain_event
from rapo.gate.gate import Gate
from rapo.gate.store import events_of

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShadowLog:
    """What was shown and what was reported; arrays, one element per row."""

    regions: list[Any]
    """Their names; rows have numbers into this list."""
    seen: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
    """Ticks, regions, exposures; a decision is one exposure, shared among what it showed."""
    said: tuple[npt.NDArray[Any], ...]
    """Ticks of exposure, regions, amounts of harm, reporters, signals."""
    delay: int = 1
    """Ticks after which reports count."""

    @classmethod
    def of_gate(cls, gate: Gate) -> ShadowLog:
        """From a gate, best opened with read_only=True."""
        return cls.of_events(map(plain_event, events_of(gate.store)))

    @classmethod
    def of_file(cls, path: Path) -> ShadowLog:
        """From a file that `rapo gate export` wrote."""
        with open(path, encoding="utf-8") as lines:
            return cls.of_events(json.loads(line) for line in lines)

    @classmethod
    def of_events(cls, events: Iterable[Values]) -> ShadowLog:
        """From events as `plain_event` gives them, in the order of the log.

        Reports that wait for a reviewer are left out: late ones, and those on unknown regions.
        """
        book = _Book()
        for event in events:
            book.take(event)
        return book.closed()


class _Book:
    """Takes events one by one."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.shown: dict[str, tuple[int, list[int], list[float]]] = {}
        self.said: list[tuple[int, int, float, str, str]] = []
        self.seconds, self.delay = 60.0, 1

    def take(self, event: Values) -> None:
        kind = event["kind"]
        if kind == "ConfigChange" and "config" in event:
            config = event["config"]
            self.seconds = float(config.get("tick_seconds", self.seconds))
            self.delay = int(config.get("D", self.delay))
        elif kind == "Decision":
            regions = [self._number(r) for r in event["regions"]]
            self.shown[event["decision_id"]] = (event["tick"], regions, event["served"])
        elif kind == "Exposure" and event["decision_id"] in self.shown and event["shown"]:
            tick = self.shown[event["decision_id"]][0]
            regions = [self._number(r) for r in event["shown"]]
            self.shown[event["decision_id"]] = (tick, regions, [1 / len(regions)] * len(regions))
        elif kind == "HarmReport" and not event.get("waits_for"):
            self._report(event)

    def _report(self, event: Values) -> None:
        """One row for each region that a report blames, by its share."""
        tick = floor(float(event["exposed_at"]) / self.seconds)
        decision = self.shown.get(event.get("decision_id") or "")
        if decision is not None:
            tick = decision[0]
        if event.get("regions"):
            names = [self._number(r) for r in event["regions"]]
            shares = [1 / len(names)] * len(names)
        elif decision is not None:
            names, shares = decision[1], decision[2]
        else:
            return
        for name, share in zip(names, shares, strict=True):
            self.said.append((tick, name, event["harm"] * share, event["source"], event["signal"]))

    def _number(self, region: Any) -> int:
        return self.numbers.setdefault(region, len(self.numbers))

    def closed(self) -> ShadowLog:
        """The arrays."""
        seen: dict[tuple[int, int], float] = {}
        for tick, regions, shares in self.shown.values():
            for region, share in zip(regions, shares, strict=True):
                seen[tick, region] = seen.get((tick, region), 0.0) + share
        places = np.array(list(seen), np.int64).reshape(-1, 2)
        columns: list[list[Any]] = [[row[i] for row in self.said] for i in range(5)]
        return ShadowLog(
            list(self.numbers),
            (places[:, 0], places[:, 1], np.array(list(seen.values()), np.float64)),
            (
                np.array(columns[0], np.int64), np.array(columns[1], np.int64),
                np.array(columns[2], np.float64), _numbers(columns[3]), _numbers(columns[4]),
            ),
            self.delay,
        )  # fmt: skip


def _numbers(names: list[str]) -> npt.NDArray[np.int64]:
    """Names as numbers from 0."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], np.int64)
