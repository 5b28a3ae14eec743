"""Who gets into the reviewer's page, and who does not."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from rapo_gate.service.auth import SESSION_SECONDS, WRONG_KEYS, FailedLogins, Sessions

REVIEWER = runpy.run_path(str(Path(__file__).with_name("reviewer.py")))
PAGES = REVIEWER["PAGES"]
KEYS = REVIEWER["KEYS"]
opened = REVIEWER["opened"]
new_client = REVIEWER["new_client"]
log_in = REVIEWER["log_in"]
logged_in = REVIEWER["logged_in"]
field = REVIEWER["field"]
csrf = REVIEWER["csrf"]


@pytest.fixture
def gate(tmp_path):
    with opened(tmp_path / "gate.db") as gate:
        yield gate


@pytest.fixture
def client(gate):
    return logged_in(gate)


def test_without_a_session_nothing_is_shown(gate):
    client = new_client(gate)
    for page in [*PAGES, "/region?name=chess", "/actions/rollback?source=x", "/find?q=chess"]:
        answer = client.get(page)
        assert answer.status_code == 303 and not answer.text, page
        assert answer.headers["location"].startswith("/login"), page
    assert client.post("/actions/allow", data={"name": "chess"}).status_code == 303
    part = client.get("/overview/live", headers={"HX-Request": "true"})
    assert part.status_code == 401 and part.headers["hx-redirect"] == "/login" and not part.text


def test_login_leads_back_to_the_page_that_was_asked_for(gate):
    client = new_client(gate)
    asked = client.get("/region?name=a%2Fb").headers["location"]
    page = client.get(asked)
    answer = log_in(client, KEYS["review"], field(page.text, "next"))
    assert answer.headers["location"] == "/region?name=a%2Fb"


@pytest.mark.parametrize(
    "elsewhere", ["https://x.example/", "//x.example", "/\\x.example", "javascript:1", "/a\nb", ""]
)
def test_login_leads_nowhere_else(gate, elsewhere):
    assert log_in(new_client(gate), KEYS["review"], elsewhere).headers["location"] == "/"


def test_the_cookie_is_kept_from_scripts_and_other_sites(gate):
    cookie = log_in(new_client(gate), KEYS["review"]).headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert KEYS["review"] not in cookie
    safe = log_in(new_client(gate, base_url="https://testserver"), KEYS["review"])
    assert "Secure" in safe.headers["set-cookie"]


def test_wrong_keys_are_refused_and_a_right_one_gets_in_all_the_same(gate):
    client = new_client(gate)
    assert log_in(client, KEYS["gate"]).status_code == 403
    for _ in range(WRONG_KEYS):
        answer = log_in(client, "guess")
        assert answer.status_code == 401 and "not known" in answer.text
        assert "guess" not in answer.text
    answer = log_in(client, "guess")
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0
    # A stranger behind the same address must not be able to lock people out.
    assert log_in(client, KEYS["review"]).status_code == 303
    assert client.get("/").status_code == 200


def test_attempts_are_forgotten_after_a_while():
    now = [0.0]
    attempts = FailedLogins(lambda: now[0])
    for _ in range(WRONG_KEYS):
        attempts.failed("a")
    assert attempts.wait("a") > 0 and attempts.wait("b") == 0
    now[0] = 61.0
    assert attempts.wait("a") == 0


def test_sessions_end():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    known = sessions.begin("ana", frozenset({"review"}))
    now[0] = SESSION_SECONDS - 1
    assert sessions.find(known) is not None
    now[0] = SESSION_SECONDS
    assert sessions.find(known) is None


def test_a_login_form_of_another_site_is_refused(gate):
    client = new_client(gate)
    assert client.post("/login", data={"key": KEYS["review"]}).status_code == 403
    client.get("/login")
    forged = {"key": KEYS["review"], "token": "forged"}
    assert client.post("/login", data=forged).status_code == 403
    assert client.get("/").status_code == 303


def test_logout_ends_the_session_on_the_server(client):
    cookies = dict(client.cookies)
    assert client.get("/logout").status_code == 405
    assert client.post("/logout", data={"csrf": csrf(client)}).status_code == 303
    client.cookies.update(cookies)
    assert client.get("/").status_code == 303


def test_forms_need_the_token_of_their_session(gate, client):
    before, other = gate.health()["position"], logged_in(gate)
    for token in ({}, {"csrf": "x"}, {"csrf": csrf(other)}):
        answer = client.post("/actions/allow", data={"name": "chess", "reason": "r", **token})
        assert answer.status_code == 403 and "another session" in answer.text
    assert gate.health()["position"] == before
