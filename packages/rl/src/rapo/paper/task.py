"""What a task is, and how results are named: by everything they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from rapo.cascade.setting import BEFORE
from rapo.paper.piece_folder import existing
from rapo.paper.pieces import read_rows
from rapo_core.checks import UserError

Tell = Callable[[float], None]
"""Called by a running task with the share that is done."""


class Task(Protocol):
    """Something to run once, in a process of its own; what it leaves lies below a folder."""

    @property
    def key(self) -> str:
        """Names it among all tasks."""
        ...

    @property
    def needs(self) -> tuple[Task, ...]:
        """Tasks that must be done before."""
        ...

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        ...

    def run(self, root: Path, tell: Tell) -> None:
        """Do it, telling the share that is done from time to time."""
        ...


class Alone:
    """A task that needs no other and leaves one piece: tables of rows, see `write_rows`."""

    @property
    def key(self) -> str:
        """Names it among all tasks, and its piece."""
        raise NotImplementedError

    @property
    def needs(self) -> tuple[Task, ...]:
        """Nothing has to be there."""
        return ()

    def piece(self, root: Path) -> Path:
        """Where the result is written to."""
        return root / "pieces" / f"{self.key}.parquet"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return existing(self.piece(root)).exists()

    def read(self, root: Path, rows: int | None = None) -> dict[str, Any]:
        """What the piece holds, rows under `rows`; a damaged one, or one of another task, is named.

        Args:
            root: folder of the results.
            rows: how many there have to be; default any.

        Raises:
            ValueError: it cannot be read, or is not this task's.
        """
        path = existing(self.piece(root))
        try:
            content = read_rows(path)
            count = len(content["rows"])
            if content["key"] != self.key or count == 0 or count != (rows or count):
                raise UserError(f"not a piece of {self.key}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it and run again") from error
        return content


def digest(spec: Any) -> str:
    """Ten hexadecimal digits that stand for a plain value."""
    text = json.dumps(spec, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


ADDED: dict[str, dict[str, Any]] = {
    "": {"fit": None},
    # the platform of 0.1 is the reading `compact` now, which has this cap and these seeds
    "setting": {**BEFORE, "edge_cap": 0.95, "loaded_support": 18},
    "ppo": {"steady": False, "cost_gamma": 0.99},
}
"""What configs have had since version 0.1, by their part, with the value that changes no earlier
result."""


def without_additions(values: Mapping[str, Any], part: str = "") -> dict[str, Any]:
    """Plain values without later additions that change nothing: earlier results keep their names.

    Args:
        values: of a training config, or of one part of it.
        part: which one, such as `setting`.
    """
    added = ADDED.get(part, {})
    return {
        name: without_additions(value, name) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if not (name in added and value == added[name])
    }
