"""`manifest.json`: what a folder of results holds, and with which versions it was made."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError
from rapo_core.files import written_whole
from rapo_core.version import VERSION

NAME = "manifest.json"
PACKAGES = ("numpy", "numba", "torch", "gymnasium", "pandas", "scipy")
"""Whose versions results may depend on."""
NAMED = 5
"""Values of another config that a refusal names."""
EARLIER = ("0.1", "0.2")
"""Versions whose results are not read: they wrote another format."""


def versions() -> dict[str, str]:
    """Versions of this program and of what computes for it."""
    return {
        "rapo": VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def read_manifest(out: Path) -> dict[str, Any]:
    """The manifest of a folder.

    Raises:
        UserError: the manifest is damaged, or the folder was made by an earlier version.
    """
    path = out / NAME
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        made_with = str(content.get("versions", {}).get("rapo", VERSION))
        if made_with.startswith(EARLIER):
            raise UserError(
                f"{out} holds results of version {made_with}, which this version does not read; "
                f"make them anew: {content.get('command', 'the same command')} --out {out}-anew"
            )
        if not isinstance(content["config"], dict):
            raise TypeError("config is not an object")
        if not isinstance(content.get("also_made_with", []), list):
            raise TypeError("also_made_with is not a list")
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({error}); choose another --out") from error
    return content


def write_manifest(out: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest; a kill leaves the old one or the new one."""
    with written_whole(out / NAME) as part:
        part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def claim_folder(out: Path, config: Mapping[str, Any], **about: Any) -> None:
    """Say in the manifest what the folder holds.

    Args:
        out: the folder.
        config: what all results of the folder depend on, as plain values.
        about: what else a reader of the manifest wants to know.

    Raises:
        UserError: the folder holds results of another config; nothing has changed.
    """
    mine = json.loads(json.dumps(config))
    if (out / NAME).exists():
        refuse_another_config(out, read_manifest(out)["config"], mine)
    else:
        write_manifest(out, {**about, "versions": versions(), "config": mine})


def refuse_another_config(out: Path, before: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse a folder whose results are of another config than `mine`; name what differs."""
    there, now = dict(_leaves(before)), dict(_leaves(mine))
    names = sorted(name for name in {*there, *now} if there.get(name) != now.get(name))
    if names:
        first, more = names[0], len(names) - NAMED
        rest = f" and {more} more" if more > 0 else ""
        raise UserError(
            f"{out} holds results of another config; they differ in {', '.join(names[:NAMED])}"
            f"{rest} (there {first} = {there.get(first)}, now {now.get(first)}); choose another "
            "--out"
        )


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values of nested tables, named such as `setting.delay`."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def note(out: Path, **about: Any) -> None:
    """Say more in the manifest about what the folder holds."""
    content = read_manifest(out)
    if {**content, **about} != content:
        write_manifest(out, {**content, **about})


def note_versions(out: Path) -> None:
    """Add the versions in use to the manifest if other versions made the results so far."""
    content, mine = read_manifest(out), versions()
    others = content.get("also_made_with", [])
    if content.get("versions") != mine and mine not in others:
        note(out, also_made_with=[*others, mine])
