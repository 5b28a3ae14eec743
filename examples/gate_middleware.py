"""ASGI middleware that gates a recommender's responses: the recommender itself does not change.

The recommender answers with candidates and scores; the middleware asks the gate, puts the gated
law in the place of the scores and adds the decision's id, which the platform names when it reports.
While the gate is out of reach, what was proposed is served unchanged and marked as such.

    GATE_URL=http://127.0.0.1:8080 GATE_KEY=… uvicorn examples.gate_middleware:app
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rapo_gate.client import AsyncGateClient, GateError

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Gated:
    """Gates JSON responses of the form `{"regions": […], "p": […], …}`; others pass untouched.

    Args:
        app: the recommender.
        client: of the gate; with `fail_open`, and with less patience than its users have.
        paths: prefixes of the paths that are gated.
    """

    def __init__(self, app: App, client: AsyncGateClient, paths: tuple[str, ...]) -> None:
        self._app, self._client, self._paths = app, client, paths

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Hold the response back until the gate has answered."""
        if scope["type"] != "http" or not scope["path"].startswith(self._paths):
            await self._app(scope, receive, send)
            return
        start: Message = {}
        pieces: list[bytes] = []

        async def hold(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                body = await self._gate(scope, start, b"".join(pieces))
                await send(_with_length(start, len(body)))
                await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, hold)

    async def _gate(self, scope: Message, start: Message, body: bytes) -> bytes:
        """The body to send; the one at hand where there is nothing to gate."""
        if start["status"] != 200:
            return body
        try:
            values = json.loads(body)
            regions, p = values["regions"], values["p"]
        except (ValueError, KeyError, TypeError):
            return body
        try:
            made = await self._client.decide(regions, p, _name(scope))
        except GateError as error:  # what the recommender proposes is no distribution
            return json.dumps({**values, "gate": {"reached": True, "error": str(error)}}).encode()
        told = {"reached": made.reached, "decision_id": made.decision_id, "mode": made.mode}
        return json.dumps({**values, "p": made.q, "gate": told}).encode()


def _name(scope: Message) -> str | None:
    """The caller's own name of the request, so that a retry gets the same answer."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return str(value, "latin-1")
    return None


def _with_length(start: Message, length: int) -> Message:
    kept = [(n, v) for n, v in start.get("headers", []) if n.lower() != b"content-length"]
    return {**start, "headers": [*kept, (b"content-length", b"%d" % length)]}


async def recommender(scope: Message, receive: Any, send: Any) -> None:
    """Stands for yours."""
    body = json.dumps({"regions": ["cats", "diets", "news"], "p": [0.5, 0.3, 0.2]}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


app = Gated(
    recommender,
    AsyncGateClient(
        os.environ.get("GATE_URL", "http://127.0.0.1:8080"), os.environ.get("GATE_KEY", ""),
        timeout=0.2, patience=0.3, fail_open=True,
    ),
    paths=("/feed",),
)  # fmt: skip
