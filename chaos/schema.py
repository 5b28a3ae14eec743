"""Requests made from the OpenAPI document, good ones and bad ones, with every check of the answers.

Schemathesis reads the document and sends what it allows and what it forbids. Nothing may end in a
5xx, nothing forbidden may be accepted, and every answer must be one that the document describes.
"""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from rapo_gate import Gate, HarmReport
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys, new_keys
from rapo_gate.service.guard import LOGGER

_NEGATIVE = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]
"""Answers to what the document forbids; 413, for too many items, is not among the defaults."""
_POSITIVE = ["2xx", "401", "403", "404", "409", "422"]
"""Answers to what it allows. JSON Schema cannot say that `p` sums to 1, that text is printable or
that a region is known, so some of it is refused with 422."""


def run(
    requests: int, say: Callable[[str], object] = print, *, examples: int = 60, seed: int = 1,
    seconds: int | None = None,
) -> dict[str, str]:  # fmt: skip
    """Send at least `requests` requests; what came of them, with a `problem` if there is one.

    Args:
        requests: how many to send; every operation gets a full set, so more are sent.
        say: told how far it is.
        examples: random requests per operation and set, besides the systematic ones.
        seed: of the first set.
        seconds: most time to spend on a set, None for as long as it takes.
    """
    begun = time.monotonic()
    found = _Findings()
    LOGGER.setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Gate.open(Path(folder) / "gate.db") as gate:
            _fill(gate)
            keys = new_keys()
            app = make_app(gate, Keys.of(keys), pages=False)
            while found.sent < requests:
                config = _config(keys["admin"], examples, seed, seconds)
                schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
                for event in from_schema(schema).execute():
                    found.take(event)
                seed += 1
                say(f"{found.sent} requests, {len(found.failures)} kinds of failure")
                if found.failures or found.errors:
                    break
            position, verified = gate.store.last(), gate.verify()
    result = found.table()
    result["log"] = f"{position} events, replay {'equal' if verified['ok'] else 'DIFFERENT'}"
    result["seconds"] = f"{time.monotonic() - begun:.0f}"
    if not verified["ok"]:
        result.setdefault("problem", "the log does not give the fields that were served")
    return result


def _fill(gate: Gate) -> None:
    """Something to ask about and to act on."""
    gate.decide(["cats", "diets"], [0.5, 0.5], request_id="r-0")
    gate.decide([1, 2, 3], [0.5, 0.25, 0.25], request_id="r-1")
    gate.flush()
    gate.report([HarmReport("app", "k-0", 1.0, "user", time.time(), regions=["diets"])])


def _config(key: str, examples: int, seed: int, seconds: int | None) -> SchemathesisConfig:
    made: SchemathesisConfig = SchemathesisConfig.from_dict({
        "seed": seed,
        **({} if seconds is None else {"max-time": seconds}),
        "headers": {"Authorization": f"Bearer {key}"},
        "continue-on-failure": True,
        "generation": {"max-examples": examples, "mode": "all", "no-shrink": True},
        "checks": {
            "negative_data_rejection": {"expected-statuses": _NEGATIVE},
            "positive_data_acceptance": {"expected-statuses": _POSITIVE},
        },
    })  # fmt: skip
    return made


class _Findings:
    def __init__(self) -> None:
        self.sent = 0
        self.statuses: Counter[str] = Counter()
        self.failures: dict[str, str] = {}
        self.errors: list[str] = []

    def take(self, event: Any) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.errors.append(str(getattr(event, "value", None) or event.exception)[:500])
        if not isinstance(event, events.ScenarioFinished):
            return
        for interaction in event.recorder.interactions.values():
            if interaction.response is not None:
                self.sent += 1
                self.statuses[f"{interaction.response.status_code // 100}xx"] += 1
        for case, checks in event.recorder.checks.items():
            for check in checks:
                if check.failure_info is not None:
                    self._failed(event, case, check)

    def _failed(self, event: Any, case: str, check: Any) -> None:
        failure = check.failure_info.failure
        kind = f"{event.recorder.label}: {check.name}: {failure.title}"
        sent = event.recorder.interactions.get(case)
        body = sent.request.body if sent is not None else b""
        uri = sent.request.uri if sent is not None else ""
        words = f"{failure.message} | {uri} | {body!r:.300}"
        self.failures.setdefault(kind, words)

    def table(self) -> dict[str, str]:
        """What was found, in words."""
        result = {
            "requests": str(self.sent),
            "answers": ", ".join(f"{n} {kind}" for kind, n in sorted(self.statuses.items())),
            "failed checks": str(len(self.failures)),
        }
        problems = [f"{kind}: {words}" for kind, words in self.failures.items()] + self.errors
        if problems:
            result["problem"] = "\n".join(problems)
        elif not self.sent:
            result["problem"] = "nothing was sent"
        return result
