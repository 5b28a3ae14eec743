"""`FrozenSetting`: all open values of a platform, from the `setting.toml` beside its class.

The type of a field says which values it takes, see `rapo_core.checks`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any, Self

from rapo_core.checks import UserError, check_fields


@dataclass(frozen=True)
class FrozenSetting:
    """Open values of a platform; a subclass is a frozen dataclass, `setting.toml` explains values.

    Raises:
        UserError: a field does not take its value.
    """

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Refuse values that do not go together."""

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Self | None = None) -> Self:
        """The values of `setting.toml`, some of them changed; an unknown name is an error."""
        if changes is not None and not isinstance(changes, Mapping):
            if not isinstance(changes, cls):
                raise UserError(f"setting must be values by name, got {changes!r}")
            return changes
        names = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(names))
        if unknown:
            raise UserError(f"unknown values {unknown} of the setting; known are {names}")
        return cls(**{**_frozen(cls.__module__), **(changes or {})})


@lru_cache
def _frozen(module: str) -> dict[str, Any]:
    folder = files(module.rpartition(".")[0])
    return tomllib.loads((folder / "setting.toml").read_text("utf-8"))
