"""The recommender of the gate's front page works: it serves, takes complaints, and remembers."""

import re
import time

import pytest
from repository import DOCS

pytest.importorskip("fastapi", reason="needs the extra `gate`")
from fastapi.testclient import TestClient

from rapo_gate import Gate

PAGE = DOCS / "gate" / "README.md"


@pytest.mark.filterwarnings("ignore:SQLite")
def test_the_recommender_of_the_docs_serves_and_takes_complaints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = (
        s
        for s in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
        if "FastAPI" in s
    )
    assert len(code.splitlines()) <= 40
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    with TestClient(names["app"]) as client:
        served = client.get("/feed/ann", params={"request_id": "1"}).json()
        assert len(set(served["shown"])) == 5
        assert client.get("/feed/ann", params={"request_id": "1"}).json() == served
        asked = {"decision": served["decision"], "key": "c-1", "at": time.time()}
        asked["creator"] = served["shown"][0]
        first = client.post("/complaint/ann", params=asked).json()
        again = client.post("/complaint/ann", params=asked).json()
    assert first["status"] == "accepted"
    assert again["duplicate"]
    assert again["report_id"] == first["report_id"]
    with Gate.open(tmp_path / "gate.db", read_only=True) as gate:
        (event,) = (e for e in gate.events() if e.kind == "HarmReport")
    assert event.data()["regions"] == served["shown"][:1]  # and nobody else
