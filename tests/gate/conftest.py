"""A gate with its HTTP service, in process, with a clock that tests turn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from fastapi.testclient import TestClient

from rapo.core.params import FieldParams
from rapo.gate import Gate, GateConfig, HarmReport
from rapo.gate.service.app import make_app
from rapo.gate.service.auth import Keys, new_keys


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
