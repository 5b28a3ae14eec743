"""Numbers, times, regions and settings as short text; and the values of what people type."""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10
from typing import Any
from urllib.parse import urlencode

from rapo_core.checks import UserError
from rapo_gate.events import Region

NOTHING = "\N{EN DASH}"
"""The text in the place of a missing value."""
MINUS = "\N{MINUS SIGN}"


def _signed(text: str) -> str:
    return text.replace("-", MINUS) if text.startswith("-") else text


def number(value: float | None, digits: int = 3) -> str:
    """A value with some significant digits; whole numbers in full, with thousands set apart.

    >>> number(0.012345), number(0.5), number(12345), number(1e-9), number(None) == NOTHING
    ('0.0123', '0.5', '12,345', '1e-09', True)
    """
    if value is None or not isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 1e15:
        return _signed(f"{int(value):,}")
    if abs(value) >= 1000:
        return _signed(f"{value:,.0f}")
    if abs(value) < 1e-4:
        return _signed(f"{value:.1g}")
    places = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:.{places}f}"
    return _signed(text.rstrip("0").rstrip(".") if "." in text else text)


def fixed(value: float | None, places: int = 3) -> str:
    """A value with so many decimals, so that columns line up.

    >>> fixed(0.5), fixed(1e-6), fixed(0.0)
    ('0.500', '<0.001', '0.000')
    """
    if value is None or not isfinite(value):
        return NOTHING
    least = 10.0**-places
    if 0 < abs(value) < least / 2:
        return f"<{least:.{places}f}" if value > 0 else f">{MINUS}{least:.{places}f}"
    return _signed(f"{value:.{places}f}")


def conductance(psi: float) -> str:
    """Psi with three decimals; a region that is gated a little is not shown as 1.000.

    >>> conductance(0.25), conductance(0.9999), conductance(1.0)
    ('0.250', '>0.999', '1.000')
    """
    return ">0.999" if 0.9995 <= psi < 1 else f"{psi:.3f}"


def percent(share: float | None, places: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.1234), percent(0.00001), percent(1.0)
    ('12.3 %', '<0.1 %', '100 %')
    """
    if share is None or not isfinite(share):
        return NOTHING
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return fixed(100 * share, places) + " %"


def clock(seconds: float | None) -> str:
    """Unix seconds as a time in UTC.

    >>> clock(1767312000.0)
    '2026-01-02 00:00'
    """
    if seconds is None:
        return NOTHING
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def instant(seconds: float | None) -> str:
    """Unix seconds to the second, in UTC.

    >>> instant(1767312000.0)
    '2026-01-02 00:00:00Z'
    """
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def iso(seconds: float) -> str:
    """Unix seconds as the attribute `datetime` of a `<time>` element."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float | None) -> str:
    """A length of time.

    >>> span(42.1), span(125), span(7300), span(200000)
    ('42 s', '2 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds is None:
        return NOTHING
    if 0 < seconds < 1:
        return "<1 s"
    whole = int(seconds)
    for size, name, small, small_name in (
        (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"),
    ):  # fmt: skip
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"


def region_query(region: Region) -> str:
    """A region as the query of an address; strings and integers stay apart.

    A query and not a path: a region may be called `..`, and browsers shorten paths.

    >>> region_query("a/b c"), region_query(12)
    ('name=a%2Fb+c', 'number=12')
    """
    return urlencode({"number" if isinstance(region, int) else "name": region})


def setting(value: Any) -> str:
    """A setting as it is written in a file."""
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def flat(config: dict[str, Any]) -> dict[str, Any]:
    """All settings by name; those of the fields as `params.w_H`."""
    params = {f"params.{k}": v for k, v in (config.get("params") or {}).items()}
    return {**{k: v for k, v in config.items() if k != "params"}, **params}


def these_reports(reports: list[int] | int) -> str:
    """Reports by their number, for an action that is proposed.

    >>> these_reports(7), these_reports([7, 8])
    ('report 7', '2 reports')
    """
    ids = [reports] if isinstance(reports, int) else reports
    return f"report {ids[0]}" if len(ids) == 1 else f"{len(ids)} reports"


def listed_reports(ids: list[int]) -> str:
    """Reports by id, for an action that was done."""
    shown = ", ".join(map(str, ids[:8])) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    return f"report{'s' if len(ids) > 1 else ''} {shown}"


def some_names(regions: Sequence[Region] | None) -> str:
    """The first few regions by name.

    >>> some_names(["a", "b", "c", 4])
    'a, b, c and 1 more'
    """
    names = list(map(str, regions or []))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def since_and_until(source: str | None, start: float | None, end: float | None) -> str:
    """The reporter and the time range of some reports."""
    text = "" if source is None else f" from {source}"
    text += "" if start is None else f" since {clock(start)} UTC"
    return text + ("" if end is None else f" until {clock(end)} UTC")


FILTERS = {
    "number": number, "fixed": fixed, "percent": percent, "clock": clock, "iso": iso,
    "span": span, "region_query": region_query, "setting": setting, "conductance": conductance,
}  # fmt: skip

# --- what people type, at a prompt or into a form

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def region_of(word: str, text_ids: bool = False) -> Region:
    """A word as a region: an integer if it is written as one, unless `text_ids`.

    >>> region_of("12"), region_of("012"), region_of("12", text_ids=True)
    (12, '012', '12')
    """
    number = re.fullmatch(r"0|-?[1-9]\d*", word)
    return int(word) if number and not text_ids else word


def real_of(name: str, word: str) -> float:
    """A number."""
    try:
        return float(word)
    except ValueError:
        raise UserError(f"{name} must be a number, got {word!r}") from None


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
            raise UserError(
                f"{name} must be Unix seconds, a time such as 2026-01-31T12:00 or a span such as "
                f"2h, got {word!r}"
            ) from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp()
    if not isfinite(seconds):
        raise UserError(f"{name} must be finite, got {word!r}")
    return seconds


def changes_of(pairs: list[str]) -> dict[str, Any]:
    """Settings from `min_sources=5` and `params.w_H=4`; values are TOML, `none` is no value."""
    changes: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            if not (equals and re.fullmatch(r"(params\.)?\w+", name)):
                raise ValueError
            value = None if text.lower() == "none" else tomllib.loads(f"v = {text}")["v"]
        except (ValueError, tomllib.TOMLDecodeError):
            raise UserError(
                f"settings are NAME=VALUE such as min_sources=5 or params.w_H=4, got {pair!r}"
            ) from None
        inner = name.removeprefix("params.")
        place = changes if inner == name else changes.setdefault("params", {})
        place[inner] = value
    return changes


# --- what settings, alarms, reasons to wait and letters mean, as the page says it

FIELD_WORDS = {
    "lam": "share of the trace G that fades per tick",
    "alpha": "gain from harm to the trace G",
    "eta": "growth of the scar H per unit of trace above tau, per tick",
    "tau": "trace above which scars grow",
    "delta": "share of a scar that is kept per tick; 1 is for ever",
    "w_G": "weight of the trace in ψ",
    "w_H": "weight of the scar in ψ",
    "psi_min": "ψ never falls below this",
}

SETTING_WORDS = {
    "tick_seconds": "seconds of one tick",
    "D": "ticks after an exposure at which its harm counts",
    "D_max": "ticks after which a report is refused",
    "max_harm": "largest harm of one report",
    "base_rate": "usual reports per exposure; harm is what exceeds this rate",
    "base_rates": "usual reports per exposure of the regions of a topic",
    "half_life": "ticks in which reports and exposures lose half of their weight",
    "shrinkage": "exposures at the base rate that are added to those of every region",
    "z": "standard deviations by which a rate must exceed the base rate",
    "scale": "excess over the base rate that is harm 1",
    "cap_source": "most harm that one reporter can put into one tick",
    "min_signals": "different signals that must agree before a region may scar",
    "min_sources": "different reporters that must agree before a region may scar",
    "agree_share": "share of a report below which a region is only a bystander of it",
    "confirm_ticks": "ticks within which reports must agree, and for which a confirmation holds",
    "unconfirmed_floor": "share of ψ that an unconfirmed trace cannot take away",
    "scar_ticks": "ticks after its last growth at which a scar expires; none is never",
    "saturation_psi": "a decision with no candidate above this ψ is saturated",
    "band_scar_mass": "escalate when the sum of all scars is larger",
    "band_gating": "escalate when a tick's mean total variation is larger",
    "band_saturated": "escalate when a larger share of a tick's decisions is saturated",
    "band_reports": "escalate when a tick's reports are this many deviations above usual",
}

BAND_WORDS = {
    "scar mass": "All scars together (sum of H)",
    "gating": "Moved per decision (TV)",
    "saturation": "Decisions with no way out (saturated)",
    "reports": "Reports in a tick",
}

WAIT_WORDS = {
    "late": "late",
    "unknown region": "quarantined: unknown region",
    "agreement": "waits for agreement",
}

TERMS = {
    "ψ": "conductance: the share of its proposed probability that a region keeps before all are "
    "scaled to sum to 1 again; 1 is untouched",
    "G": "trace: recent harm reported on a region; it fades by itself",
    "H": "scar: the part of confirmed harm that stays; it fades slowly or not at all",
    "TV": "total variation: how much of a decision's probability the gate moved, 0 to 100 %",
    "tick": "the step of time in which reports are counted; the settings say how long it is",
    "saturated": "a decision whose candidates are all scarred: there is nothing better to show",
    "RAG": "peak reach on return against the first stay; below 1 it came back weaker",
}
