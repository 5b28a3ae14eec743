"""Every route of the service against a log whose beginning was dropped by a compaction.

What needs a dropped body is answered with 410 and a sentence, everything else as before, and no
batch fails for the sake of one of its items.
"""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Route

from rapo_gate import Gate, GateConfig
from rapo_gate.log.store import open_store
from rapo_gate.retention import compact
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys

REVIEWER = runpy.run_path(str(Path(__file__).with_name("reviewer.py")))
CONFIG = GateConfig(tick_seconds=60.0, D=2, D_max=20, confirm_ticks=30)
OLD = {"request_id": "old", "regions": ["bad", "good"], "p": [0.5, 0.5]}


class Compacted:
    """A service that decided, was told of harm, and whose log was then compacted."""

    def __init__(self, folder: Path) -> None:
        self.now, self.address = 60_000.0, str(folder / "gate.db")
        self.open()
        self.old = self.post("/v1/decisions", OLD).json()["decision_id"]
        items = [self.report(f"k{i}", source=f"s{i % 3}", signal=f"g{i % 2}") for i in range(60)]
        self.first = self.post("/v1/reports", {"items": items}).json()["results"][0]["report_id"]
        self.now += 60 * 30
        self.gate.tick()
        point = self.now - 60 * 25
        self.recent = self.post("/v1/decisions", {**OLD, "request_id": "new"}).json()["decision_id"]
        self.close()
        store = open_store(self.address)
        compact(store, point, reason="old", clock=lambda: self.now)
        store.close()
        self.open()

    def open(self) -> None:
        self.gate = Gate.open(self.address, CONFIG, clock=lambda: self.now)
        self.app = make_app(self.gate, Keys.of(REVIEWER["KEYS"]))
        self.client = TestClient(self.app, follow_redirects=False)
        self.client.__enter__()

    def close(self) -> None:
        self.client.__exit__(None, None, None)
        self.gate.close()

    def report(self, key: str, **more: Any) -> dict[str, Any]:
        report = {"source": "s0", "key": key, "harm": 1.0, "signal": "g0", "at": self.now}
        return {**report, "regions": ["bad"], **more}

    def send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {REVIEWER['KEYS']['admin']}"}
        return self.client.request(method, path, headers=headers, json=body)

    def post(self, path: str, body: Any) -> Any:
        return self.send("POST", path, body)


@pytest.fixture
def compacted(tmp_path: Path) -> Iterator[Compacted]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        made = Compacted(tmp_path)
    yield made
    made.close()


def answers_of(made: Compacted) -> dict[tuple[str, str], tuple[int, Any]]:
    """For each route of the API: the status that is right, and what is asked."""
    dry = "?dry_run=true"
    return {
        ("GET", "/v1/ping"): (200, None),
        ("POST", "/v1/decisions"): (410, OLD),
        ("POST", "/v1/exposures"): (410, {"decision_id": made.old, "shown": ["bad"]}),
        ("POST", "/v1/reports"): (200, {"items": [made.report("k")]}),
        ("POST", f"/v1/confirmations{dry}"): (200, {"regions": ["bad"]}),
        ("POST", f"/v1/overrides{dry}"): (200, {"region": "bad", "psi": 0.5}),
        ("POST", f"/v1/allow{dry}"): (200, {"region": "bad"}),
        ("POST", f"/v1/rollbacks{dry}"): (200, {"reports": [made.first]}),
        ("POST", f"/v1/mode{dry}"): (200, {"mode": "enforce"}),
        ("POST", f"/v1/config{dry}"): (200, {"changes": {"min_sources": 5}}),
        ("POST", f"/v1/labels{dry}"): (200, {"labels": [{"region": "bad", "group": "g"}]}),
        ("GET", "/v1/regions"): (200, None),
        ("GET", "/v1/regions/bad/chain"): (200, None),
        ("GET", "/v1/regions/bad"): (200, None),
        ("GET", f"/v1/decisions/{made.old}"): (410, None),
        ("GET", "/v1/queue"): (200, None),
        ("GET", "/v1/reporters"): (200, None),
        ("GET", "/v1/bias"): (200, None),
        ("GET", "/v1/outcomes"): (200, None),
        ("GET", "/v1/overview"): (200, None),
        ("GET", "/v1/events"): (200, None),
        ("GET", "/v1/verify"): (200, None),
        ("GET", "/healthz"): (200, None),
        ("GET", "/metrics"): (200, None),
    }


def template_of(path: str, made: Compacted) -> str:
    path = path.partition("?")[0].replace(made.old, "{decision_id}")
    return path.replace("/v1/regions/bad", "/v1/regions/{region}")


def test_every_route_of_the_api_answers(compacted: Compacted) -> None:
    asked = answers_of(compacted)
    paths = compacted.app.openapi()["paths"]
    routes = {(m.upper(), path) for path, methods in paths.items() for m in methods}
    assert {(m, template_of(path, compacted)) for m, path in asked} == routes
    for (method, path), (status, body) in asked.items():
        answer = compacted.send(method, path, body)
        assert answer.status_code == status, (path, answer.text)
        if status == 410:
            assert "dropped by a compaction" in answer.json()["error"]
            documented = paths[template_of(path, compacted)][method.lower()]["responses"]
            assert "410" in documented
    assert compacted.send("GET", "/v1/verify").json()["ok"]


def test_every_page_answers(compacted: Compacted) -> None:
    client = compacted.client
    assert REVIEWER["log_in"](client, REVIEWER["KEYS"]["admin"]).status_code == 303
    pages = {
        "/": 200, "/overview/live": 200, "/regions": 200, "/region?name=bad": 200, "/queue": 200,
        "/reporters": 200, "/decisions": 200, f"/decision?id={compacted.old}": 410, "/bias": 200,
        "/policy": 200, f"/find?q={compacted.old}": 303, "/login": 303,
        "/actions/rollback?source=s0": 200, "/static/page.css": 200,
    }  # fmt: skip
    gets = {
        route.path.partition("/{")[0]
        for route in compacted.app.routes
        if isinstance(route, Route) and not route.include_in_schema and "GET" in route.methods
    }
    reached = {p.partition("?")[0] for p in pages}
    assert {p for p in gets if not any(r == p or r.startswith(f"{p}/") for r in reached)} <= {
        "/openapi.json"
    }
    for page, status in pages.items():
        answer = client.get(page)
        assert answer.status_code == status, page
    assert "dropped by a compaction" in client.get(f"/decision?id={compacted.old}").text
    assert compacted.recent in (listed := client.get("/decisions").text)
    assert compacted.old not in listed and "A compaction dropped" in listed


def test_dropped_reports_stand_in_a_chain_by_what_is_left_of_them(compacted: Compacted) -> None:
    chain = compacted.send("GET", "/v1/regions/bad/chain").json()
    assert chain["reports_in_all"] == 60 and len(chain["reports"]) == 50
    report = chain["reports"][0]
    assert report["harm"] is report["key"] is report["weight"] is None
    assert report["harm_here"] > 0 and report["source"] in ("s0", "s1", "s2")


def test_a_batch_goes_on_where_one_item_needs_what_was_dropped(compacted: Compacted) -> None:
    items = [
        compacted.report("a"),
        compacted.report("b", decision_id=compacted.old),
        compacted.report("c", decision_id=compacted.recent),
    ]
    answer = compacted.post("/v1/reports", {"items": items})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [r["code"] for r in results] == [200, 410, 200]
    assert "dropped by a compaction" in results[1]["error"]
