"""What people type, at a prompt or into a form: regions, times, settings, files of reports."""

from __future__ import annotations

import csv
import getpass
import json
import re
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import IO, Any

from rapo.gate.config import GateConfig
from rapo.gate.events import Region
from rapo.gate.intake import HarmReport

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def region_of(word: str, text_ids: bool = False) -> Region:
    """A word as a region: an integer if it is written as one, unless `text_ids`.

    >>> region_of("12"), region_of("012"), region_of("12", text_ids=True)
    (12, '012', '12')
    """
    number = re.fullmatch(r"0|-?[1-9]\d*", word)
    return int(word) if number and not text_ids else word


def regions_of(words: str, text_ids: bool = False) -> list[Region]:
    """Regions from `a,b,c`; all integers or all strings."""
    found = [region_of(w.strip(), text_ids) for w in words.split(",")]
    if any(r == "" for r in found):
        raise ValueError(f"regions must be names such as a,b,c, got {words!r}")
    if len({type(r) for r in found}) > 1:
        raise ValueError(f"{words!r} has integers and strings; --text-ids makes all strings")
    return found


def numbers_of(name: str, words: str) -> list[float]:
    """Numbers from `.5,.3,.2`."""
    try:
        return [float(w) for w in words.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers such as .5,.3,.2, got {words!r}") from None


def time_of(name: str, word: str | None, *, ahead: bool = False) -> float | None:
    """Unix seconds from a number, an ISO 8601 time (UTC unless it says), or a span such as 2h.

    A span counts back from now, or ahead of it.

    >>> time_of("at", "2026-01-02T00:00"), time_of("at", "1767312000")
    (1767312000.0, 1767312000.0)
    """
    if word is None:
        return None
    span = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", word)
    if span:
        seconds = float(span[1]) * _SECONDS[span[2]]
        return time.time() + (seconds if ahead else -seconds)
    try:
        seconds = float(word)
    except ValueError:
        try:
            moment = datetime.fromisoformat(word)
        except ValueError:
            raise ValueError(
                f"{name} must be Unix seconds, a time such as 2026-01-31T12:00 or a span such as "
                f"2h, got {word!r}"
            ) from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp()
    if not isfinite(seconds):
        raise ValueError(f"{name} must be finite, got {word!r}")
    return seconds


def login() -> str:
    """Who is at the keyboard, for the log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user, as in some containers
        return "unknown user"


def config_of(path: Path | None) -> GateConfig:
    """Settings from a TOML file; the defaults without one."""
    if path is None:
        return GateConfig()
    try:
        values = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    try:
        return GateConfig.from_dict(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def changes_of(words: list[str]) -> dict[str, Any]:
    """Settings from `min_sources=5` and `params.w_H=4`; values are TOML, `none` is no value."""
    changes: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            if not (equals and re.fullmatch(r"(params\.)?\w+", name)):
                raise ValueError
            value = None if text.lower() == "none" else tomllib.loads(f"v = {text}")["v"]
        except (ValueError, tomllib.TOMLDecodeError):
            raise ValueError(
                f"settings are NAME=VALUE such as min_sources=5 or params.w_H=4, got {word!r}"
            ) from None
        inner = name.removeprefix("params.")
        place = changes if inner == name else changes.setdefault("params", {})
        place[inner] = value
    return changes


def reports_from(stream: IO[str], name: str, text_ids: bool = False) -> list[HarmReport]:
    """All reports of a file: CSV if its name ends so, else JSON lines.

    CSV has the columns source, key, harm, signal, at and decision_id or regions (a;b;c).
    Nothing is reported if a line cannot be read: the error names it.
    """
    lines = _csv_rows(stream, name, text_ids) if name.endswith(".csv") else _json_rows(stream, name)
    found = []
    try:
        for number, values in lines:
            try:
                found.append(HarmReport.from_dict(values))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{name} cannot be read: {error}") from None
    if not found:
        raise ValueError(f"{name} holds no reports")
    return found


def _json_rows(stream: IO[str], name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{name}, line {number}: not JSON, {error.msg}") from None


def _csv_rows(stream: IO[str], name: str, text_ids: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = csv.DictReader(stream, strict=True)
    for row in rows:
        values: dict[str, Any] = {str(k): v for k, v in row.items() if v not in (None, "")}
        for column in ("harm", "at"):
            if column in values:
                values[column] = _number(f"{name}, line {rows.line_num}: {column}", values[column])
        if "regions" in values:
            parts = values["regions"].split(";")
            values["regions"] = [region_of(p.strip(), text_ids) for p in parts]
        yield rows.line_num, values


def _number(name: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {word!r}") from None
