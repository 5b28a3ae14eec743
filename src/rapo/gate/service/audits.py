"""Where questions about a gate are answered: here, or by a process beside the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from rapo.gate.gate import Gate

T = TypeVar("T")


class Audits:
    """Questions answered in this process, on another thread: for tests and small gates."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def ask_waiting(self, question: Callable[..., T], *args: Any) -> T:
        """The answer to a question of `rapo.gate.service.questions`; waits for it."""
        return question(self.gate, *args)

    async def ask(self, question: Callable[..., T], *args: Any) -> T:
        """As `ask_waiting`, without blocking the loop."""
        return await asyncio.to_thread(self.ask_waiting, question, *args)

    async def verify(self) -> dict[str, Any]:
        """Fold the whole log afresh and compare."""
        return await asyncio.to_thread(self.gate.verify)

    def close(self) -> None:
        """Let go of what was started."""
