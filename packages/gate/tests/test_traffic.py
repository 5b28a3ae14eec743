"""Outcomes of stimuli: sparse counts, a bound, forgetting, and what was really shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rapo_gate import audit
from rapo_gate.fold import traffic
from rapo_gate.fold.snapshot import dump, load

Make = Callable[..., Any]


def outcomes(platform: Any) -> dict[str, dict[str, Any]]:
    platform.gate.flush()
    listed = platform.gate.read(audit.outcomes)["stimuli"]
    return {entry["stimulus"]: entry for entry in listed}


def test_a_stimulus_costs_what_it_reached(make: Make) -> None:
    """Not an array of all regions."""
    platform = make()
    count = 20_000
    platform.gate.decide(np.arange(count), np.full(count, 1 / count))
    platform.gate.flush()
    before = platform.gate.read(lambda state: len(dump(state)))
    for i in range(50):
        platform.gate.decide(np.arange(i, i + 100), np.full(100, 0.01), stimulus=f"s{i}")
    platform.gate.flush()
    assert platform.gate.read(lambda state: len(dump(state))) < before + 50 * (12 * 100 + 1500)


def test_the_ratios_of_a_stimulus_follow_what_was_really_shown(make: Make) -> None:
    platform = make(D=2)
    gate = platform.gate
    for shown in (["a", "b"], ["a", "c"]):
        for _ in range(4):
            ids = [
                gate.decide_logged(["a", "b", "c"], [0.5, 0.3, 0.2], stimulus="s").result()
                for _ in range(2)
            ]
            for decision in ids:
                gate.expose(decision.decision_id, shown[:2] if decision is ids[0] else ["a"])
            platform.tick()
        platform.tick(4)
    # a was shown 1.5 times a tick, nothing else once: served shares would reach nobody but a, too
    assert outcomes(platform)["s"]["RAG"] == 1.0
    for decision in [gate.decide_logged(["a", "b"], [0.5, 0.5], stimulus="t").result()]:
        gate.expose(decision.decision_id, ["a"])
    platform.tick(4)
    gate.decide_logged(["a", "b"], [0.5, 0.5], stimulus="t").result()
    platform.tick(4)
    # the first stay reached a; the second, not known to have shown anything whole, reached nobody
    assert outcomes(platform)["t"]["RAG"] == 0.0


def test_stimuli_are_forgotten_and_counts_are_bounded(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "MOST_STIMULI", 3)
    monkeypatch.setattr(traffic, "MOST_PAIRS", 10)
    platform = make()
    for i in range(5):
        platform.gate.decide(["a", "b"], [0.5, 0.5], stimulus=f"s{i}")
        platform.tick()
    assert list(outcomes(platform)) == ["s2", "s3", "s4"]
    for i in range(30):
        platform.gate.decide(["a", "b"], [0.5, 0.5], stimulus=f"s{i % 2}")
    platform.gate.flush()
    shown = platform.gate.read(lambda s: s.traffic.impressions.shown)
    assert sum(regions.size for name in shown for regions, _ in shown[name]) <= 10
    again = platform.gate.read(lambda s: load(dump(s), s.ledger.rows))
    assert again.traffic.impressions.of("s0")[1].tolist() == pytest.approx([7.5, 7.5])
    assert list(again.traffic.appearances) == ["s2", "s3", "s4"]
