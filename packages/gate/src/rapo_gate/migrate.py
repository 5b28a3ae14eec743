"""From a log of the first format to one of this format: the same events, other settings.

The first format counted harm per tick and exposure (`normalise`, `prior_exposures`, `cap_region`);
now it is the excess of a rate over the base rate. Events stay as they are, at their positions; only
the settings in them are put into the new words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rapo_core.checks import UserError
from rapo_gate.cells import grown
from rapo_gate.config import GateConfig
from rapo_gate.events import LOG_FORMAT, Draft, Event, digest_of, packed, unpack_decision
from rapo_gate.state import State
from rapo_gate.store import Store, open_store, pieces

GONE = ("normalise", "prior_exposures", "cap_region")
"""Settings of the first format that mean nothing any more."""
NEW = ("base_rate", "base_rates", "half_life", "shrinkage", "z", "scale")
"""Settings that it did not have."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did."""

    events: int
    regions: int
    """That any decision had."""
    differ: int
    """Regions whose psi now differs from what their last decision had."""
    lower: int
    """Those of them whose psi is lower now."""


def migrate(old: str | Path, new: str | Path, config: Mapping[str, Any] | None = None) -> Migrated:
    """Copy a log of the first format into a new one.

    Args:
        old: path or address of the log; it is not changed.
        new: path or address of a log that does not exist yet, or is empty.
        config: values of the new settings (`NEW`); the defaults otherwise.

    Raises:
        ValueError: the old log is of another format, or the new one is not empty.
    """
    given = dict(config or {})
    unknown = sorted(set(given) - set(NEW))
    if unknown:
        raise UserError(f"only {list(NEW)} are given to a migration, got {unknown}")
    if "://" not in str(old) and not Path(old).exists():
        raise UserError(f"there is no log at {old}")
    with closing(open_store(str(old), create=False, read_only=True)) as source:
        _check_old(source, old)
        with closing(open_store(str(new), create=True)) as target:
            if target.last():
                raise UserError(f"{new} is not empty; give a place for a new log")
            return _copy(source, target, given)


def _check_old(source: Store, address: str | Path) -> None:
    first = source.read(0, 1)
    if not first or "created" not in first[0].data():
        raise UserError(f"{address} holds no gate")
    if "format" in first[0].data():
        version = first[0].data()["format"]
        raise UserError(f"{address} has format {version}; only the first one is migrated")


def _copy(source: Store, target: Store, given: Mapping[str, Any]) -> Migrated:
    state, compared = State(target.find), _Compared()
    for events in pieces(source):
        with target.appending() as log:
            state.fetch = log.find
            for event in log.append([_rewritten(e, given) for e in events]):
                state.apply(event)
                compared.look(state, event)
        state.fetch = target.find
    if state.position != source.last():
        raise UserError(
            f"the log has {source.last()} positions but only {state.position} events: "
            "positions would change; nothing can be migrated"
        )
    return compared.summed(state)


def _rewritten(event: Event, given: Mapping[str, Any]) -> Draft:
    """An event in the words of this format; most stay as they are."""
    _, kind, at, key, digest, body = event
    if kind != "ConfigChange":
        return Draft(kind, at, key, digest, body)
    data: dict[str, Any] = json.loads(str(body, "utf-8"))
    if "config" in data:
        kept = {k: v for k, v in data["config"].items() if k not in GONE}
        data["config"] = GateConfig.from_dict({**kept, **given}).to_dict()
    if "created" in data:
        data["format"] = LOG_FORMAT
    changed = packed(data)
    return Draft(kind, at, key, digest if changed == body else digest_of(changed), changed)


class _Compared:
    """psi that regions' last decisions had, beside what this format says at that position."""

    def __init__(self) -> None:
        self._then, self._now = np.ones(0), np.ones(0)

    def look(self, state: State, event: Event) -> None:
        """Compare if the event is a decision."""
        if event.kind != "Decision":
            return
        body = unpack_decision(event.body)
        numbers = state.regions.numbers(body.regions)
        size = len(state.regions)
        self._then, self._now = grown(self._then, size, 1), grown(self._now, size, 1)
        self._then[numbers] = body.psi
        self._now[numbers] = state.served(numbers, state.fold.psi[numbers])

    def summed(self, state: State) -> Migrated:
        """How many regions differ."""
        gap = self._now - self._then
        differ, lower = np.abs(gap) > _ROUNDING, gap < -_ROUNDING
        return Migrated(state.position, len(state.regions), int(differ.sum()), int(lower.sum()))
