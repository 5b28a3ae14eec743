"""Keys and their scopes, sessions of the reviewer's page, and logins that failed.

A key is 256 random bits, not a password that somebody chose. Nobody can guess it, so one round of
SHA-256 protects it as well as a slow hash would, and checking it takes a microsecond instead of a
tenth of a second.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError
from rapo_gate.config import Clock
from rapo_gate.events import checked_word

SCOPES = ("gate", "report", "review", "admin")
"""gate: decisions and exposures; report: reports of harm; review: reading and human actions;
admin: everything, and alone modes, labels and verification."""

SESSION_SECONDS = 8 * 3600.0
"""A session ends this long after the login: a working day."""
MOST_SESSIONS = 1000
"""Most sessions at a time; beyond, the oldest end."""
WRONG_KEYS = 5
"""Most wrong keys that one address may send within `WRONG_SECONDS`."""
WRONG_SECONDS = 60.0
_MOST_ADDRESSES = 10_000
_LONGEST_KEY = 256
_NAMES = {"scope", "scopes", "sha256", "name", "sources"}
_HEAD = """\
# Keys of a gate's HTTP service, hashed with SHA-256; the keys themselves were shown once.
# `name` is written into the log as the one who acted. `sources` limits a report key to reports
# whose source starts with one of these words. To take a key back, delete its block and restart.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a key."""

    name: str
    scopes: frozenset[str]
    sources: tuple[str, ...] | None = None
    """Prefixes of the sources that the owner may report as; None for any source."""

    def may(self, scope: str) -> bool:
        """Whether the key has a scope."""
        return scope in self.scopes

    def may_report_as(self, source: Any) -> bool:
        """Whether the owner may send reports of a source."""
        if self.sources is None:
            return True
        return isinstance(source, str) and source.startswith(self.sources)


class Keys:
    """The keys of a service; only their hashes are kept.

    >>> keys = Keys.of({"gate": "a-random-key"})
    >>> keys.caller("a-random-key").may("gate"), keys.caller("another")
    (True, None)
    """

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self._callers = [(bytes.fromhex(digest), caller) for digest, caller in callers.items()]

    @classmethod
    def of(cls, keys: Mapping[str, str]) -> Keys:
        """Take plain keys by scope, for tests and programs without a key file."""
        return cls({_digest(key): _caller([scope], _digest(key)) for scope, key in keys.items()})

    @classmethod
    def load(cls, path: str | Path) -> Keys:
        """Read a key file.

        Raises:
            UserError: the file does not hold keys; the message says where and why.
            OSError: there is no such file, or it cannot be read.
        """
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"there is no key file {path}; rapo-gate init writes one")
        if stat.S_IMODE(path.stat().st_mode) & 0o022:
            raise PermissionError(
                f"others may write {path} and so let themselves in; run chmod 600 {path}"
            )
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is not a key file: {error}") from error
        blocks = content.pop("key", None)
        if content or not isinstance(blocks, list) or not blocks:
            raise UserError(f"{path} must hold [[key]] blocks and nothing else")
        callers: dict[str, Caller] = {}
        for number, block in enumerate(blocks, 1):
            try:
                digest, caller = _read_block(block)
                if digest in callers:
                    raise UserError("its sha256 occurs twice")
            except ValueError as error:
                raise UserError(f"{path}, [[key]] number {number}: {error}") from error
            callers[digest] = caller
        return cls(callers)

    def caller(self, key: str) -> Caller | None:
        """The owner of a key, None for an unknown key.

        The time that this takes says nothing about how much of the key is right.
        """
        if not key or len(key) > _LONGEST_KEY:
            return None
        digest = sha256(key.encode(errors="surrogatepass")).digest()
        owner = None
        for known, caller in self._callers:
            if compare_digest(known, digest):
                owner = caller
        return owner


def new_keys(scopes: Sequence[str] = SCOPES) -> dict[str, str]:
    """A fresh random key for each scope."""
    return {scope: f"rapo_{scope}_{secrets.token_urlsafe(32)}" for scope in scopes}


def write_key_file(path: str | Path) -> dict[str, str]:
    """Make a key for each scope, write the hashes, and return the keys, which are kept nowhere.

    Raises:
        FileExistsError: the file exists; its keys may be in use.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for a key file")
    keys = new_keys()
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExistsError(
            f"{path} exists and its keys may be in use; choose another name or remove it"
        ) from None
    with open(file, "w", encoding="utf-8") as out:
        out.write(_HEAD)
        for scope, key in keys.items():
            out.write(
                f'\n[[key]]\nscope = "{scope}"\nname = "{scope}"\nsha256 = "{_digest(key)}"\n'
            )
        out.flush()
        os.fsync(out.fileno())
    return keys


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def _caller(scopes: Sequence[str], digest: str, name: Any = None, sources: Any = None) -> Caller:
    every = SCOPES if "admin" in scopes else scopes
    word = f"{'-'.join(scopes)}-{digest[:8]}" if name is None else checked_word("name", name)
    return Caller(word, frozenset(every), None if sources is None else tuple(sources))


def _read_block(block: Any) -> tuple[str, Caller]:
    if not isinstance(block, dict) or set(block) - _NAMES:
        raise UserError(f"it may have {sorted(_NAMES)}, got {block!r:.80}")
    if ("scope" in block) == ("scopes" in block):
        raise UserError('it needs scope = "…" or scopes = ["…"]')
    scopes = block["scopes"] if "scopes" in block else [block["scope"]]
    if not isinstance(scopes, list) or not scopes or not all(s in SCOPES for s in scopes):
        raise UserError(f"scopes are of {list(SCOPES)}, got {scopes!r:.80}")
    digest = block.get("sha256")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9A-Fa-f]{64}", digest):
        raise UserError(f"sha256 must be 64 hexadecimal digits, got {digest!r:.80}")
    sources = block.get("sources")
    if sources is not None:
        if not isinstance(sources, list) or not sources:
            raise UserError(f"sources must be a list of beginnings, got {sources!r:.80}")
        for word in sources:
            checked_word("a source", word)
    return digest.lower(), _caller(scopes, digest.lower(), block.get("name"), sources)


# --- the page


@dataclass(slots=True)
class LoginSession:
    """One login. It keeps the scopes of the key, not the key."""

    name: str
    scopes: frozenset[str]
    ends: float
    """Time on the clock of `Sessions`."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """A token that every form sends back; another site cannot know it."""
    notice: dict[str, Any] | None = None
    """What the reviewer just did, to be shown once on the next page."""

    def may(self, scope: str) -> bool:
        """Whether the key has a scope."""
        return scope in self.scopes

    def owns(self, token: str) -> bool:
        """Whether a form was made for this session."""
        return compare_digest(self.csrf.encode(), token.encode())

    def take_notice(self) -> dict[str, Any] | None:
        """The notice, once."""
        notice, self.notice = self.notice, None
        return notice


class Sessions:
    """Sessions by random id, in memory. A restart ends all of them; so keys are taken back.

    >>> sessions = Sessions()
    >>> session_id = sessions.begin("ana", frozenset({"review"}))
    >>> sessions.find(session_id).name, sessions.find("another")
    ('ana', None)
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, LoginSession] = {}

    def begin(self, name: str, scopes: frozenset[str]) -> str:
        """Log somebody in; returns the id for the cookie."""
        now = self._clock()
        with self._lock:
            self._sessions = {k: s for k, s in self._sessions.items() if s.ends > now}
            while len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session_id = secrets.token_urlsafe(32)
            self._sessions[session_id] = LoginSession(name, scopes, now + SESSION_SECONDS)
        return session_id

    def find(self, session_id: str) -> LoginSession | None:
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


class FailedLogins:
    """Wrong keys by address; an address that sent many has to wait.

    Keys are too long to guess, so waiting only keeps the number of attempts down. A right key never
    waits: people may share an address, and a stranger must not be able to lock them out.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: dict[str, list[float]] = {}

    def wait(self, address: str) -> float:
        """Seconds until an address may send another wrong key, 0 if it may now."""
        now = self._clock()
        with self._lock:
            recent = [t for t in self._wrong.get(address, ()) if now - t < WRONG_SECONDS]
            if len(recent) < WRONG_KEYS:
                return 0.0
            return WRONG_SECONDS - (now - recent[-WRONG_KEYS])

    def failed(self, address: str) -> None:
        """Count a wrong key."""
        now = self._clock()
        with self._lock:
            recent = [t for t in self._wrong.pop(address, ()) if now - t < WRONG_SECONDS]
            self._wrong[address] = [*recent, now][-WRONG_KEYS:]
            while len(self._wrong) > _MOST_ADDRESSES:
                del self._wrong[next(iter(self._wrong))]
