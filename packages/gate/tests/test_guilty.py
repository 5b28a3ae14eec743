"""Five items are shown, one of them does harm: whom do reports that name it hit?"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from rapo_gate import Gate, GateConfig, HarmReport

CREATORS, SHOWN, GUILTY = 40, 5, 7
TICKS, DECISIONS = 150, 8


def test_reports_that_name_the_guilty_leave_the_innocent_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    now = [60_000.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gate = Gate.open(tmp_path / "gate.db", GateConfig(D=5), clock=lambda: now[0])
    regions, law = np.arange(CREATORS), np.full(CREATORS, 1 / CREATORS)
    with gate:
        for tick in range(TICKS):
            reports = []
            for i in range(DECISIONS):
                decision = gate.decide(regions, law).decision_id
                shown = rng.choice(CREATORS, SHOWN, replace=False).tolist()
                gate.expose_logged(decision, shown)
                if GUILTY in shown and rng.random() < 0.5:
                    user, signal = f"u{rng.integers(200)}", ("user", "model")[i % 2]
                    reports.append(HarmReport(
                        user, f"{tick}-{i}", 1.0, signal, now[0], decision, [GUILTY]
                    ))  # fmt: skip
            assert {r.status for r in gate.report(reports)} <= {"accepted"}
            gate.flush()
            now[0] += 60.0
        gate.tick()
        fields = gate.fields()
    assert fields[GUILTY].psi <= 0.3
    assert {fields[r].psi for r in range(CREATORS) if r != GUILTY} == {1.0}
