"""The HTTP service: the contract."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys

NOW = 1_800_000_000.0


def test_a_decision_is_answered_and_in_the_log(service: Any) -> None:
    answer = service.post("/v1/decisions", {**service.halves, "request_id": "r"}, key="gate")
    assert answer.status_code == 200
    found = answer.json()
    assert set(found) == {"decision_id", "q", "psi", "revision", "mode"}
    assert found["q"] == [0.5, 0.5] and found["psi"] == [1.0, 1.0] and found["mode"] == "shadow"
    events = service.get("/v1/events?after=0&limit=10").json()
    (logged,) = (e for e in events["events"] if e["kind"] == "Decision")
    assert logged["decision_id"] == found["decision_id"] and logged["p"] == [0.5, 0.5]
    assert service.get(f"/v1/events?after={events['next']}").json()["events"] == []


def test_the_same_request_gets_the_first_answer_again(service: Any) -> None:
    body = {**service.halves, "request_id": "r"}
    first = service.post("/v1/decisions", body)
    mark = service.mark()
    assert service.post("/v1/decisions", body).json() == first.json()
    other = service.post("/v1/decisions", {**body, "p": [0.25, 0.75]})
    assert other.status_code == 409 and "another body" in other.json()["error"]
    assert service.mark() == mark


def test_integer_regions_and_exact_numbers(service: Any) -> None:
    p = [0.1, 0.2, 0.7]
    found = service.post("/v1/decisions", {"regions": [5, -7, 5], "p": p}).json()
    assert found["q"] == pytest.approx(p, abs=1e-15)
    assert service.get("/v1/regions/5").json()["region"] == 5
    assert service.get("/v1/regions/-7").json()["region"] == -7


def test_a_path_names_a_string_first_then_an_integer(service: Any) -> None:
    service.post("/v1/decisions", {"regions": [5], "p": [1.0]})
    assert service.get("/v1/regions/5").json()["region"] == 5
    service.post("/v1/decisions", {"regions": ["5", "a/b", "c/chain"], "p": [0.5, 0.25, 0.25]})
    assert service.get("/v1/regions/5").json()["region"] == "5"
    assert service.get("/v1/regions/a%2Fb").json()["region"] == "a/b"
    assert service.get("/v1/regions/a%2Fb/chain").json()["region"]["region"] == "a/b"
    for unknown in ("6", "--5", "5.0", "x" * 300, "9" * 30, "%00", ""):
        assert service.get(f"/v1/regions/{unknown}").status_code == 404


ORDINARY = [
    "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}",  # an emoji of two, joined
    "prix\u00a0fixe", "\u3000", "\u0645\u06cc\u200c\u062e", "soft\u00adhyphen",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",  # a flag
]  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_of_all_scripts_are_accepted(service: Any, name: str) -> None:
    made = service.post("/v1/decisions", {"regions": [name], "p": [1.0]})
    assert made.status_code == 200
    found = service.get(f"/v1/regions/{quote(name, safe='')}")
    assert found.status_code == 200 and found.json()["region"] == name
    items = [service.report(source=name, key=name, regions=[name], signal=name)]
    results = service.post("/v1/reports", {"items": items}).json()["results"]
    assert results[0]["status"] == "accepted"


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x00", "a\x7f", "\u2028", "\u202eab", "\u2066", "\ufeffa"]
)
def test_names_that_break_lines_or_turn_them_are_refused(service: Any, name: str) -> None:
    assert service.post("/v1/decisions", {"regions": [name], "p": [1.0]}).status_code == 422


def test_reports_scar_and_people_act(service: Any) -> None:
    service.scar()
    top = service.get("/v1/regions?top=1", key="review").json()
    assert top["regions"][0]["region"] == "diets" and top["known"] == 2
    before = service.get("/v1/regions/diets").json()
    assert before["psi"] < 1 and before["confirmed"]
    chain = service.get("/v1/regions/diets/chain?limit=3").json()
    assert chain["reports_in_all"] == 20 and len(chain["reports"]) == 3
    mark = service.mark()
    dry = service.post("/v1/rollbacks?dry_run=true", {"source": "s0"}, key="review").json()
    assert dry["dry_run"] and dry["reports"] == 5 and dry["event"] is None
    assert service.mark() == mark
    done = service.post("/v1/rollbacks", {"source": "s0", "reason": "spam"}, key="review").json()
    assert done["regions"] == dry["regions"] and done["event"] == mark[0] + 1
    assert service.mark()[1] != mark[1]
    event = service.get(f"/v1/events?after={mark[0]}").json()["events"][0]
    assert event["reason"] == "spam" and event["by"].startswith("review-")
    assert service.get("/v1/verify").json()["ok"]


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/v1/overrides", {"region": "diets", "psi": 0.5, "expires_at": NOW + 1e6}, "review"),
        ("/v1/allow", {"region": "diets"}, "review"),
        ("/v1/rollbacks", {"start": NOW - 1000, "end": NOW + 1000}, "review"),
        ("/v1/confirmations", {"regions": ["diets"]}, "review"),
        ("/v1/mode", {"mode": "enforce", "percent": 50}, "admin"),
        ("/v1/labels", {"labels": [{"region": "diets", "group": "a"}]}, "admin"),
    ],
)
def test_every_action_needs_a_reason_and_can_be_tried(
    service: Any, path: str, body: dict[str, Any], key: str
) -> None:
    service.scar()
    mark = service.mark()
    without = service.post(path, body, key=key)
    assert without.status_code == 422 and "reason" in without.json()["error"]
    blank = service.post(path, {**body, "reason": " "}, key=key)
    assert blank.status_code == 422 and "reason" in blank.json()["error"]
    assert service.post(f"{path}?dry_run=true", body, key=key).json()["dry_run"]
    assert service.post(f"{path}?dryrun=true", {**body, "reason": "x"}).status_code == 422
    assert service.mark() == mark
    done = service.post(path, {**body, "reason": "because"}, key=key)
    assert done.status_code == 200 and done.json()["event"] == mark[0] + 1


def test_enforcing_serves_the_gated_law_and_explains_it(service: Any) -> None:
    service.scar()
    service.post("/v1/mode", {"mode": "enforce", "reason": "go"})
    found = service.post("/v1/decisions", service.halves).json()
    assert found["mode"] == "enforce" and found["q"][1] < 0.5 < found["q"][0]
    assert sum(found["q"]) == pytest.approx(1, abs=1e-12)
    why = service.get(f"/v1/decisions/{found['decision_id']}", key="review").json()
    assert why["applied"] and why["regions"][0]["region"] == "diets"
    assert service.get("/v1/decisions/none").status_code == 404


def test_exposures(service: Any) -> None:
    made = service.post("/v1/decisions", service.halves).json()["decision_id"]
    body = {"decision_id": made, "shown": ["diets"]}
    assert service.post("/v1/exposures", body, key="gate").json() == {"in_time": True}
    mark = service.mark()
    assert service.post("/v1/exposures", body).status_code == 200
    assert service.post("/v1/exposures", {**body, "shown": ["cats"]}).status_code == 409
    assert service.post("/v1/exposures", {**body, "decision_id": "x"}).status_code == 404
    for shown in (["dogs"], "diets", [1.5], [None], {"a": 1}, None):
        assert service.post("/v1/exposures", {**body, "shown": shown}).status_code == 422
    assert service.mark() == mark


def test_a_batch_has_a_result_per_item(service: Any) -> None:
    service.post("/v1/decisions", service.halves)
    items = [
        service.report(key="a"), service.report(key="a"), service.report(key="a", harm=0.5),
        service.report(key="b", harm=2.0), service.report(key="c", regions=["unseen"]), 17,
    ]  # fmt: skip
    answer = service.post("/v1/reports", {"items": items}, key="report")
    results = answer.json()["results"]
    assert answer.status_code == 200
    assert [r["code"] for r in results] == [200, 200, 409, 422, 202, 422]
    assert results[1]["duplicate"] and results[1]["report_id"] == results[0]["report_id"]
    assert results[4]["status"] == "quarantined"
    assert set(results[0]) == {"status", "code", "report_id", "duplicate", "error"}
    many = [service.report(key=f"m{i}") for i in range(1000)]
    results = service.post("/v1/reports", {"items": many}).json()["results"]
    assert len(results) == 1000 and {r["code"] for r in results} == {200}
    assert service.post("/v1/reports", {"items": []}).json() == {"results": []}


def test_a_key_may_be_bound_to_sources(service: Any, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(
        f'[[key]]\nscope="report"\nsha256="{sha256(b"k").hexdigest()}"\nsources=["app-"]\n'
    )
    service.post("/v1/decisions", service.halves)
    with TestClient(make_app(service.gate, Keys.load(path), pages=False)) as client:
        items = [service.report(source="app-1"), service.report(source="web"), {"source": "app-1"}]
        answer = client.post(
            "/v1/reports", json={"items": items}, headers={"Authorization": "Bearer k"}
        )
    results = answer.json()["results"]
    assert [r["code"] for r in results] == [200, 403, 422]
    assert "may not report as 'web'" in results[1]["error"]


@pytest.mark.parametrize("name", ["queue", "reporters", "bias", "outcomes", "overview"])
def test_what_reviewers_read(service: Any, name: str) -> None:
    assert service.get(f"/v1/{name}", key="review").status_code == 200
    service.scar()
    assert service.get(f"/v1/{name}", key="review").status_code == 200


def test_events_come_in_pages_that_fit(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        service.post("/v1/decisions", {**service.halves, "request_id": f"r{i}"})
    monkeypatch.setattr("rapo_gate.service.api._MOST_BYTES", 200)
    seen, after = [], 0
    while events := (page := service.get(f"/v1/events?after={after}").json())["events"]:
        seen += [e["position"] for e in events]
        assert len(events) < 6
        after = page["next"]
    assert seen == list(range(1, 7))
