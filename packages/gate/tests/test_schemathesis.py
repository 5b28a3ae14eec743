"""What the OpenAPI document allows and forbids, sent to the service; all checks must pass.

A short run by default; `RAPO_SCHEMA_REQUESTS=10000` sends that many.
"""

from __future__ import annotations

import os
import sys

import pytest
from repository import ROOT

pytest.importorskip("schemathesis")


def test_every_check_of_schemathesis_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from chaos.schema import run

    wanted = int(os.environ.get("RAPO_SCHEMA_REQUESTS", "0"))
    found = run(wanted or 1, examples=60 if wanted else 2, seconds=None if wanted else 25)
    assert "problem" not in found, found["problem"]
    assert int(found["requests"]) >= (wanted or 50)
    assert "5xx" not in found["answers"]
