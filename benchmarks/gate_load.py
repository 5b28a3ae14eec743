"""What a served gate does under load: reports in batches, audits beside decisions, and strangers.

Every figure is of a real server in a process of its own. Where two are compared their blocks
alternate, so a slow moment hits both.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo_gate import Gate, HarmReport

BATCH, SENDERS, ITEMS = 100, 4, 10_000
"""Reports of a request, connections that send them, reports of a round."""
REPORTED, REPORTS, NAMED = 2000, 500_000, 1000
"""Regions and reports of the gate that is audited; reports of one batch."""
CALLS = 200
"""Decisions of a block."""
AUDITED = 6
"""Rounds with audits at the most: each waits for a whole verification."""
HALVES, HEADER = 2000, 64 << 20
"""Half-sent requests, and bytes of one header."""
STRANGER = "127.0.0.2"
PATIENCE = 600.0
"""Seconds for one audit."""


class Served(Protocol):
    """A running server, as `benchmarks.topics.gate_http` makes it."""

    pid: int
    port: int
    keys: dict[str, str]

    def connect(self) -> http.client.HTTPConnection:
        """A connection that stays open."""
        ...

    def call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None
    ) -> float:
        """Seconds of one call."""
        ...


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used; Linux."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# --- reports


def report_rows(served: Served, effort: Effort, regions: list[int]) -> list[Row]:
    """Reports in batches of 100, each answered once it is durable; `regions` are known."""
    rates, spent = [], []
    status, content = _asked(served, "POST", "/v1/reports", _batch("first", regions))
    answers = json.loads(content)["results"] if status == 200 else []
    if [a["status"] for a in answers] != ["accepted"] * BATCH:
        raise RuntimeError(f"reports were not accepted: {status}, {content[:200]!r}")
    for i in range(effort.rounds + 1):
        effort.progress(f"reports, round {i} of {effort.rounds}")
        batches = [_batch(f"{i} {b}", regions) for b in range(ITEMS // BATCH)]
        before, begun = processor(served.pid), time.perf_counter()
        _at_once(_send, [(served, batches[k::SENDERS]) for k in range(SENDERS)])
        rates.append(ITEMS / (time.perf_counter() - begun))
        spent.append(ITEMS / (processor(served.pid) - before))
    case = f"batches of {BATCH}, {SENDERS} connections, durable"
    return [
        Row("reports over HTTP", float(np.median(rates[1:])), "/s", case, at_least=10_000,
            note=f"best of {effort.rounds} rounds {max(rates[1:]):,.0f}"),
        Row("reports over HTTP, by the server's processor time", float(np.median(spent[1:])),
            "/s", case),
    ]  # fmt: skip


def _batch(name: str, regions: list[int]) -> str:
    now = time.time()
    items = [
        {"source": f"s{i % 50}", "key": f"{name} {i}", "harm": 0.5, "signal": f"g{i % 3}",
         "at": now, "regions": [regions[i]]}
        for i in range(BATCH)
    ]  # fmt: skip
    return json.dumps({"items": items})


def _send(served: Served, batches: list[str]) -> None:
    connection = served.connect()
    for batch in batches:
        served.call(connection, "POST", "/v1/reports", batch)
    connection.close()


def _at_once(task: Callable[..., object], calls: list[tuple[Any, ...]]) -> None:
    failed: list[BaseException] = []

    def run(*args: Any) -> None:
        try:
            task(*args)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=args) for args in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


# --- audits


def much_reported(db: Path, effort: Effort) -> None:
    """Make a gate with 500,000 reports that have counted, over some hours of its clock."""
    now = time.time() - 3600 * 4
    with Gate.open(db, clock=lambda: now) as gate:
        regions = np.arange(REPORTED)
        gate.decide(regions, np.full(REPORTED, 1 / REPORTED))
        gate.flush()
        for b in range(REPORTS // NAMED):
            if b % 50 == 0:
                effort.progress(f"{b * NAMED:,} of {REPORTS:,} reports")
            # half of all are about one region, whose chain is asked for
            gate.report(
                HarmReport(f"s{i % 97}", f"{b} {i}", 0.5, f"g{i % 3}", now,
                           regions=[0 if i % 2 else (b * NAMED + i) % REPORTED])
                for i in range(NAMED)
            )  # fmt: skip
            now += 24.0
        now = time.time() - 60
        gate.tick()


def audit_rows(served: Served, effort: Effort, bodies: list[str]) -> list[Row]:
    """Decisions alone, and beside four audits that never end."""
    asked: list[tuple[str, str, str | None]] = [
        ("GET", "/v1/regions/0/chain", None),
        ("GET", "/v1/bias", None),
        ("POST", "/v1/rollbacks?dry_run=true", json.dumps({"source": "s1"})),
        ("GET", "/v1/verify", None),
    ]
    effort.progress("audits for the first time")
    for question in asked:
        _audit(served, *question)
    decided(served, CALLS, bodies)
    idle, busy, answered = [], [], 0
    rounds = min(effort.rounds, AUDITED)
    for i in range(rounds):
        effort.progress(f"audits, round {i + 1} of {rounds}")
        idle.append(decided(served, CALLS, bodies))
        with _repeated([lambda q=q: _audit(served, *q) for q in asked]) as counts:
            busy.append(decided(served, CALLS, bodies))
        answered += sum(counts)
    case = f"{REPORTS:,} reports; chain, bias, dry run, verify: {answered} answered"
    return [_tails("p99 of a decision beside four audits over p99 alone", idle, busy, 2.0, case)]


def _asked(served: Served, method: str, path: str, body: str | None) -> tuple[int, bytes]:
    """Status and content of one answer, on a connection of its own."""
    key = served.keys["admin"]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _audit(served: Served, method: str, path: str, body: str | None) -> None:
    """Ask until there is an answer: 503 says that it takes longer than the server waits."""
    last = time.monotonic() + PATIENCE
    status, content = _asked(served, method, path, body)
    while status == 503 and time.monotonic() < last:
        time.sleep(0.5)
        status, content = _asked(served, method, path, body)
    if status != 200:
        raise RuntimeError(f"{method} {path} was answered with {status}: {content[:200]!r}")


@contextmanager
def _repeated(tasks: list[Callable[[], object]]) -> Iterator[list[int]]:
    """Each task over and over on a thread of its own; yields how often each has ended.

    A task that fails fails all of it, at the end.
    """
    ended, counts = threading.Event(), [0] * len(tasks)
    failed: list[BaseException] = []

    def repeat(i: int) -> None:
        try:
            while not ended.is_set():
                tasks[i]()
                counts[i] += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(tasks))]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def decided(served: Served, calls: int, bodies: list[str]) -> npt.NDArray[np.float64]:
    """Milliseconds of decisions, one after the other on one connection."""
    connection = served.connect()
    taken = [
        served.call(connection, "POST", "/v1/decisions", bodies[i % len(bodies)])
        for i in range(calls)
    ]
    connection.close()
    return 1000 * np.array(taken)


def _tails(figure: str, idle: list[Any], busy: list[Any], goal: float, case: str) -> Row:
    alone, beside = np.concatenate(idle), np.concatenate(busy)
    one, other = np.percentile(alone, 99), np.percentile(beside, 99)
    return Row(figure, float(other / one), "x", case, at_most=goal,
               note=f"{other:.1f} and {one:.1f} ms, {alone.size} calls each; "
                    f"medians {np.median(beside):.1f} and {np.median(alone):.1f} ms")  # fmt: skip


# --- strangers

_ATTACK = """
import resource, socket, sys
port, source, halves, header = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for line in sys.stdin:
    for one in held:
        one.close()
    held = []
    for _ in range(halves):
        one = socket.create_connection(("127.0.0.1", port), 60, (source, 0))
        one.sendall(b"POST /v1/reports HTTP/1.1\\r\\nHost: gate\\r\\nX-Half: ")
        held.append(one)
    sent = 0
    try:
        large = socket.create_connection(("127.0.0.1", port), 60, (source, 0))
        large.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: gate\\r\\nX-Large: ")
        while sent < header:
            large.sendall(b"x" * 65536)
            sent += 65536
    except OSError:
        pass
    print(len(held), sent, flush=True)
"""


def stranger_rows(served: Served, effort: Effort, bodies: list[str]) -> list[Row]:
    """Decisions while somebody else opens connections that never become requests."""
    given = [str(served.port), STRANGER, str(HALVES), str(HEADER)]
    attacker = subprocess.Popen(
        [sys.executable, "-c", _ATTACK, *given], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert attacker.stdin is not None and attacker.stdout is not None
    idle, busy, sent = [], [], 0
    try:
        for i in range(effort.rounds):
            effort.progress(f"strangers, round {i + 1} of {effort.rounds}")
            idle.append(decided(served, CALLS, bodies))
            attacker.stdin.write("go\n")
            attacker.stdin.flush()
            busy.append(decided(served, CALLS, bodies))
            words = attacker.stdout.readline().split()
            if len(words) != 2 or int(words[0]) != HALVES:
                raise RuntimeError(f"the attack did not work: {words}")
            sent = max(sent, int(words[1]))
            busy.append(decided(served, CALLS, bodies))  # they are all held now
    finally:
        attacker.kill()
        attacker.wait()
    case = f"{HALVES:,} half-sent requests and a header of {HEADER >> 20} MB"
    return [
        _tails("p99 of a decision beside strangers over p99 alone", idle, busy, 3.0, case),
        Row("bytes of that header taken before it was refused", sent / 2**20, "MB", case),
    ]  # fmt: skip
