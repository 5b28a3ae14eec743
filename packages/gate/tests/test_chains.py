"""Chains and explanations: what they read, while what else may happen."""

from __future__ import annotations

import threading
from typing import Any

import pytest


@pytest.mark.parametrize("question", ["chain", "explain"])
def test_the_log_is_read_while_others_use_the_state(
    make: Any, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    platform = make()
    made = platform.gate.decide_logged(["bad", "good"], [0.5, 0.5]).result()
    platform.report("s0", decision_id=made.decision_id)
    platform.harm(2, 2, 2)
    later = platform.gate.decide_logged(["bad", "good"], [0.5, 0.5]).result()
    platform.report("s1", decision_id=later.decision_id)
    gate, reads = platform.gate, []

    def watched(method: Any) -> Any:
        def read(*args: Any, **more: Any) -> Any:
            looked = threading.Event()
            threading.Thread(target=lambda: gate.read(lambda _: looked.set()), daemon=True).start()
            reads.append(looked.wait(20))
            return method(*args, **more)

        return read

    for name in ("read", "find"):
        monkeypatch.setattr(gate.store, name, watched(getattr(gate.store, name)))
    if question == "chain":
        found = gate.chain("bad")
        assert found["reports"][0]["harm"] == 1.0 and found["due"]
    else:
        assert gate.explain(made.decision_id)["regions_gated"] == 0
    assert reads and all(reads), "the state was locked while the log was read"
