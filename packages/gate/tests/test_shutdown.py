"""A real server: it ends cleanly under load, and says in one line why it does not start."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from rapo_gate import Gate
from rapo_gate.service.auth import write_key_file
from rapo_gate.service.serve import serve

_PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
from rapo_gate.service.serve import serve
serve(sys.argv[1], sys.argv[2], port=0)
"""


class Server:
    """The service in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.db, self.key_file = folder / "gate.db", folder / "keys.toml"
        self.keys = write_key_file(self.key_file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Gate.open(self.db).close()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self.db), str(self.key_file)],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        line = self._stderr().readline()
        self.port = int(json.loads(line)["url"].rpartition(":")[2])
        self.log: list[str] = []
        threading.Thread(target=lambda: self.log.extend(self._stderr()), daemon=True).start()

    def _stderr(self) -> Any:
        assert self.process.stderr is not None
        return self.process.stderr

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def headers(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[scope]}", "Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def _write(server: Server, worker: int, acknowledged: list[str]) -> None:
    """Send decisions and reports until the server goes away; note what was acknowledged."""
    connection = server.connection()
    gate, report = server.headers("gate"), server.headers("report")
    try:
        for i in range(100_000):
            name = f"{worker}-{i}"
            body: dict[str, Any] = {"request_id": name, "regions": [1, 2], "p": [0.5, 0.5]}
            connection.request("POST", "/v1/decisions", json.dumps(body), gate)
            answer = connection.getresponse()
            made = json.loads(answer.read())
            if answer.status != 200:
                return
            acknowledged.append(f"d\x1f{made['decision_id']}")
            item = {
                "source": "s", "key": name, "decision_id": made["decision_id"], "harm": 0.5,
                "signal": "user", "at": time.time(),
            }  # fmt: skip
            connection.request("POST", "/v1/reports", json.dumps({"items": [item]}), report)
            answer = connection.getresponse()
            (result,) = json.loads(answer.read()).get("results", [{}])
            if result.get("code") != 200:
                return
            acknowledged.append(f"r\x1fs\x1f{name}")
    except (OSError, http.client.HTTPException):
        return  # not acknowledged


def test_sigterm_under_load_loses_nothing_acknowledged(server: Server) -> None:
    acknowledged: list[str] = []
    workers = [threading.Thread(target=_write, args=(server, i, acknowledged)) for i in range(4)]
    for worker in workers:
        worker.start()
    until(lambda: len(acknowledged) > 60, workers[0].is_alive)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait() == 0
    for worker in workers:
        worker.join()
    assert any('"event": "closed"' in line for line in server.log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gate = Gate.open(server.db, create=False)
    with gate:
        kept = gate.store.load_snapshot()
        logged = [e.key for e in gate.events(0, 1_000_000) if e.key]
        assert set(acknowledged) <= set(logged)
        assert len(logged) == len(set(logged))
        assert gate.verify()["ok"]
    assert kept is not None


def test_a_body_too_large_is_answered_though_it_is_still_being_sent(server: Server) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(80):
            yield b" " * 65536

    connection = server.connection()
    connection.request(
        "POST", "/v1/decisions", chunks(), server.headers("gate"), encode_chunked=True
    )
    answer = connection.getresponse()
    assert answer.status == 413 and b"1048576" in answer.read()
    connection = server.connection()
    connection.request("POST", "/v1/decisions", b" " * (4 << 20), server.headers("gate"))
    assert connection.getresponse().status == 413
    with socket.create_connection(("127.0.0.1", server.port), timeout=600) as raw:
        raw.sendall(
            b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n"
            b"Content-Type: application/json\r\nExpect: 100-continue\r\n"
            + f"Authorization: Bearer {server.keys['gate']}\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 413")


def test_why_it_does_not_start(tmp_path: Path) -> None:
    db, key_file, bad = tmp_path / "gate.db", tmp_path / "keys.toml", tmp_path / "bad.toml"
    write_key_file(key_file)
    bad.write_text("[[key]]\n")
    with warnings.catch_warnings(), socket.create_server(("127.0.0.1", 0)) as taken:
        warnings.simplefilter("ignore")
        with Gate.open(db):
            port = taken.getsockname()[1]
            for words, arguments in {
                "cannot listen on 127.0.0.1:.* already in use": (db, key_file, "127.0.0.1", port),
                "cannot listen on nowhere.invalid:0": (db, key_file, "nowhere.invalid", 0),
                "port must be in": (db, key_file, "127.0.0.1", 99_999),
                "there is no key file": (db, tmp_path / "none.toml", "127.0.0.1", 0),
                "number 1: it needs scope": (db, bad, "127.0.0.1", 0),
                "is being written by process": (db, key_file, "127.0.0.1", 0),
                "there is no gate at": (tmp_path / "none.db", key_file, "127.0.0.1", 0),
            }.items():
                with pytest.raises((OSError, ValueError), match=words) as told:
                    serve(*arguments)
                assert "\n" not in str(told.value)
    assert not (tmp_path / "none.db").exists()
