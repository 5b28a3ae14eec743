"""Every action, through every door: what follows from its one declaration."""

from __future__ import annotations

import inspect
import io
import json
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from fastapi.testclient import TestClient

from rapo_gate import Gate
from rapo_gate.actions import Mode
from rapo_gate.cli import main
from rapo_gate.declare import ACTIONS, Action, action, action_of
from rapo_gate.fields import ChoiceField
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys

EXAMPLES: dict[str, dict[str, Any]] = {
    "confirm": {
        "fields": {"regions": ["diets"]},
        "words": ["--region", "diets"],
        "form": {"name": "diets"},
    },
    "override": {
        "fields": {"region": "diets", "psi": 0.5},
        "words": ["diets", "--psi", "0.5"],
        "form": {"name": "diets", "psi": "0.5", "expires_at": ""},
    },
    "allow": {
        "fields": {"region": "diets"},
        "words": ["diets"],
        "form": {"name": "diets"},
    },
    "rollback": {
        "fields": {"source": "s0"},
        "words": ["--source", "s0"],
        "form": {"source": "s0"},
    },
    "mode": {
        "fields": {"mode": "enforce", "percent": 50.0},
        "words": ["enforce", "--percent", "50"],
        "form": {"mode": "enforce", "percent": "50"},
    },
    "configure": {
        "fields": {"changes": {"min_sources": 5}},
        "words": ["min_sources=5"],
        "form": {"changes": "min_sources=5"},
    },
    "label": {
        "fields": {"labels": {"diets": {"group": "g", "title": "Diets", "url": "https://x.y/z"}}},
        "body": {
            "labels": [{"region": "diets", "group": "g", "title": "Diets", "url": "https://x.y/z"}]
        },
        "words": ["diets", "--group", "g", "--title", "Diets", "--url", "https://x.y/z"],
        "form": {"name": "diets", "group": "g", "title": "Diets", "url": "https://x.y/z"},
    },
}
"""The same action as a Python call, a JSON body, words of a command and fields of a form."""

every_action = pytest.mark.parametrize("name", list(ACTIONS))


def test_every_action_has_an_example_and_a_method(service: Any) -> None:
    assert set(EXAMPLES) == set(ACTIONS)
    for name in ACTIONS:
        assert callable(getattr(service.gate, {"mode": "set_mode"}.get(name, name)))


@pytest.fixture
def filled(service: Any) -> Any:
    service.scar()
    return service


def made(name: str, **how: Any) -> Action:
    return ACTIONS[name](**EXAMPLES[name]["fields"], **how)


def body_of(name: str, **more: Any) -> dict[str, Any]:
    return {**EXAMPLES[name].get("body", EXAMPLES[name]["fields"]), **more}


def logged(service: Any) -> dict[str, Any]:
    """What the newest event says, without who and why."""
    event = service.gate.events(service.gate.store.last() - 1)[0]
    data = event.data()
    return {"event": event.kind, **{k: v for k, v in data.items() if k not in ("by", "reason")}}


@every_action
def test_library_api_form_and_command_log_the_same(
    filled: Any, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = filled
    tried = service.gate.act(made(name, dry_run=True))
    seen = []
    for door in ("library", "api", "form", "command"):
        mark = service.mark()
        if door == "library":
            effect = service.gate.act(made(name, reason="r", by="ana"))
            assert effect.regions == tried.regions and effect.event == mark[0] + 1
        elif door == "api":
            assert service.post(ACTIONS[name].path, body_of(name, reason="r")).status_code == 200
        elif door == "form":
            assert form(service, "admin", name, reason="r").status_code == 303
        else:
            path = service.gate.store.address
            service.gate.close()
            assert command(monkeypatch, name, "--db", path, "--reason", "r") == 0
            reopened(service, path)
        assert service.gate.store.last() > mark[0]
        done = [e for e in service.gate.events(mark[0]) if action_of(e.kind, e.data())]
        assert len(done) == 1 and action_of(done[0].kind, done[0].data()) is ACTIONS[name]
        data = done[0].data()
        seen.append({k: v for k, v in data.items() if k not in ("by", "reason")})
        assert data["reason"] == "r"
    assert all(one == seen[0] for one in seen), seen


def reopened(service: Any, path: str) -> None:
    service.gate = Gate.open(path, clock=lambda: service.now)


def command(monkeypatch: pytest.MonkeyPatch, name: str, *words: str) -> int:
    argv = ["rapo-gate", name, *EXAMPLES[name]["words"], *words]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def client_of(service: Any, scope: str) -> TestClient:
    app = make_app(service.gate, Keys.of(service.keys))
    client = TestClient(app, follow_redirects=False)
    page = client.get("/login").text
    token = page.partition('name="token" value="')[2].partition('"')[0]
    sent = {"token": token, "key": service.keys[scope]}
    assert client.post("/login", data=sent).status_code == 303
    return client


def form(service: Any, scope: str, name: str, reason: str | None) -> Any:
    client = client_of(service, scope)
    fields = EXAMPLES[name]["form"]
    shown = client.get(f"/actions/{name}", params=fields)
    if reason is None or shown.status_code != 200:
        return shown
    token = shown.text.partition('name="csrf" value="')[2].partition('"')[0]
    sent = {**fields, "csrf": token, "reason": reason}
    return client.post(f"/actions/{name}", data=sent)


@every_action
def test_dry_runs_change_nothing_and_need_no_reason(
    filled: Any, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = filled.mark()
    library = filled.gate.act(made(name, dry_run=True))
    assert library.dry_run and library.event is None
    api = filled.post(f"{ACTIONS[name].path}?dry_run=true", body_of(name)).json()
    assert api["dry_run"] and [c["region"] for c in api["regions"]] == [
        c.region for c in library.regions
    ]
    page = form(filled, "admin", name, None)
    assert page.status_code == 200 and 'name="reason"' in page.text
    assert filled.mark() == mark
    filled.gate.close()
    capsys.readouterr()
    assert command(monkeypatch, name, "--db", filled.gate.store.address, "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["dry_run"] and told["event"] is None
    reopened(filled, filled.gate.store.address)
    kinds = {e.kind for e in filled.gate.events(mark[0])}
    assert kinds <= {"Tick", "Escalation"}  # the command's clock is the real one


@every_action
def test_a_reason_is_needed_everywhere(
    filled: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = filled.mark()
    for bad in ("", "  ", "x" * 1001, None):
        with pytest.raises(ValueError, match="reason"):
            filled.gate.act(made(name, reason=bad))
    assert filled.post(ACTIONS[name].path, body_of(name)).status_code == 422
    assert filled.post(ACTIONS[name].path, body_of(name, reason=" ")).status_code == 422
    assert form(filled, "admin", name, " ").status_code == 422
    assert filled.mark() == mark
    filled.gate.close()
    assert command(monkeypatch, name, "--db", filled.gate.store.address) == 2
    reopened(filled, filled.gate.store.address)
    assert filled.gate.store.last() == mark[0]


@every_action
def test_unknown_names_are_refused(filled: Any, name: str) -> None:
    mark = filled.mark()
    answer = filled.post(ACTIONS[name].path, body_of(name, reason="r", unheard_of=1))
    assert answer.status_code == 422 and "unheard_of" in answer.json()["error"]
    with pytest.raises(TypeError):
        ACTIONS[name](**EXAMPLES[name]["fields"], unheard_of=1)
    assert filled.mark() == mark


@every_action
def test_only_its_scope_may(filled: Any, name: str) -> None:
    mark = filled.mark()
    scope = ACTIONS[name].scope
    for other in ("gate", "report", "review"):
        allowed = other == scope
        answer = filled.post(f"{ACTIONS[name].path}?dry_run=true", body_of(name), key=other)
        assert answer.status_code == (200 if allowed else 403)
    shown = form(filled, "review", name, None)
    assert shown.status_code == (200 if scope == "review" else 403)
    assert filled.mark() == mark


@every_action
def test_every_action_has_a_form_and_words(filled: Any, name: str) -> None:
    client = client_of(filled, "admin")
    empty = client.get(f"/actions/{name}")
    assert empty.status_code == 200 and f'action="/actions/{name}"' in empty.text
    wanted = made(name, reason="r")
    data = wanted.whole_body(filled.gate.engine.state, filled.now)
    for words in (wanted.title(), wanted.meaning(filled.gate.config), wanted.log_line(data, {})):
        assert words and words[0].isupper()
    assert action_of(wanted.event, data) is ACTIONS[name]


@pytest.mark.parametrize("name", list(ACTIONS))
def test_help_of_a_method_shows_the_fields_of_its_action(name: str) -> None:
    method = inspect.signature(getattr(Gate, {"mode": "set_mode"}.get(name, name)))
    own = inspect.signature(ACTIONS[name])
    assert list(method.parameters) == ["self", *own.parameters]
    for field in EXAMPLES[name]["fields"]:
        assert method.parameters[field].default == own.parameters[field].default
        assert "Field" not in str(method.parameters[field].annotation)


def test_an_eighth_action_is_one_declaration(
    service: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rapo_gate.commands import command_of

    monkeypatch.setattr("rapo_gate.declare.ACTIONS", dict(ACTIONS))
    for module in ("service.api", "service.pages"):
        monkeypatch.setattr(f"rapo_gate.{module}.ACTIONS", sys.modules["rapo_gate.declare"].ACTIONS)

    @action("hush", "/v1/hush", scope="admin", event="ConfigChange", part="mode", verb="Hush")
    @dataclass(frozen=True)
    class Hush(Mode):
        """Go to shadow mode for a while."""

        mode: Annotated[str, ChoiceField("Only shadow.", choices=("shadow",))] = "shadow"

    client = client_of(service, "admin")
    assert 'action="/actions/hush"' in client.get("/policy").text
    key = {"Authorization": f"Bearer {service.keys['admin']}"}
    answer = client.post("/v1/hush", json={"mode": "shadow", "reason": "r"}, headers=key)
    assert answer.status_code == 200 and answer.json()["event"]
    assert client.post("/v1/hush", json={"mode": "enforce"}, headers=key).status_code == 422
    path = service.gate.store.address
    service.gate.close()
    command_of(Hush)(
        mode="shadow", percent=100.0, db=path, reason="r", by="", dry_run=False, text_ids=False,
        as_json=True,
    )  # fmt: skip
    assert not json.loads(capsys.readouterr().out)["dry_run"]
    reopened(service, path)
