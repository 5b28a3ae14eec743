"""What reviewers ask a gate.

Functions of a gate and plain values, so that another process may answer them; see `audits`.
"""

from __future__ import annotations

from typing import Any

from rapo.gate import audit
from rapo.gate.declare import ACTIONS, Action, Effect, action_of
from rapo.gate.events import Event, Region
from rapo.gate.gate import Gate
from rapo.gate.memory import Replay, replayed
from rapo.gate.state import State

Values = dict[str, Any]


def region_named(known: Any, word: str) -> Region:
    """The region that a word of a path names: a string first, then an integer.

    Raises:
        LookupError: no decision ever had either.
    """
    if word in known:
        return word
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(word) in known:
        return int(word)
    raise LookupError(f"region {word!r:.80} is not known: no decision ever had it")


def top(gate: Gate, most: int) -> Values:
    """The regions with the largest scars."""

    def look(state: State) -> Values:
        return {
            "regions": audit.top_regions(state, most),
            "known": len(state.regions),
            "revision": state.revision,
        }

    return gate.read(look)  # type: ignore[no-any-return]


def region(gate: Gate, word: str) -> Values:
    """One region, by the word of a path."""
    return gate.read(  # type: ignore[no-any-return]
        lambda state: audit.region_view(state, region_named(state.regions, word))
    )


def chain_by_word(gate: Gate, word: str, limit: int) -> Values:
    """What made a region what it is, by the word of a path."""
    return chain(gate, gate.read(lambda state: region_named(state.regions, word)), limit)


def chain(gate: Gate, name: Region, limit: int = 50) -> Values:
    """What made a region what it is."""
    return gate.chain(name, limit)


def explain(gate: Gate, decision_id: str) -> Values:
    """Why a decision is as it is."""
    return gate.explain(decision_id)


def queue(gate: Gate, limit: int = 200) -> list[Values]:
    """Reports that wait."""
    return gate.queue(limit)


def reporters(gate: Gate, limit: int = 200) -> list[Values]:
    """Who reported."""
    return gate.reporters(limit)


def bias(gate: Gate) -> Values:
    """Rates by group and topic."""
    return gate.bias()


def overview(gate: Gate) -> Values:
    """The gate at a glance."""
    return gate.read(audit.overview)  # type: ignore[no-any-return]


def outcomes(gate: Gate) -> Values:
    """What came back."""
    return gate.read(audit.outcomes)  # type: ignore[no-any-return]


def dry_run(gate: Gate, action: Action) -> Effect:
    """What an action would do."""
    assert action.dry_run
    return gate.act(action)


def replay(gate: Gate, until: int) -> Replay:
    """The log folded afresh up to a position."""
    return replayed(gate.store, until)


def deeds(gate: Gate, limit: int = 100) -> list[dict[str, Any]]:
    """The newest actions: position, time, kind, who, what in words, the regions, and the reason."""
    store = gate.store
    kinds = tuple(dict.fromkeys(a.event for a in ACTIONS.values()))
    events = store.read(0, limit, (*kinds, "Escalation"), newest=True)
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
    before = next((c for p, c in configs if p < event.position), {})
    action = action_of(event.kind, data)
    if action is not None:
        what, regions = action.told(data, before), action.concerns(data)
    elif event.kind == "Escalation":
        what, regions = f"Escalated {data['band']}: {data['seen']}", []
    else:
        what, regions = "Created the gate in shadow mode", []
    return {
        "position": event.position,
        "at": event.at,
        "kind": event.kind,
        "by": data.get("by", "the gate"),
        "what": what,
        "regions": regions,
        "reason": data.get("reason", ""),
    }


def regions(gate: Gate, words: str, top: int) -> tuple[list[Values], int, int]:
    """Views of up to `top` regions by scar, with their courses; how many there are; are known."""

    def look(state: State) -> tuple[list[Values], int, int]:
        known = len(state.regions)
        if words:
            hits = _hits(state, words.casefold())
            views, found = [audit.region_view(state, name) for name in hits[:top]], len(hits)
        else:
            views, found = audit.top_regions(state, top), known
        for view in views:
            view["course"] = audit.course(state, view["region"], 60)
        return views, found, known

    return gate.read(look)  # type: ignore[no-any-return]


def _hits(state: State, wanted: str) -> list[Region]:
    """Regions whose name has some words in it: the very one, then by scar, then by trace."""
    hits: list[tuple[bool, float, float, Region]] = []
    for i, name in enumerate(state.regions.names):
        text = str(name).casefold()
        if wanted in text:
            hits.append((text != wanted, -state.fold.H[i], -state.fold.G[i], name))
    hits.sort(key=lambda hit: hit[:3])
    return [hit[3] for hit in hits]
