"""What reviewers do on the page: dry runs, reasons, and what is refused."""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from rapo_gate import audit

REVIEWER = runpy.run_path(str(Path(__file__).with_name("reviewer.py")))
logged_in = REVIEWER["logged_in"]
csrf = REVIEWER["csrf"]
do = REVIEWER["do"]
STREAM = runpy.run_path(str(Path(__file__).with_name("stream.py")))
EVIL, SPAMMED, CAMPAIGN = STREAM["EVIL"], STREAM["SPAMMED"], STREAM["CAMPAIGN"]


def test_a_dry_run_changes_nothing_and_a_reason_is_needed(gate, client):
    before, position = gate.fields()[SPAMMED].psi, gate.health()["position"]
    page = client.get(f"/actions/rollback?source={CAMPAIGN}")
    assert page.status_code == 200 and f"{before:.3f}" in page.text and SPAMMED in page.text
    for reason in ("", "   ", "x" * 1001):
        answer = do(client, "rollback", reason, source=CAMPAIGN)
        assert answer.status_code == 422 and 'role="alert"' in answer.text
    kinds = {e.kind for e in gate.events(position)}
    assert "Rollback" not in kinds and gate.fields()[SPAMMED].psi == before


def test_rolling_back_a_reporter(gate, client):
    assert (
        do(client, "rollback", "one campaign", source=CAMPAIGN).headers["location"] == "/reporters"
    )
    assert gate.fields()[SPAMMED].psi >= 0.9
    page = client.get("/reporters").text
    assert "Done: Roll back everything from brigade-7" in page and "all rolled back" in page
    assert "Done:" not in client.get("/reporters").text
    log = client.get("/policy").text
    assert "one campaign" in log and f"Rolled back all reports from {CAMPAIGN}" in log


def test_the_queue_is_confirmed_and_rolled_back(gate, client):
    waiting = {r["waits_for"]: r["report_id"] for r in gate.read(audit.queue)}
    assert set(waiting) == {"late", "unknown region", "agreement"}
    assert do(client, "confirm", reports=waiting["late"]).headers["location"] == "/queue"
    assert "count from the next tick" in client.get(
        f"/actions/confirm?reports={waiting['unknown region']}"
    ).text  # fmt: skip
    assert do(client, "rollback", reports=[waiting["unknown region"]]).status_code == 303
    left = {r["report_id"] for r in gate.read(audit.queue)}
    assert not left & {waiting["late"], waiting["unknown region"]}


def test_override_allow_and_confirm(gate, client):
    fields, began = {"name": "crash diets"}, time.time()
    assert do(client, "override", **fields, psi="0.75", expires_at="86400").status_code == 303
    assert gate.fields()["crash diets"].psi == 0.75
    held = gate.read(lambda s: audit.region_view(s, "crash diets"))["override"]
    assert began + 86400 <= held["expires_at"] <= time.time() + 86400
    assert held["by"].startswith("review")
    assert do(client, "override", **fields).status_code == 303  # no psi: take it back
    assert gate.fields()["crash diets"].psi < 0.75
    assert do(client, "allow", **fields).headers["location"] == "/region?name=crash+diets"
    assert gate.fields()["crash diets"].psi == 1
    assert do(client, "allow", **fields, remove="yes").status_code == 303
    assert gate.fields()["crash diets"].psi < 1
    assert do(client, "confirm", name="opera").status_code == 303
    assert gate.read(lambda s: audit.region_view(s, "opera"))["confirmed"]
    assert do(client, "allow", number="101").headers["location"] == "/region?number=101"


def test_only_an_admin_changes_the_mode(gate, client):
    assert do(client, "mode", mode="shadow").status_code == 403
    assert client.get("/actions/mode?mode=shadow").status_code == 403
    assert "Only a key of scope admin" in client.get("/policy").text
    admin = logged_in(gate, "admin")
    assert "Enforce for 12.5 %" in admin.get("/actions/mode?mode=enforce&percent=12.5").text
    assert do(admin, "mode", "carefully", mode="enforce", percent="12.5").status_code == 303
    assert "Enforcing 12.5 %" in admin.get("/policy").text
    assert do(admin, "mode", "", mode="shadow").status_code == 422
    assert do(admin, "mode", mode="shadow").status_code == 303
    assert gate.health()["mode"] == "shadow"
    assert do(admin, "mode", mode="off").status_code == 422
    assert do(admin, "mode", mode="enforce", percent="nan").status_code == 422


@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        ("override", {"name": "chess", "psi": "abc", "expires_at": ""}, 422),
        ("override", {"name": "chess", "psi": "2", "expires_at": ""}, 422),
        ("override", {"name": "chess", "psi": "", "expires_at": ""}, 422),
        ("override", {"name": "chess", "psi": "1", "expires_at": "77"}, 422),
        ("override", {"name": "nope", "psi": "1", "expires_at": ""}, 422),
        ("override", {"psi": "1", "expires_at": ""}, 422),
        ("override", {"name": "baking"}, 422),
        ("allow", {"name": "baking", "remove": "yes"}, 422),
        ("rollback", {}, 422),
        ("rollback", {"source": "nobody"}, 422),
        ("rollback", {"reports": "one"}, 422),
        ("rollback", {"reports": "1"}, 422),
        ("confirm", {}, 422),
        ("nonsense", {}, 404),
    ],
)
def test_what_cannot_be_done_is_told(gate, client, kind, fields, status):
    asked = client.get(f"/actions/{kind}?{urlencode(fields)}").status_code
    assert asked == (status if fields or status == 404 else 200)  # without fields: the empty form
    position = gate.health()["position"]
    answer = do(client, kind, **fields)
    assert answer.status_code == status and 'role="alert"' in answer.text
    assert {e.kind for e in gate.events(position)} <= {"Tick", "Escalation"}


def test_bodies_that_are_no_forms_are_refused(client):
    token = csrf(client)
    assert client.post("/actions/allow", json={"csrf": token}).status_code == 415
    many = "&".join(f"reports={i}" for i in range(2000))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (many, b"csrf=%ff%fe", "x=" + "y" * (2 << 20)):
        assert client.post("/actions/rollback", content=body, headers=form).status_code in (
            413,
            422,
        )
    assert client.get("/region?name=%ff").status_code == 422
