"""RSD on a platform behind the gate: watching changes nothing, enforcing keeps a rumour small."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import pytest
from repository import ROOT

EXAMPLE = ROOT / "examples" / "gated_platform.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("gated_platform", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gate_suppresses_the_replay(example: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        shadow, enforced = (example.diagnose(mode, 2).frame for mode in ("shadow", "enforce"))
    assert shadow["RAG"].tolist() == pytest.approx([1.0, 1.0])
    assert (enforced["RAG"] < 0.6).all()
    assert (enforced["AUC_R"] < 0.6).all()
