"""Every kind of bad input: status, message, and that log and fields stay as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

NOW = 1_800_000_000.0
HALVES = {"regions": ["cats", "diets"], "p": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"harm": float("nan")}, "harm must be finite"),
        ({"harm": float("inf")}, "harm must be finite"),
        ({"harm": -0.1}, "harm must be in"),
        ({"harm": 1.01}, "harm must be in"),
        ({"harm": True}, "harm must be a number"),
        ({"harm": "1"}, "harm must be a number"),
        ({"harm": 10**400}, "harm must be finite"),
        ({"at": NOW + 61}, "in the future"),
        ({"at": NOW - 1441 * 60}, "D_max allows"),
        ({"at": float("-inf")}, "at must be finite"),
        ({"at": None}, "at must be a number"),
        ({"source": ""}, "source must be a string"),
        ({"source": "x" * 201}, "source must be a string"),
        ({"key": "a\x00b"}, "key must be printable"),
        ({"signal": "x" * 65}, "signal must be a string"),
        ({"regions": []}, "regions must be 1 to"),
        ({"regions": "diets"}, "regions must be a list"),
        ({"regions": [1.5]}, "a region must be"),
        ({"regions": [2**63]}, "fit 64 bits"),
        ({"decision_id": "x"}, "no decision"),
        ({"regions": None}, "got neither"),
        ({"regions": None, "decision_id": "x"}, "of no decision"),
        ({"more": 1}, "unknown names"),
    ],
)
def test_a_bad_report_is_refused_alone(service: Any, change: Any, words: str) -> None:
    service.post("/v1/decisions", HALVES)
    mark = service.mark()
    text = json.dumps({"items": [service.report(**change)]})
    answer = service.post("/v1/reports", text)
    (result,) = answer.json()["results"]
    assert answer.status_code == 200
    assert result["status"] == "refused" and result["code"] == 422 and words in result["error"]
    assert result["report_id"] is None
    assert service.mark() == mark


def test_the_limits_of_time_are_themselves_allowed(service: Any) -> None:
    service.post("/v1/decisions", HALVES)
    items = [
        service.report(key="a", at=NOW + 60), service.report(key="b", at=NOW - 1440 * 60),
    ]  # fmt: skip
    results = service.post("/v1/reports", {"items": items}).json()["results"]
    assert [r["code"] for r in results] == [200, 202]  # the second waits for a reviewer


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"p": [0.5, 0.5]}, "regions"),
        ({"regions": ["a"]}, "p"),
        ({**HALVES, "extra": 1}, "extra"),
        ({**HALVES, "p": [0.5, 0.6]}, "p"),
        ({**HALVES, "p": [0.5]}, "p"),
        ({**HALVES, "p": [1.5, -0.5]}, "p"),
        ({**HALVES, "p": [float("nan"), 1.0]}, "p"),
        ({**HALVES, "p": [float("inf"), 0.5]}, "p"),
        ({**HALVES, "p": [0, 0]}, "p"),
        ({**HALVES, "p": [True, 0.0]}, "p"),
        ({**HALVES, "p": ["0.5", "0.5"]}, "p"),
        ({**HALVES, "p": [[0.5], [0.5]]}, "p"),
        ({**HALVES, "p": [10**400, 0]}, "p"),
        ({**HALVES, "p": None}, "p"),
        ({"regions": [], "p": []}, "regions"),
        ({"regions": "ab", "p": [0.5, 0.5]}, "regions"),
        ({"regions": {"a": 1}, "p": [1.0]}, "regions"),
        ({"regions": ["a", 1], "p": [0.5, 0.5]}, "regions"),
        ({"regions": [1, "a"], "p": [0.5, 0.5]}, "regions"),
        ({"regions": [True], "p": [1.0]}, "region"),
        ({"regions": [1.0], "p": [1.0]}, "region"),
        ({"regions": [2**63], "p": [1.0]}, "region"),
        ({"regions": [""], "p": [1.0]}, "region"),
        ({"regions": ["a\nb"], "p": [1.0]}, "region"),
        ({"regions": ["x" * 201], "p": [1.0]}, "region"),
        ({**HALVES, "request_id": 5}, "request_id"),
        ({**HALVES, "request_id": ""}, "request_id"),
        ({**HALVES, "stimulus": []}, "stimulus"),
        ([], "object"),
        (None, "object"),
        ("text", "object"),
    ],
)
def test_a_bad_decision_changes_nothing(service: Any, body: Any, words: str) -> None:
    mark = service.mark()
    answer = service.post("/v1/decisions", json.dumps(body))
    assert answer.status_code == 422
    assert words in answer.json()["error"] and list(answer.json()) == ["error"]
    assert service.mark() == mark


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"regions": ["\\ud800"], "p": [1.0]}', "not JSON"),
        (b'{"regions": ["a"], "p": [1.0], "p": [1.0]}', "'p' occurs twice"),
        (b"[" * 100_000, "not JSON"),
        (b'{"regions": [' + b"9" * 5000 + b'], "p": [1.0]}', "not JSON"),
        (json.dumps(HALVES).encode("utf-16"), "not JSON"),
    ],
)
def test_a_body_that_is_not_json(service: Any, raw: bytes, words: str) -> None:
    mark = service.mark()
    for path in ("/v1/decisions", "/v1/reports", "/v1/overrides"):
        answer = service.post(path, raw)
        assert answer.status_code == 400 and words in answer.json()["error"]
    assert service.mark() == mark


def test_colons_in_names_are_no_trouble(service: Any) -> None:
    body = {"regions": ["a:b", "c:d"], "p": [0.5, 0.5], "request_id": "r:1"}
    assert service.post("/v1/decisions", body).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_must_be_declared_as_json(service: Any, kind: str) -> None:
    mark = service.mark()
    answer = service.post("/v1/decisions", json.dumps(HALVES), headers={"Content-Type": kind})
    assert answer.status_code == 415 and "application/json" in answer.json()["error"]
    assert service.mark() == mark


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/overrides", {"region": "diets", "psi": 0}, "psi"),
        ("/v1/overrides", {"region": "diets", "psi": 1.1}, "psi"),
        ("/v1/overrides", {"region": "diets", "psi": float("nan")}, "psi"),
        ("/v1/overrides", {"region": "diets", "psi": 10**400}, "psi"),
        ("/v1/overrides", {"region": "diets", "psi": "1"}, "psi"),
        ("/v1/overrides", {"region": "diets", "psi": None}, "no override to take back"),
        ("/v1/overrides", {"region": "x", "psi": 1}, "is not known"),
        ("/v1/overrides", {"region": ["diets"], "psi": 1}, "region"),
        ("/v1/overrides", {"region": "diets", "psi": 1, "expires_at": 1}, "expires_at"),
        ("/v1/overrides", {"region": "diets"}, "psi"),
        ("/v1/allow", {"region": 2**80}, "region"),
        ("/v1/allow", {"region": "diets", "remove": 1}, "remove"),
        ("/v1/allow", {"region": "diets", "remove": True}, "not on the allow-list"),
        ("/v1/rollbacks", {}, "it got none"),
        ("/v1/rollbacks", {"reports": []}, "reports"),
        ("/v1/rollbacks", {"reports": [10**30]}, "reports"),
        ("/v1/rollbacks", {"reports": [True]}, "reports"),
        ("/v1/rollbacks", {"reports": 3}, "reports"),
        ("/v1/rollbacks", {"reports": [99]}, "there is no report 99"),
        ("/v1/rollbacks", {"reports": [1], "source": "s"}, "not both"),
        ("/v1/rollbacks", {"source": "nobody"}, "nothing was reported by"),
        ("/v1/rollbacks", {"source": 7}, "source"),
        ("/v1/rollbacks", {"start": 2, "end": 1}, "start < end"),
        ("/v1/rollbacks", {"start": 10**400}, "start"),
        ("/v1/confirmations", {}, "it got none"),
        ("/v1/confirmations", {"regions": ["x"]}, "is not known"),
        ("/v1/confirmations", {"regions": "diets"}, "regions"),
        ("/v1/mode", {"mode": "off"}, "mode"),
        ("/v1/mode", {"mode": ["shadow"]}, "mode"),
        ("/v1/mode", {"mode": "enforce", "percent": 101}, "percent"),
        ("/v1/mode", {"mode": "enforce", "percent": None}, "percent"),
        ("/v1/labels", {"labels": []}, "labels"),
        ("/v1/labels", {"labels": [{"group": "a"}]}, "region"),
        ("/v1/labels", {"labels": [{"region": "x"}]}, "is not known"),
        ("/v1/labels", {"labels": [{"region": "diets", "sensitive": "maybe"}]}, "sensitive"),
        ("/v1/labels", {"labels": [{"region": "diets", "group": 1}]}, "group"),
        ("/v1/labels", {"labels": [{"region": "diets"}, {"region": "diets"}]}, "labelled twice"),
    ],
)
def test_a_bad_action_changes_nothing(
    service: Any, path: str, body: dict[str, Any], words: str
) -> None:
    service.post("/v1/decisions", HALVES)
    mark = service.mark()
    for query in ("", "?dry_run=true"):
        answer = service.post(path + query, json.dumps({**body, "reason": "r"}))
        assert answer.status_code == 422 and words in answer.json()["error"]
    assert service.mark() == mark
    assert service.post("/v1/decisions", HALVES).status_code == 200  # the gate lives


@pytest.mark.parametrize(
    "query",
    ["top=0", "top=1001", "top=-1", "top=1.5", "top=", "top=x", "top=1&top=2", "what=1",
     "top=" + "9" * 30, "top=%D9%A3"],
)  # fmt: skip
def test_a_bad_query_is_refused(service: Any, query: str) -> None:
    answer = service.get(f"/v1/regions?{query}")
    assert answer.status_code == 422 and answer.json()["error"]


def test_too_many_items_and_too_large_a_body(service: Any) -> None:
    service.post("/v1/decisions", HALVES)
    mark = service.mark()
    items = [service.report(key=str(i)) for i in range(1001)]
    answer = service.post("/v1/reports", {"items": items})
    assert answer.status_code == 413 and "1001 items" in answer.json()["error"]
    answer = service.post("/v1/reports", b" " * (2**20 + 1))
    assert answer.status_code == 413 and "1048576 bytes" in answer.json()["error"]

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 30_000

    headers = {"Content-Type": "application/json"}
    answer = service.send("POST", "/v1/reports", content=chunks(), headers=headers)
    assert "content-length" not in answer.request.headers
    assert answer.status_code == 413
    assert service.mark() == mark


def test_a_body_at_the_limit_is_read(service: Any) -> None:
    text = json.dumps(HALVES)
    answer = service.post("/v1/decisions", text + " " * (2**20 - len(text)))
    assert answer.status_code == 200
