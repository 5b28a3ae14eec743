"""What clients were told, against what the log holds."""

from __future__ import annotations

from collections import Counter

from rapo_gate.log.store import Store

_READ = 5000


class Account:
    """Acknowledgements taken in line by line, and the log read piece by piece."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        """Keys of the log that clients were promised."""
        self.steps: dict[str, int] = {}
        """Next step of each stream."""
        self.acts: dict[int, str] = {}
        """Overrides that were promised: position and reason."""
        self.heard: dict[str, float] = {}
        """When each stream was last acknowledged something, on the monotonic clock."""
        self.resent = 0
        """Acknowledgements of what had been in the log before the client knew."""
        self.problems: list[str] = []
        self.position = 0
        self._revisions: dict[str, int] = {}
        """Highest revision that each stream was told."""
        self._answers: dict[str, int] = {}
        """Revision that each decision was acknowledged with."""
        self._new: list[str] = []
        self._found: Counter[str] = Counter()
        self._reasons: dict[int, str] = {}

    def take(self, line: str) -> None:
        """Take in one line of a client."""
        word, *rest = line.split(" ")
        if word == "ack":
            stream, when, revision, key = rest
            self.heard[stream] = float(when)
            self.resent += key in self._found
            self._new.append(key)
            if int(revision) >= 0:
                self._answered(stream, key, int(revision))
        elif word == "done":
            self.steps[rest[0]] = int(rest[1]) + 1
        elif word == "act":
            self.acts[int(rest[0])] = rest[1]
        elif word == "error":
            self.problems.append(" ".join(rest))

    def _answered(self, stream: str, key: str, revision: int) -> None:
        """A revision never falls, but a request that comes again gets its first answer.

        A client that dies while it notes a group of answers sends the whole group once more: the
        first of them are then older than the last one it had noted.
        """
        highest, first = self._revisions.get(stream, 0), self._answers.get(key)
        if first is None and revision < highest:
            self.problems.append(f"revision of {stream} fell to {revision}")
        if first is not None and first != revision:
            self.problems.append(f"{key!r} was answered at {first}, and again at {revision}")
        self._answers[key] = revision
        self._revisions[stream] = max(revision, highest)

    def check(self, store: Store) -> None:
        """Read what the log has got since the last time and compare."""
        while True:
            events = store.read(self.position, _READ)
            for event in events:
                if event.position != self.position + 1:
                    self.problems.append(f"{event.position} follows {self.position} in the log")
                self.position = event.position
                name = event.key
                if event.kind == "HarmReport":  # by what it says, not by the index
                    data = event.data()
                    name = "\x1f".join(("r", data["source"], data["key"]))
                elif event.kind == "Exposure":
                    name = f"x\x1f{event.data()['decision_id']}"
                elif event.kind == "Override":
                    self._reasons[event.position] = event.data()["reason"]
                if name is not None:
                    self._found[name] += 1
                    if self._found[name] == 2:
                        self.problems.append(f"{name!r} is in the log twice")
            if not events:
                break
        lost = [key for key in self._new if key not in self._found]
        lost += [f"{r} at {p}" for p, r in self.acts.items() if self._reasons.get(p) != r]
        self.problems += [f"{key!r} was acknowledged but is not in the log" for key in lost]
        self.acknowledged.update(self._new)
        self._new, self.acts = [], {}

    @property
    def doubled(self) -> int:
        """Things that are in the log more than once."""
        return sum(count > 1 for count in self._found.values())
