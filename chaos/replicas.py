"""Two replicas share PostgreSQL while one of them, the appender or the server is broken."""

from __future__ import annotations

import gc
import os
import selectors
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from chaos.account import Account
from chaos.client import CONFIG
from chaos.kill import warm_up
from chaos.replica import Replica, start
from chaos.server import Server
from rapo_gate import Gate
from rapo_gate.fold.state import State
from rapo_gate.log.postgres import PostgresStore

RECOVERY = 10.0
"""Seconds within which both replicas must answer again."""
_CALM = 1.0
"""Seconds between faults."""
_GIVE_UP = 30.0


class Drill:
    """Two replicas under load, the server behind them, and what they were heard to say."""

    def __init__(self, server: Server, address: str) -> None:
        self.server, self.address = server, address
        self.account = Account()
        self.states: dict[str, dict[int, str]] = {"a": {}, "b": {}}
        """Per replica: hash of the fields at a position, whenever it told."""
        self.slowest: dict[str, float] = {}
        """Per fault: longest recovery, in seconds."""
        self.count: dict[str, int] = {}
        self._started = time.time()
        self._rest: dict[str, bytes] = {}
        self._heard: dict[str, set[str]] = {}
        self._selector = selectors.DefaultSelector()
        self.replicas: dict[str, Replica] = {}
        for name in ("a", "b"):
            self.start(name)
        self.recovered(time.monotonic())

    # --- replicas

    def start(self, name: str) -> None:
        """A new process for a replica; its clients go on where they were acknowledged."""
        gc.freeze()
        replica = start(name, self.address, dict(self.account.steps), self._started)
        self.replicas[name], self._rest[name], self._heard[name] = replica, b"", set()
        self._selector.register(replica.pipe, selectors.EVENT_READ, name)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        replica = self.replicas.pop(name)
        self._selector.unregister(replica.pipe)
        self._take(name, replica.end())

    def listen(self, seconds: float) -> None:
        """Take in what replicas say, for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    self.account.problems.append(f"replica {key.data} ended by itself")
                    self._selector.unregister(key.fd)
                self._take(key.data, data)

    def _take(self, name: str, data: bytes) -> None:
        *lines, self._rest[name] = (self._rest[name] + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "state":
                _, position, fields = rest.split(" ")
                self.states[name][int(position)] = fields
            elif word in ("holding", "quiet"):
                self._heard[name].add(word)
            else:
                self.account.take(line.decode())

    def _wait_for(self, name: str, word: str) -> None:
        """Until a replica has said a word."""
        self._until(lambda: word in self._heard[name], f"replica {name} did not say {word}")

    def recovered(self, since: float, names: str = "ab") -> float:
        """Seconds from `since` until these replicas have acknowledged something."""
        heard = self.account.heard
        self._until(
            lambda: all(any(w > since for s, w in heard.items() if s[0] == n) for n in names),
            f"no acknowledgement of all of {', '.join(names)}",
        )
        return time.monotonic() - since

    def _until(self, done: Callable[[], bool], problem: str) -> None:
        last = time.monotonic() + _GIVE_UP
        while not done() and not self.account.problems:
            if time.monotonic() > last:
                self.account.problems.append(f"{problem} within {_GIVE_UP:.0f} s")
            self.listen(0.02)

    # --- faults

    def fault(self, name: str) -> None:
        """Break something, wait until replicas answer again, note how long that took."""
        broken_at = FAULTS[name](self)
        # A frozen appender wakes up late; what counts is that it does not stop the other one.
        seconds = self.recovered(broken_at, "b" if name == "freeze the appender" else "ab")
        self.slowest[name] = max(self.slowest.get(name, 0.0), seconds)
        self.count[name] = self.count.get(name, 0) + 1
        if seconds > RECOVERY:
            self.account.problems.append(f"after '{name}' recovery took {seconds:.1f} s")
        self.recovered(time.monotonic())

    def kill_replica(self) -> float:
        """Kill one at whatever it is doing, and start it again."""
        now = time.monotonic()
        self.kill("a")
        self.start("a")
        return now

    def kill_appender(self) -> float:
        """Kill one that holds the lock and has appended, but not committed."""
        self._hold()
        return self.kill_replica()

    def freeze_appender(self) -> float:
        """Stop one that holds the lock; it comes back to life when the lock is another's."""
        self._hold()
        return time.monotonic()

    def restart_server(self) -> float:
        """Crash PostgreSQL and start it again; the replicas can do nothing before it is back."""
        self.server.restart()
        return time.monotonic()

    def _hold(self) -> None:
        self._heard["a"].discard("holding")
        self.replicas["a"].signal(signal.SIGUSR1)
        self._wait_for("a", "holding")

    # --- the end

    def finish(self) -> None:
        """Stop the load, let both replicas catch up, compare everything."""
        for replica in self.replicas.values():
            replica.signal(signal.SIGTERM)
        for name in self.replicas:
            self._wait_for(name, "quiet")
        a, b = self.states["a"], self.states["b"]
        self._until(lambda: max(a, default=-1) == max(b, default=-2), "no common position")
        self.close()
        store = PostgresStore(self.address)
        try:
            self.account.check(store)
            self._compare(store)
            if (found := store.integrity()) != "ok":
                self.account.problems.append(found)
        finally:
            store.close()

    def _compare(self, store: PostgresStore) -> None:
        """Every state that a replica told must be the fold of the log up to there."""
        fresh = State()
        while events := store.read(fresh.position, 5000):
            for event in events:
                fresh.apply(event, store)
                told = {s[event.position] for s in self.states.values() if event.position in s}
                if told and told != {fresh.field_hash()}:
                    self.account.problems.append(f"a replica had other fields at {event.position}")

    def close(self) -> None:
        """Kill what runs."""
        for name in list(self.replicas):
            self.kill(name)


FAULTS: dict[str, Callable[[Drill], float]] = {
    "kill -9 a replica": Drill.kill_replica,
    "kill -9 the appender": Drill.kill_appender,
    "freeze the appender": Drill.freeze_appender,
    "restart PostgreSQL": Drill.restart_server,
}
"""Each breaks something and returns from when on replicas can recover, on the monotonic clock."""


def run(seconds: float, say: Callable[[str], None] = print) -> dict[str, str]:
    """Every fault in turn for about `seconds`, at least once each.

    Returns:
        The result as names and values; `problem` is among them if one was found.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up(Path(folder) / "warm.db")
        server = Server(Path(folder))
        try:
            address = server.new_database()
            Gate.open(address, CONFIG).close()
            drill = Drill(server, address)
            try:
                _drill(drill, seconds, say)
            finally:
                drill.close()
        finally:
            server.close()
    account = drill.account
    result = {
        "acknowledged": str(len(account.acknowledged)),
        "events in the log": str(account.position),
        "lost": str(sum("acknowledged but" in p for p in account.problems)),
        "doubled": str(account.doubled),
        "states compared": str(sum(map(len, drill.states.values()))),
    }
    for name, count in drill.count.items():
        result[f"{name}, {count} times"] = f"recovery within {drill.slowest[name]:.1f} s"
    if account.problems:
        result["problem"] = account.problems[0]
    return result


def _drill(drill: Drill, seconds: float, say: Callable[[str], None]) -> None:
    until = time.monotonic() + seconds
    while not drill.account.problems and (not drill.count or time.monotonic() < until):
        for name in FAULTS:
            drill.listen(_CALM)
            drill.fault(name)
            say(f"replicas: {name}: answers again, slowest {drill.slowest[name]:.1f} s")
            if drill.account.problems:
                break
    drill.finish()
