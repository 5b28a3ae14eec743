"""Objects that a user names as `package.module:name`."""

from __future__ import annotations

import os
import sys
from pkgutil import resolve_name
from typing import Any

from rapo_core.checks import UserError


def search_current_folder() -> None:
    """Let modules of the current folder be imported: a console script does not look there."""
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)


def import_named(name: str, kind: str) -> Any:
    """Import the object that `package.module:name` names; the current folder counts.

    Args:
        name: what the user wrote.
        kind: what the object is meant to be, for the error.

    Raises:
        UserError: the name has another form, or there is no such module or object.
    """
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise UserError(f"a {kind} is named package.module:name, got {name!r}")
    search_current_folder()
    try:
        return resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"cannot load the {kind} {name}: {error}") from error
