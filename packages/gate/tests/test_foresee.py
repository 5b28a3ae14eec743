"""A dry run foretells exactly what the event does, region by region, and changes nothing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rapo_gate.audit import foresee
from rapo_gate.fold.snapshot import dump


def _histories() -> Any:
    """The module with generated histories; its dataclasses must be able to look it up."""
    path = Path(__file__).with_name("test_histories.py")
    spec = importlib.util.spec_from_file_location("gate_histories", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HISTORIES = _histories()
seen: dict[str, int] = {}


class Foretold(HISTORIES.Player):  # type: ignore[misc, name-defined]
    """A player that tries every human action before it is done."""

    def _append(self, kind: str, tick: int, body: bytes, key: str | None = None) -> None:
        if kind not in ("Rollback", "Allow", "Confirm", "Override", "ConfigChange") or (
            b'"created"' in body
        ):
            super()._append(kind, tick, body, key)
            return
        state, whole = self.state, dump(self.state)
        found = foresee(state, kind, json.loads(body), self.log)
        assert dump(state) == whole
        fold, psi = state.fold, state.psi()
        G, H = fold.G[: psi.size].copy(), fold.H[: psi.size].copy()
        super()._append(kind, tick, body, key)
        now = state.fold.G[: psi.size], state.fold.H[: psi.size], state.psi()[: psi.size]
        moved = np.zeros(psi.size, np.bool_)
        for old, new in zip((G, H, psi), now, strict=True):
            moved |= old != new
        order = np.argsort(found.before.regions)
        assert found.before.regions[order].tolist() == np.flatnonzero(moved).tolist(), kind
        for old, new, before, after in zip(
            (G, H, psi), now, found.before[1:], found.after[1:], strict=True
        ):
            assert before[order].tolist() == old[moved].tolist(), kind
            assert after[order].tolist() == new[moved].tolist(), kind
        if kind == "Rollback":
            assert found.reports == state.rollbacks[-1]["count"]
        seen[kind] = seen.get(kind, 0) + int(moved.any())


@pytest.mark.parametrize("seed", range(4))
def test_what_is_foretold_comes_true(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(HISTORIES, "Player", Foretold)
    seen.clear()
    for i in range(30):
        HISTORIES.generate(np.random.default_rng([seed, i]), human=True)
    assert all(seen.get(kind) for kind in ("Rollback", "Allow", "Confirm", "Override")), seen
