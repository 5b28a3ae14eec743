"""The server: a token, this machine's names alone, strict headers, bounded requests and work."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rapo import cli
from rapo.show.lab import server
from rapo.show.lab.api import Api
from rapo.show.lab.latest_job import LatestJob, SupersededError
from rapo.show.lab.server import Lab

BASE = "http://127.0.0.1:8899"


@pytest.fixture
def client(place):
    lab = Lab(Api(place), token="right")
    with TestClient(lab.app, base_url=BASE) as made:
        made.lab = lab
        yield made
    lab.close()


@pytest.fixture
def inside(client):
    client.get("/?token=right")
    return client


def test_nothing_is_told_without_the_token(client):
    for address in ("/", "/?token=wrong", "/?token=", "/static/main.js"):
        reply = client.get(address)
        assert reply.status_code == 403
        assert reply.text.count("\n") == 1 and "token" in reply.text
        assert "right" not in reply.text and not client.cookies
    assert client.post("/api/start", json={}).status_code == 403
    assert client.put("/api/upload?name=a.csv", content=b"x").status_code == 403
    assert not list(client.lab.uploads.iterdir())


def test_the_token_becomes_a_cookie_and_leaves_the_address(client):
    reply = client.get("/?token=right", follow_redirects=False)
    assert reply.status_code == 303 and reply.headers["location"] == "/"
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"


def test_another_name_of_this_machine_is_refused(inside):
    """A foreign site whose name leads to 127.0.0.1 must not be able to ask."""
    assert inside.post("/api/start", json={}).status_code == 200
    foreign = {"host": "evil.example:8899"}
    assert inside.post("/api/start", json={}, headers=foreign).status_code == 403
    assert inside.get("/", headers=foreign).status_code == 403
    cross = {"sec-fetch-site": "cross-site"}
    assert inside.post("/api/start", json={}, headers=cross).status_code == 403


def test_files_of_the_page_alone_are_served(inside):
    assert inside.get("/static/lab.css").headers["content-type"].startswith("text/css")
    for name in ("..%2Fserver.py", "none.js", "%2e%2e", "..%5cserver.py"):
        assert inside.get(f"/static/{name}").status_code == 404


def test_what_is_wrong_is_told_in_one_line(inside, place):
    where = {"kind": place.kind, "nodes": place.nodes, "seed": place.seed}
    for body, control in (
        ({}, "source"),
        ([], "source"),
        ({"source": {"kind": "file", "path": "nowhere.csv"}}, "path"),
        ({"source": where}, "a"),
        ({"source": where, "a": {}, "episodes": {"count": 0}}, "episodes"),
        ({"source": where, "a": {"regions": "odd", "params": {}}, "episodes": {}}, "regions"),
    ):
        reply = inside.post("/api/metrics", json=body)
        assert reply.status_code == 422, body
        told = reply.json()
        assert told["control"] == control and "\n" not in told["error"]
    assert inside.post("/api/metrics", content=b"{").status_code == 400
    assert inside.post("/api/metrics", content=b" " * (server.MOST_REQUEST + 1)).status_code == 413


def test_uploads_are_bounded_and_go_with_the_lab(inside, monkeypatch, edges):
    path = inside.put("/api/upload?name=net.csv", content=edges.read_bytes()).json()["path"]
    assert Path(path).read_bytes() == edges.read_bytes()
    for name in ("..%2F..%2Fevil.csv", "", ".hidden", "a%00b", "sp ace.csv"):
        reply = inside.put(f"/api/upload?name={name}", content=b"x")
        if reply.status_code == 200:
            assert os.path.dirname(reply.json()["path"]) == str(inside.lab.uploads)
        else:
            assert reply.json()["control"] == "upload"
    assert len(list(inside.lab.uploads.iterdir())) == 1
    monkeypatch.setattr(server, "MOST_BYTES", 10)
    reply = inside.put("/api/upload?name=big.csv", content=b"x" * 11)
    assert reply.status_code == 413 and "big.csv" in reply.json()["error"]
    inside.lab.close()
    assert not inside.lab.uploads.exists()


def test_a_newer_job_ends_the_older_ones_of_its_kind():
    work = LatestJob()
    begun, go, ended = threading.Event(), threading.Event(), []

    def first(report):
        begun.set()
        go.wait(30)
        report("A")(1, 2)
        return "first"

    def run(kind, job):
        try:
            ended.append(work.run(kind, job))
        except SupersededError:
            ended.append("superseded")

    threads = [threading.Thread(target=run, args=("metrics", first))]
    threads[0].start()
    assert begun.wait(30)
    for kind, words in (("metrics", "second"), ("metrics", "third"), ("film", "film")):
        threads.append(threading.Thread(target=run, args=(kind, lambda report, w=words: w)))
        threads[-1].start()
        while work._newest.get(kind, 0) < {"second": 2, "third": 3, "film": 1}[words]:
            pass
    go.set()
    for thread in threads:
        thread.join(30)
    assert sorted(ended) == ["film", "superseded", "superseded", "third"]
    work.close()
    with pytest.raises(SupersededError):
        work.run("metrics", lambda report: "late")


def test_a_job_is_stopped_and_tells_how_far_it_is():
    work = LatestJob()
    told = []

    def job(report):
        report("A")(1, 4)
        told.append(work.progress)
        work.stop()
        report("A")(2, 4)
        return "never"

    with pytest.raises(SupersededError):
        work.run("metrics", job)
    assert told == [("A", 0.25)] and work.progress is None
    assert work.run("metrics", lambda report: "later") == "later"


def test_progress_and_stop_are_asked_for_while_a_job_runs(inside, place, monkeypatch):
    where = {"kind": place.kind, "nodes": place.nodes, "seed": place.seed}
    choice = {"source": where, "a": {"regions": "node", "params": {}}, "episodes": {}}
    seen = []

    def slow(source, variant, episodes, on_progress):
        on_progress(1, 2)
        seen.append(inside.post("/api/progress", json={}).json())
        assert inside.post("/api/stop", json={}).status_code == 200
        on_progress(2, 2)

    monkeypatch.setattr("rapo.show.lab.api.measure", slow)
    reply = inside.post("/api/metrics", json=choice)
    assert reply.status_code == 409 and reply.json() == {"superseded": True}
    assert seen == [{"part": "A", "share": 0.5}]
    assert inside.post("/api/progress", json={}).json() == {"part": "", "share": None}


def test_the_page_is_light():
    """At most 300 KB before data."""
    folder = server.files("rapo.show.lab") / "static"
    assert 10_000 < sum(len(file.read_bytes()) for file in folder.iterdir()) <= 300_000


def test_importing_rapo_leaves_the_lab_alone():
    code = (
        "import rapo, sys; print([m for m in sys.modules if 'rapo.show' in m or 'starlette' in m])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_a_missing_package_ends_with_the_name_of_the_extra(module):
    code = f"""
import sys
class Absent:
    def find_spec(name, path, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent)
sys.argv = ["rapo", "lab", "--nodes", "60"]
from rapo.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stdout == ""
    assert "rapo-rl[lab]" in ended.stderr
    assert ended.stderr.count("\n") == 1


def _command(*words, **options):
    line = ["rapo", "lab", *words]
    code = f"import sys; sys.argv = {line!r}; from rapo.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--port", "70000"], "0..65535"),
        (["--set", "tau=-1"], "tau must be a number in"),
        (["--set", "beta=1"], "got 'beta=1'"),
        (["--nodes", "60", "--env", "rapo/Feed-v0"], "choose one of"),
        (["--env", "rapo/Nothing-v0"], "source must be one of"),
        (["--print", "--graph", "gone.csv"], "there is no file gone.csv"),
        (["--print", "--nodes", "60", "--policy", "bold"], "no policy is called"),
        (["--out", "here"], "--print"),
    ],
)
def test_bad_words_end_with_one_line(monkeypatch, capsys, tmp_path, words, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rapo", "lab", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    out, err = capsys.readouterr()
    assert caught.value.code == 2, (out, err)
    assert err.count("\n") == 1 and part in err
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_ends_with_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = _command("--port", str(port), "--no-browser")
        out, err = process.communicate()
    assert process.returncode == 2 and out == ""
    assert err.count("\n") == 1 and str(port) in err and "--port" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_with_its_terminal_and_leaves_nothing(number, tmp_path):
    process = _command("--port", "0", "--no-browser", "--nodes", "60",
                       env={**os.environ, "TMPDIR": str(tmp_path)})  # fmt: skip
    process.stdout.readline()
    address = process.stdout.readline().strip()
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(address.partition("?")[0])
    assert error.value.code == 403
    base, _, token = address.partition("?token=")
    port = base.rstrip("/").rpartition(":")[2]
    asked = urllib.request.Request(
        f"{base}api/start", b"{}", {"Cookie": f"rapo-lab-{port}={token}"}, method="POST"
    )
    with urllib.request.urlopen(asked) as reply:
        assert json.loads(reply.read())["source"]["nodes"] == 60
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 0
    assert not list(tmp_path.glob("rapo-lab-*"))
