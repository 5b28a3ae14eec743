"""A gate on SQLite is killed again and again while clients write; nothing promised may be lost."""

from __future__ import annotations

import gc
import os
import random
import selectors
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from chaos.account import Account
from chaos.client import CONFIG, STREAMS, Client, Pipe
from rapo_gate import Gate
from rapo_gate.log.sqlite import SqliteStore

MOST_HEARD = 20
"""Acknowledgements after which a gate is killed, at most: a busy machine needs longer for them."""
MOST_ALIVE = 0.02
"""Seconds that it lives on after them, at most."""
EARLY = 0.1
"""Share of the rounds in which it is killed before that: while it opens and recovers."""
VERIFY_EVERY = 50
"""Rounds between full replays; integrity is checked as often. The log grows with every round."""
_SLOWEST = 600.0
"""Seconds after which a child that says nothing has failed, on a busy machine too."""


def run(rounds: int, seed: int | None = None, say: Callable[[str], None] = print) -> dict[str, str]:
    """Kill `rounds` gates.

    Args:
        rounds: how often.
        seed: of the moments at which they are killed.
        say: gets a line of progress now and then.

    Returns:
        The result as names and values; `problem` is among them if one was found.
    """
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of older versions of SQLite
        path = Path(folder) / "gate.db"
        warm_up(Path(folder) / "warm.db")
        Gate.open(path, CONFIG).close()
        account, started, began = Account(), time.time(), time.monotonic()
        verified, done = 0, 0
        while done < rounds and not account.problems:
            _round(path, account, started, draw)
            done += 1
            _check(path, account)
            if done % VERIFY_EVERY == 0 or done == rounds:
                _verify(path, account)
                verified += 1
                say(f"kill: {done} of {rounds} rounds, {len(account.acknowledged)} acknowledged")
        seconds = (time.monotonic() - began) / max(done, 1)
    result = {
        "rounds": str(done),
        "acknowledged": str(len(account.acknowledged)),
        "sent again": str(account.resent),
        "events in the log": str(account.position),
        "lost": str(sum("acknowledged" in p for p in account.problems)),
        "doubled": str(account.doubled),
        "replays and integrity": f"{verified} ok" if not account.problems else "see problem",
        "seconds a round": f"{seconds:.2f}",
    }
    if account.problems:
        result["problem"] = account.problems[0]
    return result


def warm_up(path: Path) -> None:
    """Load and compile everything here, so that children need not."""
    with Gate.open(path, CONFIG) as gate:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        client = Client(gate, Pipe(nowhere), "w0", 0, time.time())
        client.start()
        time.sleep(1.5)  # ticks pass: reports count, fields are folded
        client.stopping.set()
        client.join()
        gate.verify()
    os.close(nowhere)


def _round(path: Path, account: Account, started: float, draw: random.Random) -> None:
    """One life of a gate."""
    read, write = os.pipe()
    gc.freeze()  # what was here before the fork is not collected in the child
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _live(path, Pipe(write), dict(account.steps), started)
        finally:
            os._exit(1)
    os.close(write)
    early = draw.random() < EARLY
    wanted, alive = draw.randint(1, MOST_HEARD), draw.random() * MOST_ALIVE
    try:
        rest = b""
        while not early and rest.count(b"ack ") < wanted and b"error " not in rest:
            words = _next_words(read)
            if not words:
                account.problems.append("a child ended by itself, or hung")
                break
            rest += words
        time.sleep(alive)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while piece := os.read(read, 1 << 16):
            rest += piece
    finally:
        os.close(read)
    for line in rest.decode().splitlines():
        account.take(line)


def _next_words(descriptor: int) -> bytes:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return os.read(descriptor, 1 << 16) if selector.select(_SLOWEST) else b""


def _live(path: Path, pipe: Pipe, steps: dict[str, int], started: float) -> None:
    """In the child: open the gate, let the clients in, wait for the end."""
    try:
        gate = Gate.open(path)
    except Exception as error:
        pipe.tell("error", repr(error).replace("\n", " "))
        return
    names = [f"k{i}" for i in range(STREAMS)]
    clients = [Client(gate, pipe, name, steps.get(name, 0), started) for name in names]
    for client in clients:
        client.start()
    signal.pause()


def _check(path: Path, account: Account) -> None:
    """Recover the file as an opening gate does, and compare."""
    store = SqliteStore(str(path))
    try:
        account.check(store)
    finally:
        store.close()


def _verify(path: Path, account: Account) -> None:
    with Gate.open(path) as gate:
        found = gate.verify()
        if not found["ok"]:
            account.problems.append(f"verify found {found}")
        account.check(gate.store)
