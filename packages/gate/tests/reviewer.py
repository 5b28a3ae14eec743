"""A reviewer at the page of a gate, over HTTP in process.

Loaded by path: test files cannot import each other.
"""

from __future__ import annotations

import re
import time
import warnings

from starlette.testclient import TestClient

from rapo_gate import Gate
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys

KEYS = {"review": "key-review", "admin": "key-admin", "gate": "key-gate"}
PAGES = [
    "/",
    "/overview/live",
    "/regions",
    "/queue",
    "/reporters",
    "/decisions",
    "/bias",
    "/policy",
]


def opened(path, config=None, clock=time.time) -> Gate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Gate.open(path, config, clock=clock)


def new_client(gate, **options) -> TestClient:
    return TestClient(make_app(gate, Keys.of(KEYS)), follow_redirects=False, **options)


def log_in(client, key, following="/"):
    token = field(client.get("/login").text, "token")
    return client.post("/login", data={"token": token, "key": key, "next": following})


def logged_in(gate, scope="review") -> TestClient:
    client = new_client(gate)
    assert log_in(client, KEYS[scope]).status_code == 303
    return client


def field(page: str, name: str) -> str:
    return re.search(rf'name="{name}" value="([^"]*)"', page)[1]


def csrf(client) -> str:
    return field(client.get("/queue").text, "csrf")


def do(client, kind, reason="a test", **fields):
    return client.post(f"/actions/{kind}", data={**fields, "csrf": csrf(client), "reason": reason})
