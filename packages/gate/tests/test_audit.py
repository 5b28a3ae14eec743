"""What audits count, against counting by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rapo_gate import audit
from rapo_gate.fold.ledger import UNIT
from rapo_gate.fold.state import State


def _states() -> list[State]:
    """States of generated histories with reports that were rolled back; regions have groups."""
    path = Path(__file__).with_name("test_histories.py")
    spec = importlib.util.spec_from_file_location("gate_histories_of_audits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    states = []
    for i in range(40):
        player, _ = module.generate(np.random.default_rng([5, i]), True)
        state = player.state
        for region in range(len(state.regions)):
            if region % 4:
                state.labels[region] = {"group": f"g{region % 2}"}
        states.append(state)
    return [s for s in states if len(s.ledger) > 3]


STATES = _states()


def by_hand(state: State, inside: Any, signal: int | None) -> tuple[set[int], set[int]]:
    """Reports on some regions, and those of them that were rolled back."""
    rows = [r for r in state.ledger.rows if inside(int(r["region"]))]
    rows = [r for r in rows if signal is None or r["signal"] == signal]
    back = {int(r["report"]) for r in rows if r["rolled_back"]}
    return {int(r["report"]) for r in rows}, back


def test_bias_counts_each_report_once_for_each_label() -> None:
    rolled_back = 0
    for state in STATES:
        for entry in audit.bias(state)["group"]:
            label = entry["label"]

            def inside(region: int, state: State = state, label: str = label) -> bool:
                return state.labels.get(region, {}).get("group", "unlabelled") == label

            def outside(region: int, inside: Any = inside) -> bool:
                return not inside(region)

            members = [r for r in range(len(state.regions)) if inside(r)]
            assert entry["regions"] == len(members)
            served = state.traffic.served
            shown = float(served[members].sum())
            others = float(served[: len(state.regions)].sum()) - shown
            assert entry["exposure"] == pytest.approx(shown)
            tables = [(None, entry["report_rate"], None)]
            tables += [
                (i, s["report_rate"], s["rolled_back"]) for i, s in enumerate(entry["signals"])
            ]
            for signal, rate, back in tables:
                (here, gone), (there, gone_there) = (
                    by_hand(state, where, signal) for where in (inside, outside)
                )
                if shown > 1e-9:
                    assert rate["rate"] == pytest.approx(len(here) / shown)
                if shown > 1e-9 and others > 1e-9:
                    assert rate["rest"] == pytest.approx(len(there) / others)
                if back is not None and here:
                    assert back["rate"] == pytest.approx(len(gone) / len(here))
                    rolled_back += len(gone)
                if back is not None and here and there:
                    assert back["rest"] == pytest.approx(len(gone_there) / len(there))
    assert rolled_back > 5


def test_reporters_are_counted_and_share_the_traces() -> None:
    traced = 0.0
    for state in STATES:
        found = audit.reporters(state)
        for entry in found:
            mine = [r for r in state.ledger.rows
                    if state.sources.names[r["source"]] == entry["source"]]  # fmt: skip
            assert entry["reports"] == len({int(r["report"]) for r in mine})
            assert entry["rolled_back"] == len({int(r["report"]) for r in mine if r["rolled_back"]})
            assert entry["regions"] == len({int(r["region"]) for r in mine})
            assert entry["harm"] == pytest.approx(sum(r["amount"] for r in mine) / UNIT)
            if mine:
                assert entry["signals"] == sorted({state.signals.names[r["signal"]] for r in mine})
                assert entry["last_at"] == max(r["at"] for r in mine)
        cells = state.fold.f.cells
        total = float(cells["G"][cells["S"] > 0].sum())
        assert sum(e["trace"] for e in found) == pytest.approx(total, rel=1e-9)
        traced += total
    assert traced > 0


def test_the_queue_has_what_nobody_agreed_on_newest_first() -> None:
    waited = 0
    for state in STATES:
        sure = state.fold.conductance()[1]
        expected: dict[int, list[Any]] = {}
        for row in state.ledger.rows:
            region = int(row["region"])
            recent = row["tick"] > state.tick - state.config.confirm_ticks
            counts = not row["rolled_back"] and region not in state.allowed
            if recent and counts and not sure[region]:
                expected.setdefault(int(row["report"]), []).append(state.regions.names[region])
        found = [q for q in audit.queue(state) if q["waits_for"] == "agreement"]
        assert [q["report_id"] for q in found] == sorted(expected, reverse=True)
        assert [q["regions"] for q in found] == [expected[q["report_id"]] for q in found]
        few = audit.queue(state, limit=2)
        assert few == audit.queue(state)[:2]
        waited += len(found)
    assert waited > 5
