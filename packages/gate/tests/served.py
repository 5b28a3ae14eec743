"""A gate that is really served, in a process of its own; it can be killed and started again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

from rapo_gate import Gate
from rapo_gate.service.auth import write_key_file

_PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
from rapo_gate.service.serve import serve
serve(sys.argv[1], sys.argv[2], port=int(sys.argv[3]))
"""


class Served:
    """The service on a port that stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        self.db, self.key_file = folder / "gate.db", folder / "keys.toml"
        self.keys = write_key_file(self.key_file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Gate.open(self.db).close()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Any = None
        self.start()

    def start(self) -> None:
        """Until it listens."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self.db), str(self.key_file), str(self.port)],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        line = self.process.stderr.readline()
        assert json.loads(line)["url"] == self.url
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def events(self) -> list[Any]:
        """What the log holds; the service must not run."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Gate.open(self.db, read_only=True) as gate:
                return gate.events(limit=100_000)


def logged(db: Path) -> list[str]:
    """Kinds of all events of a log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gate = Gate.open(db, create=False, read_only=True)
    with gate:
        return [event.kind for event in gate.events(0, 10**6)]
