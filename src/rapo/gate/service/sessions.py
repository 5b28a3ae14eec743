"""Who is logged in at the reviewer's page, and how often somebody may try a wrong key."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any

SESSION_SECONDS = 8 * 3600.0
"""A session ends this long after the login: a working day."""
MOST_SESSIONS = 1000
"""More at a time are not kept; the oldest go."""
WRONG_KEYS = 5
"""Wrong keys that one address may send within `WRONG_SECONDS`."""
WRONG_SECONDS = 60.0
_MOST_ADDRESSES = 10_000

Clock = Callable[[], float]


@dataclass(slots=True)
class Session:
    """One login. It holds what the key opens, not the key."""

    name: str
    scopes: frozenset[str]
    ends: float
    """On the sessions' clock."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Every form sends it back: another site cannot know it."""
    notice: dict[str, Any] | None = None
    """What was just done, to be shown once on the next page."""

    def may(self, scope: str) -> bool:
        """Whether the key opens what `scope` opens."""
        return scope in self.scopes

    def owns(self, token: str) -> bool:
        """Whether a form was made for this session."""
        return compare_digest(self.csrf.encode(), token.encode())

    def take_notice(self) -> dict[str, Any] | None:
        """The notice, once."""
        notice, self.notice = self.notice, None
        return notice


class Sessions:
    """Sessions by random id, in memory: a restart, which is how keys are taken back, ends all.

    >>> sessions = Sessions()
    >>> known = sessions.begin("ana", frozenset({"review"}))
    >>> sessions.find(known).name, sessions.find("another")
    ('ana', None)
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def begin(self, name: str, scopes: frozenset[str]) -> str:
        """Log somebody in; returns the id for the cookie."""
        now = self._clock()
        with self._lock:
            self._sessions = {k: s for k, s in self._sessions.items() if s.ends > now}
            while len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session_id = secrets.token_urlsafe(32)
            self._sessions[session_id] = Session(name, scopes, now + SESSION_SECONDS)
        return session_id

    def find(self, session_id: str) -> Session | None:
        """The session of a cookie, None if there is none or it has ended."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is not None and session.ends <= self._clock():
                del self._sessions[session_id]
                return None
            return session

    def end(self, session_id: str) -> None:
        """Log out."""
        with self._lock:
            self._sessions.pop(session_id, None)


class Attempts:
    """Wrong keys by address. Keys are too long to guess; this keeps the noise of trying down."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: dict[str, list[float]] = {}

    def wait(self, address: str) -> float:
        """Seconds until an address may try again, 0 if it may now."""
        now = self._clock()
        with self._lock:
            recent = [t for t in self._wrong.get(address, ()) if now - t < WRONG_SECONDS]
            if len(recent) < WRONG_KEYS:
                return 0.0
            return WRONG_SECONDS - (now - recent[-WRONG_KEYS])

    def failed(self, address: str) -> None:
        """Note a wrong key."""
        now = self._clock()
        with self._lock:
            recent = [t for t in self._wrong.pop(address, ()) if now - t < WRONG_SECONDS]
            self._wrong[address] = [*recent, now][-WRONG_KEYS:]
            while len(self._wrong) > _MOST_ADDRESSES:
                del self._wrong[next(iter(self._wrong))]
