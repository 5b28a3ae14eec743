"""The clients against a real service: one that answers, one that dies, and one that cannot."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from served import Served

from rapo_gate import client
from rapo_gate.client import (
    MOST_ITEMS,
    AsyncGateClient,
    GateAnswer,
    GateClient,
    GateError,
    OutOfReachError,
    Report,
    Reported,
    Retries,
)


class Awaited:
    """The asynchronous client, called as if it were the other one."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = AsyncGateClient(*given, **more)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return lambda *given, **more: self._loop.run_until_complete(method(*given, **more))

    def __enter__(self) -> Awaited:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


BOTH = pytest.mark.parametrize("make", [GateClient, Awaited])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("client"))
    yield made
    made.kill()


def report(key: str, **given: Any) -> Report:
    return Report("user", key, 0.5, "flag", time.time(), **(given or {"regions": ["cats"]}))


@BOTH
def test_what_the_service_does(served: Served, make: Any) -> None:
    name = make.__name__
    with make(served.url, served.keys["admin"]) as client:
        first = client.decide(["cats", "diets"], (0.75, 0.25), f"r-{name}")
        assert isinstance(first, GateAnswer) and first.reached
        assert (first.q, first.psi, first.mode) == ([0.75, 0.25], [1.0, 1.0], "shadow")
        assert client.decide(["cats", "diets"], [0.75, 0.25], f"r-{name}") == first
        assert (
            client.decide(["cats"], [1.0]).decision_id != client.decide(["cats"], [1.0]).decision_id
        )
        assert client.expose(first.decision_id, ["diets"])
        items = [report(f"{name}-{i}") for i in range(MOST_ITEMS + 5)]
        results = client.report([*items, report(f"{name}-bad", regions=[])])
        assert len(results) == MOST_ITEMS + 6 and isinstance(results[0], Reported)
        assert Counter(r.code for r in results) == {200: MOST_ITEMS + 5, 422: 1}
        assert client.report(items[:1])[0].duplicate
        assert client.report([]) == []
        with pytest.raises(GateError, match="sum to 1") as refusal:
            client.decide(["cats"], [0.5])
        assert refusal.value.status == 422
        with pytest.raises(ValueError, match=r"(?i)json"):
            client.decide(["cats"], [float("nan")])
    with make(served.url, "wrong") as client, pytest.raises(GateError) as refusal:
        client.decide(["cats"], [1.0])
    assert refusal.value.status == 401


@BOTH
def test_connections_stay_open(served: Served, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    connect = http.client.HTTPConnection.connect

    def counted(self: Any) -> None:
        made.append(1)
        connect(self)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", counted)
    with make(served.url, served.keys["gate"]) as client:
        for _ in range(5):
            client.decide(["cats"], [1.0])
    assert len(made) == 1


@BOTH
def test_a_server_that_dies_in_between(tmp_path: Path, make: Any) -> None:
    served = Served(tmp_path)
    told: list[str] = []
    ending = threading.Event()

    def send() -> None:
        with make(served.url, served.keys["admin"], timeout=20, patience=120) as client:
            for i in range(100_000):
                if ending.is_set():
                    return
                made = client.decide(["cats"], [1.0], f"r-{i}")
                (result,) = client.report([report(f"k-{i}", decision_id=made.decision_id)])
                assert result.code == 200
                told.append(made.decision_id)

    def until(count: int) -> None:
        while len(told) < count:
            assert thread.is_alive()
            time.sleep(0.02)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for _ in range(2):
            until(len(told) + 5)
            served.kill()
            served.start()
        until(len(told) + 5)
    finally:
        ending.set()
        thread.join()
        served.kill()
    events = served.events()
    decisions = [e.key.partition("\x1f")[2] for e in events if e.kind == "Decision"]
    assert set(told) <= set(decisions) and len(decisions) == len(set(decisions))
    reports = [e.data()["key"] for e in events if e.kind == "HarmReport"]
    assert len(reports) == len(set(reports)) >= len(told)


class _Ill(BaseHTTPRequestHandler):
    """Answers with what is next in the plan; then as a gate would."""

    protocol_version = "HTTP/1.1"
    plan: ClassVar[list[Any]] = []
    seen: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.seen.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.plan.pop(0) if self.plan else 200
        if status == "hang up":
            self.close_connection = True
            return
        good = b'{"q":[1.0],"psi":[1.0],"decision_id":"d","revision":3,"mode":"enforce"}'
        body = good if status in (200, "chunks") else b'{"error":"the log is out of reach"}'
        self.send_response(200 if status == "chunks" else status)
        if status == 429:
            self.send_header("Retry-After", "1")
        if status == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\n" + body[:5] + b"\r\n%x\r\n" % len(body[5:]) + body[5:])
            self.wfile.write(b"\r\n0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def ill() -> Iterator[Callable[..., str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Ill)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def falls_ill(*plan: Any) -> str:
        _Ill.plan[:], _Ill.seen[:] = plan, []
        return f"http://127.0.0.1:{server.server_port}"

    yield falls_ill
    server.shutdown()
    server.server_close()


@BOTH
def test_what_may_pass_is_sent_again_as_it_was(ill: Callable[..., str], make: Any) -> None:
    with make(ill(503, "hang up", 502, "chunks"), "k", patience=60) as client:
        assert client.decide(["a"], [1.0]).decision_id == "d"
        assert len(_Ill.seen) == 4 and len(set(_Ill.seen)) == 1  # the same request id
        assert client.decide(["a"], [1.0]).revision == 3


@BOTH
def test_when_it_gives_up(ill: Callable[..., str], make: Any) -> None:
    with make(ill(*[503] * 100), "k", patience=0.5) as client:
        with pytest.raises(OutOfReachError, match="503"):
            client.decide(["a"], [1.0])
        assert 1 < len(_Ill.seen) < 20
    with make(ill(500), "k") as client, pytest.raises(GateError, match="500"):
        client.decide(["a"], [1.0])
    assert len(_Ill.seen) == 1
    with make(ill(*[503] * 100), "k", patience=0.3, fail_open=True) as client:
        open_one = client.decide(["a", "b"], [0.25, 0.75])
        assert (open_one.q, open_one.reached, open_one.mode) == ([0.25, 0.75], False, "open")
        assert open_one.decision_id is None and open_one.psi == [1.0, 1.0]
        with pytest.raises(OutOfReachError):
            client.report([report("k")])
    with make("http://127.0.0.1:9", "k", patience=0.2, fail_open=True) as client:
        assert not client.decide(["a"], [1.0]).reached


def test_pauses_grow_and_obey_the_server() -> None:
    retries = Retries(1000.0)
    pauses = [retries.wait("x") for _ in range(9)]
    assert all(a < 2 * b for a, b in pairwise(pauses))
    assert pauses[0] <= 0.05 and 1.0 <= pauses[-1] <= 2.0
    assert Retries(1000.0).wait("x", "7") == 7.0


@pytest.mark.parametrize("url", ["gate:8080", "ftp://gate", "http://"])
def test_a_wrong_address_is_told(url: str) -> None:
    with pytest.raises(ValueError, match="url must be"):
        GateClient(url, "k")


_COPIED = """
import asyncio, sys, time
from client import AsyncGateClient, GateClient, Report

url, key = sys.argv[1:]
with GateClient(url, key) as gate:
    made = gate.decide(["cats", "diets"], [0.7, 0.3])
    print(gate.expose(made.decision_id, ["diets"]))
    item = Report("copied", "k-1", 0.8, "flag", time.time(), made.decision_id, ["diets"])
    print(gate.report([item])[0].status)

async def ask():
    async with AsyncGateClient(url, key) as gate:
        answers = await asyncio.gather(*(gate.decide([i], [1.0]) for i in range(32)))
        print(len({answer.decision_id for answer in answers}))

asyncio.run(ask())
print(any(name.startswith("rapo") for name in sys.modules))
"""


def test_the_file_alone_is_a_client(served: Served, tmp_path: Path) -> None:
    shutil.copy(client.__file__, tmp_path / "client.py")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); exec({_COPIED!r})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, served.url, served.keys["admin"]],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "accepted", "32", "False"]


def test_a_cancelled_task_leaves_no_half_read_answer(ill: Callable[..., str]) -> None:
    async def ask() -> list[int]:
        async with AsyncGateClient(ill(), "k") as gate:
            task = asyncio.create_task(gate.decide(["a"], [1.0]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return [(await gate.decide(["a"], [1.0])).revision for _ in range(3)]

    assert asyncio.run(ask()) == [3, 3, 3]


def test_many_threads_share_a_client(served: Served) -> None:
    shared, answers = GateClient(served.url, served.keys["gate"]), []
    work = lambda i: answers.append(shared.decide([i], [1.0], f"t-{i}").decision_id)  # noqa: E731
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.close()
    assert len(set(answers)) == 8


@pytest.mark.parametrize("words", [
    "import rapo_gate.client", "from rapo_gate import GateConfig, StoreError",
])  # fmt: skip
def test_a_platform_that_only_calls_does_not_load_the_fold(words: str) -> None:
    program = f"import sys; {words}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"numba", "fastapi", "rapo_gate.fold.fold"} & set(done.stdout.split())
