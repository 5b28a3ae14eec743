"""The gate over HTTP: a decision of 500 candidates beside an empty call to the same server.

A real server in a process of its own, keep-alive connections of the standard library. Calls of
both kinds alternate, so a slow moment hits both.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import gate_load
from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo_gate import Gate
from rapo_gate.service.auth import write_key_file

TITLE = "Gate over HTTP: key checked, decision logged by group commit"
CANDIDATES, REGIONS = 500, 10_000
CALLS = 200
"""Calls of each kind and round."""
TOGETHER = 8
"""Connections of the second case."""

_SERVER = """
import sys, warnings
warnings.simplefilter("ignore")
from rapo_gate.service.serve import serve
serve(sys.argv[1], sys.argv[2], port=0)
"""


@dataclass(frozen=True)
class Served:
    """A running server."""

    pid: int
    port: int
    keys: dict[str, str]

    def connect(self) -> http.client.HTTPConnection:
        """A connection that stays open."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None
    ) -> float:
        """Seconds of one call."""
        key = self.keys["admin"]  # opens everything
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        begun = time.perf_counter()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - begun
        if answer.status != 200:
            raise RuntimeError(f"{method} {path} was answered with {answer.status}: {content!r}")
        return seconds


@contextmanager
def serving(fill: Callable[[Path], object] | None = None) -> Iterator[Served]:
    """A gate of its own behind a server of its own.

    Args:
        fill: makes the gate at a path; without it there is nothing in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        db, key_file = Path(folder) / "gate.db", Path(folder) / "keys.toml"
        keys = write_key_file(key_file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fill(db) if fill else Gate.open(db).close()
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(db), str(key_file)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            if not first.startswith("{"):
                raise RuntimeError(f"the server did not start: {first}{process.stderr.read()}")
            threading.Thread(target=process.stderr.read, daemon=True).start()  # its log
            yield Served(process.pid, int(json.loads(first)["url"].rpartition(":")[2]), keys)
        finally:
            process.terminate()
            process.wait()


def requests(count: int, seed: int = 0) -> list[str]:
    """Bodies of decisions: random laws over random integer regions."""
    rng = np.random.default_rng(seed)
    bodies = []
    for _ in range(count):
        law = rng.random(CANDIDATES)
        regions = rng.integers(0, REGIONS, CANDIDATES)
        bodies.append(json.dumps({"regions": regions.tolist(), "p": (law / law.sum()).tolist()}))
    return bodies


def alternate(served: Served, calls: int, bodies: list[str]) -> npt.NDArray[np.float64]:
    """Seconds of empty calls and of decisions, (2, calls), on one connection."""
    connection = served.connect()
    taken = np.zeros((2, calls))
    for i in range(calls):
        taken[0, i] = served.call(connection, "GET", "/v1/ping", None)
        taken[1, i] = served.call(connection, "POST", "/v1/decisions", bodies[i % len(bodies)])
    connection.close()
    return taken


def together(served: Served, calls: int, bodies: list[str]) -> npt.NDArray[np.float64]:
    """Seconds of empty calls and of decisions, (2, TOGETHER calls), on many connections at once.

    Kinds take turns in blocks: mixed, empty calls would wait behind decisions.
    """

    def block(method: str, path: str, taken: list[float]) -> None:
        connection = served.connect()
        for i in range(calls):
            body = bodies[i % len(bodies)] if method == "POST" else None
            taken.append(served.call(connection, method, path, body))
        connection.close()

    columns = []
    for method, path in (("GET", "/v1/ping"), ("POST", "/v1/decisions")):
        lists: list[list[float]] = [[] for _ in range(TOGETHER)]
        threads = [threading.Thread(target=block, args=(method, path, own)) for own in lists]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        columns.append([seconds for own in lists for seconds in own])
    return np.array(columns)


def measure(effort: Effort) -> list[Row]:
    """Latencies of both kinds, alone and under load; reports; audits and strangers beside."""
    bodies = requests(50)
    rows: list[Row] = []
    with serving() as served:
        effort.progress("warming up")
        alternate(served, 100, bodies)
        for case, run, calls in (
            ("1 connection", alternate, CALLS),
            (f"{TOGETHER} connections", together, max(1, CALLS // TOGETHER)),
        ):
            rounds = []
            for i in range(effort.rounds):
                effort.progress(f"{case}, round {i + 1} of {effort.rounds}")
                rounds.append(run(served, calls, bodies))
            taken = 1000 * np.concatenate(rounds, axis=1)
            rows += _rows(case, taken)
        rows += gate_load.report_rows(served, effort, json.loads(bodies[0])["regions"])
        rows += gate_load.stranger_rows(served, effort, bodies)
    with serving(lambda db: gate_load.much_reported(db, effort)) as served:
        rows += gate_load.audit_rows(served, effort, bodies)
    return rows


def _rows(case: str, taken: npt.NDArray[np.float64]) -> list[Row]:
    (empty, decide), (empty_tail, decide_tail) = np.percentile(taken, (50, 99), axis=1)
    return [
        Row("p99 of a decision over p99 of an empty call", decide_tail / empty_tail, "x", case,
            at_most=3.0, note=f"{decide_tail:.2f} and {empty_tail:.2f} ms, {taken.shape[1]} calls"),
        Row("the same at the median", decide / empty, "x", case,
            note=f"{decide:.2f} and {empty:.2f} ms"),
    ]  # fmt: skip
