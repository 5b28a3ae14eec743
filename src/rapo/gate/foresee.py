"""What an event would change, without changing anything: only the regions concerned are folded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.gate.config import GateConfig
from rapo.gate.fold import Fields
from rapo.gate.state import State


class Foreseen(NamedTuple):
    """Regions that an event concerns, before and after it."""

    before: Fields
    after: Fields
    reports: int = 0
    """Reports that a rollback takes out."""

    def differs(self) -> Foreseen:
        """Only the regions that change."""
        moved = np.zeros(self.before.regions.size, np.bool_)
        for old, new in zip(self.before[1:], self.after[1:], strict=True):
            moved |= np.asarray(old != new)
        return Foreseen(_chosen(self.before, moved), _chosen(self.after, moved), self.reports)


def foresee(state: State, kind: str, data: dict[str, Any]) -> Foreseen:
    """What the next event would change: `kind`, with `data` in its body."""
    return _FORESEES[kind](state, data).differs()


def _rollback(state: State, data: dict[str, Any]) -> Foreseen:
    fold = state.fold
    hit, gone = state.named(data)
    taken, regions = state.ledger.without(state.ledger.rows["rolled_back"] | hit, fold.caps())
    kept = [v for v in fold.vouches if v.report not in gone]
    lost = np.array([v.region for v in fold.vouches if v.report in gone], np.int32)
    after = fold.would_be(np.concatenate((regions, lost)), taken=taken, vouches=kept)
    return _compared(state, after, reports=len(gone))


def _allow(state: State, data: dict[str, Any]) -> Foreseen:
    region, allowed = state.regions.number(data["region"]), bool(data["allowed"])
    after = state.fold.would_be(np.array([region]), free=allowed)
    if not after.regions.size:  # it was never reported
        after = state.fold.now(np.array([region]))
    found = _compared(state, after)
    if state.overrides.get(region) is None:
        psi = np.ones(1) if allowed else after.psi
        found = found._replace(after=found.after._replace(psi=psi))
    return found


def _confirm(state: State, data: dict[str, Any]) -> Foreseen:
    vouches = state.vouches(data, state.position + 1)
    regions = np.array([v.region for v in vouches], np.int32)
    after = state.fold.would_be(regions, vouches=[*state.fold.vouches, *vouches])
    return _compared(state, after)


def _override(state: State, data: dict[str, Any]) -> Foreseen:
    region = state.regions.number(data["region"])
    fields = state.fold.now(np.array([region]))
    found = _compared(state, fields)
    if data["psi"] is None or state.expired(data):
        psi = 1.0 if region in state.allowed else float(fields.psi[0])
    else:
        psi = max(float(data["psi"]), state.config.params.psi_min)
    return found._replace(after=found.after._replace(psi=np.array([psi])))


def _change(state: State, data: dict[str, Any]) -> Foreseen:
    """New settings hold from the next tick on; today they change how fields are served."""
    if "config" in data:
        config = GateConfig.from_dict(data["config"])
        found = _compared(state, state.fold.under(config), config.params.psi_min)
        by_hand = np.setdiff1d(list(state.overrides), found.before.regions)
        more = _compared(state, state.fold.now(by_hand), config.params.psi_min)
        return Foreseen(_joined(found.before, more.before), _joined(found.after, more.after))
    given = {state.regions.number(r): label.get("topic") for r, label in data.get("labels", [])}
    return _compared(state, state.fold.would_be(np.array(list(given), np.int32), topics=given))


def _chosen(fields: Fields, where: npt.NDArray[np.bool_]) -> Fields:
    regions, G, H, psi = fields
    return Fields(regions[where], G[where], H[where], psi[where])


def _joined(one: Fields, other: Fields) -> Fields:
    pairs: Any = zip(one, other, strict=True)
    return Fields(*(np.concatenate(pair) for pair in pairs))


def _compared(
    state: State, after: Fields, psi_min: float | None = None, reports: int = 0
) -> Foreseen:
    """Fields beside those of now; people's word on psi holds for both."""
    now = state.fold.now(after.regions)
    before = now._replace(psi=state.served(now.regions, now.psi))
    after = after._replace(psi=state.served(after.regions, after.psi, psi_min))
    return Foreseen(before, after, reports)


_FORESEES = {
    "Rollback": _rollback,
    "Allow": _allow,
    "Confirm": _confirm,
    "Override": _override,
    "ConfigChange": _change,
}
