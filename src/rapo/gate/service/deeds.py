"""The log of human actions, in words."""

from __future__ import annotations

from typing import Any

from rapo.gate.events import Event
from rapo.gate.service.numerals import clock, number, setting
from rapo.gate.store import Store

KINDS = ("Confirm", "Override", "Rollback", "Allow", "ConfigChange", "Escalation")


def deeds(store: Store, limit: int = 100, kinds: tuple[str, ...] = KINDS) -> list[dict[str, Any]]:
    """The newest actions: position, time, kind, who, what in words, the regions, and the reason."""
    events = store.read(0, limit, kinds, newest=True)
    # A change of settings is logged whole; only what differs from the one before is worth reading.
    changes = [e for e in events if e.kind == "ConfigChange"]
    if changes:
        before = changes[-1].position - 1
        older = store.read(0, 500, ("ConfigChange",), newest=True)
        changes += [e for e in older if e.position <= before]
    configs = [(e.position, e.data()["config"]) for e in changes if "config" in e.data()]
    return [_told(event, configs) for event in events]


def _told(event: Event, configs: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    data = event.data()
    what, regions = _WORDS[event.kind](data), list(data.get("regions") or [])
    if event.kind in ("Override", "Allow"):
        regions = [data["region"]]
    if event.kind == "ConfigChange" and "config" in data and "created" not in data:
        before = next((c for p, c in configs if p < event.position), {})
        what = "Settings: " + (_difference(before, data["config"]) or "no change")
    return {
        "position": event.position,
        "at": event.at,
        "kind": event.kind,
        "by": data.get("by", "the gate"),
        "what": what,
        "regions": regions,
        "reason": data.get("reason", ""),
    }


def _rollback(data: dict[str, Any]) -> str:
    if data.get("reports"):
        return f"Rolled back {_reports(data['reports'])}"
    words = "Rolled back all reports"
    if data.get("source") is not None:
        words += f" of {data['source']}"
    if data.get("from") is not None:
        words += f" from {clock(data['from'])} UTC on"
    if data.get("to") is not None:
        words += f" until {clock(data['to'])} UTC"
    return words


def _override(data: dict[str, Any]) -> str:
    if data["psi"] is None:
        return "Took the override back"
    end = data.get("expires_at")
    until = "until taken back" if end is None else f"until {clock(end)} UTC"
    return f"Set ψ to {number(data['psi'])} {until}"


def _confirm(data: dict[str, Any]) -> str:
    named = data.get("reports") or []
    return f"Confirmed {_reports(named)}" if named else "Confirmed what was reported"


def _change(data: dict[str, Any]) -> str:
    if "created" in data:
        return "Created the gate in shadow mode"
    if "labels" in data:
        return f"Labelled {len(data['labels'])} regions"
    if data["mode"] == "shadow":
        return "Mode: shadow"
    return f"Mode: enforce for {number(data['percent'])} % of decisions"


def _reports(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:8])) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    return f"report{'s' if len(ids) > 1 else ''} {shown}"


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    def flat(config: dict[str, Any]) -> dict[str, Any]:
        params = {f"params.{k}": v for k, v in config.get("params", {}).items()}
        return {**{k: v for k, v in config.items() if k != "params"}, **params}

    before, after = flat(old), flat(new)
    changed = [k for k in after if before.get(k) != after[k]]
    return ", ".join(f"{k} {setting(before.get(k))} → {setting(after[k])}" for k in changed)


def _allow(data: dict[str, Any]) -> str:
    return "Put on the allow-list" if data["allowed"] else "Off the allow-list"


def _escalation(data: dict[str, Any]) -> str:
    return f"Escalated {data['band']}: {data['seen']}"


_WORDS = {
    "Confirm": _confirm,
    "Override": _override,
    "Rollback": _rollback,
    "Allow": _allow,
    "ConfigChange": _change,
    "Escalation": _escalation,
}
