"""Clients of a gate: each sends its own stream, and says what was acknowledged once it was.

The n-th step of a stream is always the same: a client that starts over at a step that was not
acknowledged sends what may be in the log already, under the same keys.
"""

from __future__ import annotations

import os
import threading
import time

import numpy as np

from rapo_gate import Gate, GateConfig, HarmReport, StoreError

STREAMS = 4
"""Clients of one gate: three wait for every answer, the last one only for a flush."""
REGIONS = 20
_GROUP = 5
"""Decisions per flush."""
_LAW = np.full(5, 0.2)

CONFIG = GateConfig(
    tick_seconds=0.5, D=2, D_max=10**6, min_sources=2, shrinkage=1.0, band_reports=1e6
)
"""Short ticks, so that folding and ticking are interrupted too."""


class Pipe:
    """Lines to the parent; each arrives whole or not at all."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, *words: object) -> None:
        """One line of words."""
        line = " ".join(map(str, words)) + "\n"
        os.write(self._descriptor, line.encode())


class Client(threading.Thread):
    """Sends the steps of one stream until told to stop.

    Args:
        gate: to send to.
        pipe: where acknowledgements go: `ack <stream> <seconds> <revision> <key>`, with the
            monotonic clock and the key in the log, and `done <stream> <step>` after a whole step.
        name: of the stream; keys begin with it.
        step: first step.
        started: Unix seconds for `at`; the same in every round.
    """

    def __init__(self, gate: Gate, pipe: Pipe, name: str, step: int, started: float) -> None:
        super().__init__(name=f"client-{name}", daemon=True)
        self._gate, self._pipe, self._stream, self._step = gate, pipe, name, step
        self._since = started
        self._waits = not name.endswith(str(STREAMS - 1))
        self.stopping = threading.Event()

    def run(self) -> None:
        """Step by step; one that the store refuses is sent again."""
        try:
            while not self.stopping.is_set():
                try:
                    self._send() if self._waits else self._send_group()
                except StoreError:
                    time.sleep(0.02)
                    continue
                self._pipe.tell("done", self._stream, self._step)
                self._step += 1
        except Exception as error:
            self._pipe.tell("error", repr(error).replace("\n", " "))

    def _ack(self, revision: int, key: str) -> None:
        self._pipe.tell("ack", self._stream, time.monotonic(), revision, key)

    def _send(self) -> None:
        """A decision, what it showed, two reports; now and then an override."""
        name, gate = f"{self._stream}-{self._step}", self._gate
        regions = (np.arange(5) * 3 + self._step) % REGIONS
        decision = gate.decide_logged(regions, _LAW, name).result()
        self._ack(decision.revision, f"d\x1f{decision.decision_id}")
        gate.expose(decision.decision_id, regions[:2].tolist())
        self._ack(-1, f"x\x1f{decision.decision_id}")
        reports = [
            HarmReport(source, name, 0.5, signal, self._since, decision_id=decision.decision_id)
            for source, signal in (("user", "flag"), ("model", "score"))
        ]
        for report, result in zip(reports, gate.report(reports), strict=True):
            if result.code not in (200, 202):
                raise RuntimeError(f"a report was refused: {result}")
            self._ack(-1, f"r\x1f{report.source}\x1f{report.key}")
        if self._step % 8 == 0:
            done = gate.override(int(regions[0]), 0.5, reason=name)
            self._pipe.tell("act", done.event, name)

    def _send_group(self) -> None:
        """Decisions that are logged later, and a flush that waits for them."""
        made = []
        for i in range(_GROUP):
            regions = (np.arange(5) + self._step + i) % REGIONS
            name = f"{self._stream}-{self._step}-{i}"
            made.append(self._gate.decide(regions, _LAW, name))
        self._gate.flush()
        for decision in made:
            self._ack(decision.revision, f"d\x1f{decision.decision_id}")
