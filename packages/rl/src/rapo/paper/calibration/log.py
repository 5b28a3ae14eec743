"""`Log`: results of a search, line by line, so that a search that was cut goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError


class Log:
    """Lines of JSON by key, appended as they come; an entry of the file is not computed again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    entry = json.loads(line)
                    self.entries[entry["key"]] = entry
                except (json.JSONDecodeError, KeyError, TypeError):
                    raise UserError(
                        f"line {number} of {path} is damaged; remove it to compute it again"
                    ) from None

    def add(self, key: str, **entry: Any) -> dict[str, Any]:
        """Append an entry under its key; return the entry with its key."""
        whole = {"key": key, **entry}
        self.entries[key] = whole
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(whole) + "\n")
        return whole
