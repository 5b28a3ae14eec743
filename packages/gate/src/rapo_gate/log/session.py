"""A session with PostgreSQL in which nothing waits for ever."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any, TypeVar

from rapo_core.checks import UserError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:  # pragma: no cover - an installation without the extra
    raise ImportError(
        "a gate in PostgreSQL needs psycopg: pip install 'rapo-gate[postgres]'"
    ) from error

from rapo_gate.log.store import StoreError

__all__ = ["Pool", "Session", "checked_address", "connect", "is_lost", "psycopg", "safe_address"]

CONNECT = 3
"""Seconds to reach the server."""
LOCK = 4.0
"""Seconds to wait for another appender."""
STUCK = 6.0
"""Seconds after which the server ends the session of an appender that does nothing."""
ANSWER = 8.0
"""Seconds for one statement, on the server; a little more here, for a server that hangs."""
_GRACE = 2.0
MOST_READERS = 4
"""Sessions that reads share."""
_CAN_GIVE_UP = "timeout" in signature(psycopg.Connection.wait).parameters  # from 3.3 on

# A lost connection is told by the error that we raise; its remark is for those who have a log.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")

_DEFAULTS: dict[str, Any] = {
    "application_name": "rapo gate",
    "connect_timeout": CONNECT,
    # A machine that vanished answers nothing; without these its silence lasts for minutes.
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "client_encoding": "UTF8",
}


class Session(psycopg.Connection[tuple[Any, ...]]):
    """A connection in autocommit mode whose every wait ends."""

    _most = ANSWER + _GRACE

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server, but not for one that has stopped moving."""
        if _CAN_GIVE_UP and "timeout" not in kwargs and len(args) < 2:
            kwargs["timeout"] = self._most
        return super().wait(gen, *args, **kwargs)

    @contextmanager
    def patient(self, seconds: float) -> Iterator[None]:
        """Inside a transaction: let its statements take longer."""
        self.execute(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
        with self.slow(seconds):
            yield

    @contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Wait longer for this server."""
        self._most = seconds + _GRACE
        try:
            yield
        finally:
            self._most = ANSWER + _GRACE


def checked_address(address: str) -> dict[str, Any]:
    """The settings that an address stands for.

    >>> checked_address("postgresql://me@db.example/gates")["dbname"]
    'gates'
    """
    try:
        parsed = conninfo_to_dict(address)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"the address must be postgresql://user:password@host:port/database; {reason}"
        ) from None
    return {**_DEFAULTS, **parsed}


def safe_address(settings: dict[str, Any]) -> str:
    """An address for messages: no password, no options.

    >>> safe_address(checked_address("postgresql://me:secret@db.example:5433/gates"))
    'postgresql://me@db.example:5433/gates'
    """
    user = f"{settings['user']}@" if settings.get("user") else ""
    host = settings.get("host") or settings.get("hostaddr") or ""
    port = f":{settings['port']}" if settings.get("port") else ""
    return f"postgresql://{user}{host}{port}/{settings.get('dbname') or ''}"


def connect(settings: dict[str, Any], read_only: bool) -> Session:
    """A new session; commits in it are on disk when they return."""
    session = Session.connect(**settings, autocommit=True)
    try:
        session.execute(
            f"SET statement_timeout = {int(ANSWER * 1000)};"
            f"SET lock_timeout = {int(LOCK * 1000)};"
            f"SET idle_in_transaction_session_timeout = {int(STUCK * 1000)};"
            f"SET default_transaction_read_only = {'on' if read_only else 'off'};"
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') <> 'remote_apply'"
        )
    except BaseException:
        session.close()
        raise
    return session


def is_lost(session: Session) -> bool:
    """Whether the connection is gone, or in no state to be used again."""
    return bool(session.closed or session.broken)


class Pool:
    """Up to `MOST_READERS` sessions for questions from any thread.

    Args:
        make: gives a new session.
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._places = threading.BoundedSemaphore(MOST_READERS)
        self._lock = threading.Lock()
        self._free: list[Session] = []
        self._closed = False

    def ask(self, question: Callable[[Session], T]) -> T:
        """The answer to a question that changes nothing, or may be asked twice.

        A session that was lost while nobody used it is replaced; one that is lost now is not.

        Raises:
            psycopg.Error: what the server says, or its silence.
            StoreError: every session is busy.
        """
        if not self._places.acquire(timeout=CONNECT):
            raise StoreError(f"all {MOST_READERS} reading connections are busy")
        try:
            while True:
                with self._lock:
                    kept = self._free.pop() if self._free else None
                session = kept or self._make()
                try:
                    answer = question(session)
                except BaseException as error:
                    lost = isinstance(error, psycopg.Error) and is_lost(session)
                    session.close()
                    if kept is None or not lost:
                        raise
                    self._drop()  # the others went with it
                    continue
                self._give_back(session)
                return answer
        finally:
            self._places.release()

    def _give_back(self, session: Session) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(session)
                return
        session.close()

    def _drop(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for session in free:
            session.close()

    def close(self) -> None:
        """Close what is free now, and what comes back later."""
        self._closed = True
        self._drop()
