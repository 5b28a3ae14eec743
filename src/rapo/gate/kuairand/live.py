"""The same stream through a real gate: decisions, reports that arrive late, a log, a check."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.clock import SimulatedClock
from rapo.gate.gate import Gate
from rapo.gate.intake import HarmReport
from rapo.gate.kuairand.data import Stream
from rapo.gate.kuairand.methods import Setting, Weights, delay_ticks, gate_config

SIGNALS = ("hate", "skip")


def replay(
    stream: Stream, region: npt.NDArray[np.int64], setting: Setting
) -> tuple[Weights, dict[str, Any]]:
    """Down-weights that a gate in shadow mode gives each row, and what `verify` says at the end.

    Every row is a decision with one candidate, so what it changes is its psi. Its reports arrive
    just before the tick in which they count, tick after tick, in the order of exposure.
    """
    config = gate_config(setting)
    tick, seconds = stream.ticks(setting["hours"]), config.tick_seconds
    clock = SimulatedClock(float(tick[0]) * seconds)
    weight = np.zeros(len(stream))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLite's version: this file lives for a minute
        with Gate.open(Path(folder) / "gate.db", config, clock=clock) as gate:
            late: list[tuple[int, list[HarmReport]]] = []
            starts = np.flatnonzero(np.diff(tick, prepend=tick[0] - 1)).tolist()
            for start, end in zip(starts, [*starts[1:], tick.size], strict=True):
                now = int(tick[start])
                while late and late[0][0] < now:
                    arrives, reports = late.pop(0)
                    clock.now = (arrives + 0.5) * seconds
                    refused = [r for r in gate.report(reports) if r.status != "accepted"]
                    if refused:
                        raise RuntimeError(f"the gate did not take a report: {refused[0]}")
                clock.now = (now + 0.25) * seconds
                gate.tick()
                for i in range(start, end):
                    weight[i] = 1 - gate.decide(region[i : i + 1], [1.0]).psi[0]
                gate.flush()
                arrives = now + delay_ticks(setting) - 1
                late.append((arrives, _reports(stream, region, setting, start, end)))
            return weight, gate.verify()


def _reports(
    stream: Stream, region: npt.NDArray[np.int64], setting: Setting, start: int, end: int
) -> list[HarmReport]:
    """What the rows of one tick lead to: a report for a hate, another for a skip."""
    found = []
    marks = zip(SIGNALS, (stream.hated, stream.skipped), (1.0, setting["skip"]), strict=True)
    for signal, marked, share in marks:
        found += [
            HarmReport(
                f"user-{stream.user[i]}", f"{signal}-{i}", setting["harm"] * share, signal,
                float(stream.time[i]), regions=[int(region[i])],
            )
            for i in range(start, end) if marked[i]
        ]  # fmt: skip
    return found
