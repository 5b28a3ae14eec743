"""What is deployed: the files parse, hang together, and ask for metrics that there are."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from repository import ROOT
from served import Served

DEPLOY = ROOT / "deploy"


def loaded(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("deploy"))
    yield made
    made.kill()


def expressions() -> dict[str, str]:
    """Every question to Prometheus, by where it stands."""
    found = {
        rule["alert"]: rule["expr"]
        for group in loaded("prometheus-rules.yaml")["groups"]
        for rule in group["rules"]
    }
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    for variable in board["templating"]["list"]:
        found[variable["name"]] = variable["query"]
    return found


def test_alerts_and_panels_ask_for_metrics_that_there_are(served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.keys['admin']}"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=60) as client:
        made = client.post("/v1/decisions", json={"regions": ["a"], "p": [1.0]})
        item = {"source": "s", "key": "k", "harm": 1, "signal": "g", "at": 1.0, "regions": ["a"]}
        client.post("/v1/reports", json={"items": [item]})
        client.post("/v1/decisions", json={"regions": ["a"], "p": [0.5]})
        page = client.get("/metrics").text
    assert made.status_code == 200
    there: dict[str, set[str]] = {}
    for line in page.splitlines():
        if found := re.match(r"(rapo_gate_\w+)(?:\{(.*)\})? ", line):
            labels = set(re.findall(r'(\w+)="', found[2] or ""))
            there.setdefault(found[1], set()).update(labels | {"instance"})
    asked = expressions()
    assert len(asked) > 25
    for where, expression in asked.items():
        for name, chosen in re.findall(r"(rapo_gate_\w+)(?:\{([^}]*)\})?", expression):
            assert name in there, f"{where} asks for {name}"
            labels = set(re.findall(r"(\w+)\s*=~?", chosen))
            assert labels <= there[name], f"{where} selects by {labels - there[name]}"
        assert expression.count("(") == expression.count(")"), where
    assert 'path="/v1/decisions"' in page


def test_alerts_say_what_to_do() -> None:
    (group,) = loaded("prometheus-rules.yaml")["groups"]
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("page", "ticket")
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) > 5


def test_panels_do_not_overlap() -> None:
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(places) == len(set(places))
    assert len({p["id"] for p in board["panels"]}) == len(places)


def test_compose_hangs_together() -> None:
    whole = loaded("compose.yaml")
    services = whole["services"]
    assert set(services) == {"db", "init", "gate-a", "gate-b"}
    for name, service in services.items():
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in whole["volumes"]
        assert set(service["secrets"]) <= set(whole["secrets"])
        if name == "db":
            continue
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert set(service["depends_on"]) <= set(services)
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert services["db"]["healthcheck"]["test"]
    ports = [p for name in ("gate-a", "gate-b") for p in services[name]["ports"]]
    assert len({p.split(":")[1] for p in ports}) == 2
    assert all(p.startswith("127.0.0.1:") for p in ports)  # a proxy with TLS is in front


def test_the_image_runs_as_nobody_special() -> None:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line and line[0] != "#"]
    known = {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
             "STOPSIGNAL", "ENTRYPOINT", "CMD"}  # fmt: skip
    assert {word for word, _ in lines} <= known
    users = [rest for word, rest in lines if word == "USER"]
    assert users and users[-1].split(":")[0] not in ("root", "0")
    after = [word for word, _ in lines[[w for w, _ in lines].index("USER") :]]
    assert "RUN" not in after and "HEALTHCHECK" in after
    for rest in (rest for word, rest in lines if word == "FROM"):
        assert re.fullmatch(r"python:3\.\d+-slim( AS \w+)?", rest)
    for rest in (rest for word, rest in lines if word == "COPY" and "--from" not in rest):
        assert all((ROOT / name).exists() for name in rest.split()[:-1])
    for word, rest in lines:
        if word in ("ENTRYPOINT", "CMD"):
            assert json.loads(rest)
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert {"!packages/core", "!packages/gate", "!constraints.txt"} <= set(kept)


def test_commands_that_are_deployed_are_commands_of_rapo() -> None:
    given = re.findall(r"rapo-gate (\w+)((?: +--[\w-]+(?: [^\s-]\S*)?)*)", _all_text())
    assert {"serve", "init"} <= {name for name, _ in given}
    for name, options in given:
        program = "from rapo_gate.cli import main; main()"
        shown = subprocess.run(
            [sys.executable, "-c", program, name, "--help"], capture_output=True,
            text=True, check=True, env={**os.environ, "COLUMNS": "200"},
        ).stdout  # fmt: skip
        for option in re.findall(r"--[\w-]+", options):
            assert option in shown, f"rapo-gate {name} has no {option}"


def _all_text() -> str:
    return "\n".join(p.read_text() for p in DEPLOY.iterdir() if p.is_file())


def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read(DEPLOY / "rapo-gate.service")
    assert set(unit) - {"DEFAULT"} == {"Unit", "Service", "Install"}
    service = unit["Service"]
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert service["User"] not in ("", "root") and service["UMask"] == "0077"
    if shutil.which("systemd-analyze") is None:
        return
    here = tmp_path / "rapo-gate.service"
    text = (DEPLOY / "rapo-gate.service").read_text()
    here.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text))
    told = subprocess.run(
        ["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False
    )
    assert not [line for line in told.stderr.splitlines() if "rapo-gate.service:" in line]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_lines_of_the_docs_run(served: Served) -> None:
    page = (ROOT / "docs/gate/client.md").read_text()
    blocks = [b for b in re.findall(r"```sh\n(.*?)```", page, re.S) if "curl" in b]
    assert len(blocks) == 3
    for block in blocks:
        env = {**os.environ, "GATE": served.url, "GATE_KEY": served.keys["admin"]}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block], capture_output=True, text=True,
            env=env, check=False,
        )  # fmt: skip
        assert done.returncode == 0, block + done.stderr
        assert '"code":4' not in done.stdout.replace(" ", "")


def test_the_middleware_gates_and_fails_open(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient

    def feed(url: str, key: str, path: str = "/feed/u1") -> Any:
        monkeypatch.setenv("GATE_URL", url)
        monkeypatch.setenv("GATE_KEY", key)
        space: dict[str, Any] = {"__name__": "middleware"}
        exec((ROOT / "examples/gate_middleware.py").read_text(), space)
        space["app"]._client.timeout = space["app"]._client.patience = (
            1.0 if url[-1] == "9" else 60.0
        )
        client = TestClient(space["app"])
        return client.get(path, headers={"x-request-id": "m-1"}).json()

    gated = feed(served.url, served.keys["gate"])
    assert gated["gate"]["reached"] and gated["gate"]["mode"] == "shadow"
    again = feed(served.url, served.keys["gate"])
    assert again["gate"]["decision_id"] == gated["gate"]["decision_id"]
    assert gated["p"] == [0.5, 0.3, 0.2]
    assert "gate" not in feed(served.url, served.keys["gate"], "/other")
    alone = feed("http://127.0.0.1:9", "k")
    assert alone["p"] == [0.5, 0.3, 0.2] and not alone["gate"]["reached"]
