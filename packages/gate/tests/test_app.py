"""Around every request: keys and scopes, headers, logs, failures, health and metrics."""

from __future__ import annotations

import json
import logging
from io import StringIO
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rapo_gate import StoreError
from rapo_gate.service.app import log_to, make_app
from rapo_gate.service.auth import Keys
from rapo_gate.service.guard import LOGGER

_SCOPED = [
    ("POST", "/v1/decisions", "gate"), ("POST", "/v1/exposures", "gate"),
    ("GET", "/v1/ping", "gate"),
    ("POST", "/v1/reports", "report"),
    ("GET", "/v1/regions", "review"), ("GET", "/v1/regions/a", "review"),
    ("GET", "/v1/regions/a/chain", "review"), ("POST", "/v1/overrides", "review"),
    ("POST", "/v1/allow", "review"), ("POST", "/v1/rollbacks", "review"),
    ("POST", "/v1/confirmations", "review"), ("GET", "/v1/events", "review"),
    ("GET", "/v1/decisions/x", "review"), ("GET", "/v1/queue", "review"),
    ("GET", "/v1/reporters", "review"), ("GET", "/v1/bias", "review"),
    ("GET", "/v1/outcomes", "review"), ("GET", "/v1/overview", "review"),
    ("POST", "/v1/mode", "admin"), ("POST", "/v1/labels", "admin"), ("GET", "/v1/verify", "admin"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "scope"), _SCOPED)
def test_scopes(service: Any, method: str, path: str, scope: str) -> None:
    mark = service.mark()
    for bad in (
        {}, {"Authorization": service.keys[scope]}, {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {service.keys[scope]}"},
        {"Authorization": f"Bearer {service.keys[scope]}x"},
    ):  # fmt: skip
        answer = service.client.request(method, path, headers=bad, json={})
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer")
    for other in {"gate", "report", "review"} - {scope}:
        answer = service.send(method, path, {} if method == "POST" else None, key=other)
        assert answer.status_code == 403 and repr(scope) in answer.json()["error"]
    for right in (scope, "admin"):
        answer = service.send(method, path, {} if method == "POST" else None, key=right)
        assert answer.status_code in (200, 404, 422)
    assert service.mark() == mark


def test_the_scheme_of_a_key_may_be_written_in_any_case(service: Any) -> None:
    answer = service.client.get(
        "/v1/ping", headers={"Authorization": f"bEARER {service.keys['gate']}"}
    )
    assert answer.json() == {"ok": True}


# --- around every request


def test_methods_and_paths_that_are_not_there(service: Any) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = service.send(method, "/v1/decisions")
        assert answer.status_code == 405 and answer.headers["Allow"] == "POST"
        assert list(answer.json()) == ["error"]
    assert service.get("/v1/nothing").status_code == 404
    assert service.get("/docs").status_code == 404


def test_headers_of_every_answer(service: Any) -> None:
    for answer in (service.get("/v1/ping"), service.client.get("/v1/ping"), service.get("/x")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert len(answer.headers["X-Request-ID"]) == 16
    mine = service.get("/v1/ping", headers={"X-Request-ID": "abc-1"})
    assert mine.headers["X-Request-ID"] == "abc-1"
    odd = service.get("/v1/ping", headers={"X-Request-ID": "a b\tc"})
    assert odd.headers["X-Request-ID"] != "a b\tc"


def test_a_line_per_request_without_the_key(service: Any) -> None:
    stream = StringIO()
    before = (LOGGER.handlers, LOGGER.level, LOGGER.propagate)
    log_to(stream)
    try:
        service.post("/v1/decisions", service.halves, key="gate", headers={"X-Request-ID": "id-7"})
        service.get("/v1/regions/secret-region")
        service.client.get("/v1/ping", headers={"Authorization": "Bearer guessed-key"})
    finally:
        LOGGER.handlers, LOGGER.level, LOGGER.propagate = before
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(e["method"], e["route"], e["status"]) for e in lines] == [
        ("POST", "/v1/decisions", 200), ("GET", "/v1/regions/{region}", 404),
        ("GET", "/v1/ping", 401),
    ]  # fmt: skip
    assert lines[0]["request_id"] == "id-7" and lines[0]["key"].startswith("gate-")
    assert lines[0]["ms"] > 0 and lines[0]["client"] == "testclient"
    for secret in (*service.keys.values(), "guessed-key", "secret-region"):
        assert secret not in stream.getvalue()


def test_a_fault_says_nothing_of_itself(
    service: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(*_: Any) -> Any:
        raise RuntimeError("the inner secret")

    monkeypatch.setattr(service.gate, "read", fault)
    with caplog.at_level(logging.ERROR, LOGGER.name):
        answer = service.get("/v1/regions")
    assert answer.status_code == 500 and "secret" not in answer.text
    assert "the inner secret" in caplog.text


def test_a_store_that_fails_is_never_acknowledged(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.post("/v1/decisions", service.halves)
    position = service.gate.store.last()

    def fail(*_: Any) -> Any:
        raise StoreError(f"{service.gate.store.address}: disk I/O error")

    monkeypatch.setattr(service.gate.store, "appending", fail)
    for path, body in (
        ("/v1/decisions", service.halves), ("/v1/reports", {"items": [service.report()]}),
        ("/v1/allow", {"region": "diets", "reason": "r"}),
    ):  # fmt: skip
        answer = service.post(path, body)
        assert answer.status_code == 503 and answer.headers["Retry-After"]
        assert service.gate.store.address not in answer.text
    assert service.gate.store.last() == position
    health = service.client.get("/healthz")
    assert health.status_code == 503 and health.json()["status"] == "broken"
    assert "disk I/O error" in health.json()["why"]
    assert service.gate.store.address not in health.text


def test_health_and_metrics_are_open(service: Any) -> None:
    service.scar()
    service.client.get("/v1/ping")
    health = service.client.get("/healthz")
    assert health.status_code == 200 and health.json()["status"] == "ok"
    page = service.client.get("/metrics")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/plain")
    text = page.text
    for line in (
        'rapo_gate_decisions_total{mode="shadow"} 1.0', "rapo_gate_up 1.0",
        'rapo_gate_reports_total{status="accepted"} 20.0',
        'rapo_gate_refused_total{code="401"} 1.0',
        "rapo_gate_lag_events 0.0", "rapo_gate_review_queue 0.0",
    ):  # fmt: skip
        assert line in text
    for name in (
        "revision", "position", "tick", "scar_mass", "gating_tv", "floor_share", "unknown",
    ):  # fmt: skip
        assert f"\nrapo_gate_{name} " in text
    assert "rapo_gate_saturated_share" in text
    assert "rapo_gate_request_seconds_bucket" in text
    assert "diets" not in text


def test_health_says_when_the_clock_had_run_ahead(service: Any) -> None:
    service.post("/v1/decisions", service.halves)
    service.now += 3600
    service.gate.tick()
    assert service.client.get("/healthz").json()["status"] == "ok"
    service.now -= 3600  # as when a wrong clock is set right
    health = service.client.get("/healthz")
    assert health.status_code == 200  # no replica is better off
    assert health.json()["status"] == "ahead" and "ahead" in health.json()["why"]
    assert 3500 < health.json()["seconds_ahead"] <= 3600
    text = service.client.get("/metrics").text
    assert "rapo_gate_up 1.0" in text and "rapo_gate_clock_ahead_seconds 3" in text
    with TestClient(make_app(service.gate, Keys.of(service.keys))) as page:
        token = page.get("/login").text.partition('name="token" value="')[2].partition('"')[0]
        entered = page.post("/login", data={"token": token, "key": service.keys["review"]})
        assert entered.status_code == 200 and "Ahead of the clock" in entered.text
    service.now += 3600
    assert service.client.get("/healthz").json()["status"] == "ok"


def test_metrics_may_need_a_key(service: Any) -> None:
    app = make_app(service.gate, Keys.of(service.keys), metrics_need_key=True, pages=False)
    with TestClient(app) as client:
        assert client.get("/metrics").status_code == 401
        key = {"Authorization": f"Bearer {service.keys['review']}"}
        assert client.get("/metrics", headers=key).status_code == 200


def test_the_document_describes_every_path(service: Any) -> None:
    document = service.client.get("/openapi.json").json()
    assert {(m.upper(), p) for p, ops in document["paths"].items() for m in ops} >= {
        (m, p.replace("/a/", "/{region}/").replace("/a", "/{region}") if "regions" in p else p)
        for m, p, _ in _SCOPED
        if p not in ("/v1/decisions/x", "/v1/allow")
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["responses"]["200"]["content"] and operation["summary"]
