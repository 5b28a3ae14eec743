"""Generated histories: replays, snapshots, other orders of arrival, rollbacks, the same fields.

`python packages/gate/tests/test_histories.py 10000` runs ten thousand of them.
"""

from __future__ import annotations

import runpy
import sys
import time
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rapo_core.params import FieldParams
from rapo_gate.actions import Configure
from rapo_gate.config import GateConfig
from rapo_gate.decide import View
from rapo_gate.events import (
    LOG_FORMAT,
    DecisionBody,
    Event,
    NewEvent,
    Region,
    checked_regions,
    decision_key,
    digest_of,
    exposure_key,
    pack_decision,
    packed,
    unpack_decision,
)
from rapo_gate.fold.records import Plan
from rapo_gate.fold.snapshot import dump, load
from rapo_gate.fold.state import State
from rapo_gate.reports import HarmReport, check, take_in

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
SECONDS = 10.0
START = 50
"""Tick in which a gate is made."""


@dataclass(frozen=True)
class Op:
    """One thing that arrives: `what` happened in a tick, and what it is about."""

    tick: int
    what: str
    id: str = ""
    """Decision or report key that it is, or is about."""
    data: Any = None


@dataclass
class Player:
    """Plays ops into a log and the state that follows it."""

    config: GateConfig
    log: Any = field(default_factory=REFERENCE["MemoryLog"])
    reports: dict[str, int] = field(default_factory=dict)
    """Position of each report by its key."""
    course: Any = field(default_factory=sha256)
    """Hash of the fields and of psi after every op."""

    def __post_init__(self) -> None:
        self.state = State()
        made = {"created": {"at": 0.0, "tick": START, "id": "x"}, "config": self.config.to_dict(),
                "format": LOG_FORMAT, "mode": "enforce", "percent": 50.0}  # fmt: skip
        self._append("ConfigChange", START, packed(made))

    def play(self, op: Op) -> None:
        """Take one op in; time goes to its tick first."""
        if op.tick > self.state.tick:
            self._append("Tick", op.tick, packed({"tick": op.tick}))
        revision, before = self.state.revision, self.state.fold.H.copy()
        getattr(self, f"_{op.what}")(op)
        assert self.state.revision >= revision
        if op.what not in ("rollback", "allow", "label"):
            same = np.array_equal(self.state.fold.H[: before.size], before)
            assert same, "only ticks change fields"
        self.course.update(self.state.field_hash().encode() + self.state.psi().tobytes())

    def _append(self, kind: str, tick: int, body: bytes, key: str | None = None) -> None:
        draft = NewEvent(kind, SECONDS * tick, key, digest_of(body), body)
        for event in self.log.append([draft]):
            irreversible = self.state.config.params.delta == 1 and not self.state.config.scar_ticks
            scars = self.state.fold.H.copy()
            self.state.apply(event, self.log)
            if kind == "Tick" and irreversible:
                assert (self.state.fold.H[: scars.size] >= scars).all(), "a scar fell"

    def _pass(self, op: Op) -> None:
        """Only time passes."""

    def _decide(self, op: Op) -> None:
        if not self.log.find([decision_key(op.id)]):
            self._append("Decision", op.tick, op.data, decision_key(op.id))

    def _expose(self, op: Op) -> None:
        if not self.log.find([exposure_key(op.id)]):
            body = packed({"decision_id": op.id, "shown": op.data})
            self._append("Exposure", op.tick, body, exposure_key(op.id))

    def _report(self, op: Op) -> None:
        now = SECONDS * op.tick
        checked = [check(op.data, self.state.config, now)]
        (answer,), events = take_in(checked, self.state, self.log, now)
        for event in events:
            self.state.apply(event, self.log)
        assert answer.report_id is not None
        assert self.reports.setdefault(op.id, answer.report_id) == answer.report_id

    def _act(self, kind: str, op: Op, body: dict[str, Any]) -> None:
        self._append(kind, op.tick, packed({**body, "reason": "test", "by": "test"}))

    def _confirm(self, op: Op) -> None:
        keys, regions = op.data
        gone = {r.position for r in self.state.due() if r.rolled_back}
        known = [self.reports[k] for k in keys if self.reports[k] not in gone]
        self._act("Confirm", op, {"reports": known, "regions": regions})

    def _override(self, op: Op) -> None:
        self._act("Override", op, op.data)

    def _allow(self, op: Op) -> None:
        self._act("Allow", op, op.data)

    def _config(self, op: Op) -> None:
        body = Configure(op.data, reason="test", by="test").whole_body(self.state, 0.0)
        self._act("ConfigChange", op, body)

    def _label(self, op: Op) -> None:
        self._act("ConfigChange", op, {"labels": [op.data]})

    def _rollback(self, op: Op) -> None:
        body = dict(op.data)
        if "keys" in body:
            body["reports"] = [self.reports[k] for k in body.pop("keys")]
        self._act("Rollback", op, body)


def generated(seed: int, i: int) -> tuple[np.random.Generator, bool, Player, list[Op]]:
    """History `i` of a seed: the generator after it, whether people act, how it was played."""
    rng = np.random.default_rng([seed, i])
    human = bool(rng.random() < 0.6)
    return (rng, human, *generate(rng, human))


def generate(rng: np.random.Generator, human: bool) -> tuple[Player, list[Op]]:
    """A history, played while it is made up: decisions show the psi of their time.

    Args:
        rng: where everything comes from.
        human: whether people act on single reports, which ties these to their order.
    """
    player = Player(_settings(rng))
    words = rng.random() < 0.5
    names: list[Region] = [f"r{i}" if words else 7 * i - 3 for i in range(int(rng.integers(2, 7)))]
    ops: list[Op] = []
    decisions: dict[str, tuple[int, list[Region]]] = {}
    tick, keys = START, 0
    # a reviewer who admits a report makes its regions known to later ones, which no rollback undoes
    rolls_back = human and rng.random() < 0.7
    if rolls_back:
        ops.append(Op(tick, "decide", "d", _decision(rng, player, names, tick, everything=True)))
        decisions["d"] = (tick, names)
        player.play(ops[0])
    for step in range(int(rng.integers(12, 40))):
        tick += int(rng.choice([0, 0, 0, 1, 1, 2, 5]))
        known = player.state.regions.names
        what = rng.choice(
            [
                "decide",
                "expose",
                "report",
                "confirm",
                "override",
                "allow",
                "rollback",
                "config",
                "label",
            ],
            p=[0.18, 0.1, 0.5, 0.06, 0.03, 0.04, 0.04, 0.03, 0.02],
        )
        if not decisions or what == "decide":
            op = Op(tick, "decide", f"d{step}", _decision(rng, player, names, tick))
            decisions[op.id] = (tick, _regions(op.data))
        elif what == "expose":
            chosen = str(rng.choice(list(decisions)))
            candidates = decisions[chosen][1]
            shown = [candidates[i] for i in rng.integers(len(candidates), size=rng.integers(4))]
            op = Op(tick, "expose", chosen, shown)
            if player.log.find([exposure_key(chosen)]):
                continue
        elif what == "report":
            op = Op(tick, "report", f"k{keys}", _report(rng, f"k{keys}", names, decisions, tick))
            keys += 1
        elif what == "config":
            op = Op(tick, "config", "", _change(rng))
        elif what == "label":
            topic = {} if rng.random() < 0.3 else {"topic": f"t{rng.integers(3)}"}
            op = Op(tick, "label", "", [known[int(rng.integers(len(known)))], topic])
        elif what in ("override", "allow", "confirm") and not human:
            op = _act_on_region(rng, str(what), known, tick)
        elif what == "rollback":
            if not rolls_back or not player.reports:
                continue
            op = Op(tick, "rollback", "", _rollback(rng, list(player.reports), tick))
        else:
            op = _act_on_region(rng, str(what), known, tick)
            if what == "confirm" and player.reports:
                some = _few(rng, list(player.reports))
                op = replace(op, data=(some, op.data[1]))
        player.play(op)
        ops.append(op)
    ops.append(Op(tick + int(rng.integers(12)), "pass"))
    player.play(ops[-1])
    return player, ops


def _settings(rng: np.random.Generator) -> GateConfig:
    params = FieldParams(
        lam=float(rng.choice([0.1, 0.6])), alpha=2.0, eta=0.3, tau=0.02,
        delta=float(rng.choice([1.0, 1.0, 0.9])),
    )  # fmt: skip
    z = float(rng.choice([0.0, 0.5, 1.0]))
    return GateConfig(
        params=params, tick_seconds=SECONDS, D=int(rng.integers(1, 5)), D_max=10**6,
        base_rate=0.02, base_rates={"t0": 0.01, "t1": 0.1 if z else 0.015}, z=z,
        half_life=float(rng.choice([8.0, 40.0])), shrinkage=float(rng.choice([0.5, 3.0])),
        scale=float(rng.choice([0.05, 0.5])), cap_source=float(rng.choice([0.4, 5.0])),
        min_signals=int(rng.integers(1, 3)), min_sources=int(rng.integers(1, 4)),
        confirm_ticks=int(rng.integers(1, 12)),
        scar_ticks=None if rng.random() < 0.6 else int(rng.integers(1, 12)),
    )  # fmt: skip


def _decision(
    rng: np.random.Generator, player: Player, names: list[Region], tick: int,
    everything: bool = False,
) -> bytes:  # fmt: skip
    chosen = (
        names
        if everything
        else [names[i] for i in rng.integers(len(names), size=rng.integers(1, 8))]
    )
    given = checked_regions(chosen)
    p = rng.dirichlet(np.full(len(chosen), 0.5))
    view = View(player.state)
    _, body = view.decide(given, p, max(tick, player.state.tick), f"{tick}{p[0]}", None)
    return pack_decision(body)


def _regions(body: bytes) -> list[Region]:
    made: DecisionBody = unpack_decision(body)
    return made.ids()


def _report(
    rng: np.random.Generator, key: str, names: list[Region],
    decisions: dict[str, tuple[int, list[Region]]], tick: int,
) -> HarmReport:  # fmt: skip
    about: dict[str, Any] = {"regions": [names[i] for i in rng.integers(len(names), size=2)]}
    if rng.random() < 0.6:
        about = {"decision_id": str(rng.choice(list(decisions)[-6:]))}
    return HarmReport(
        source=f"s{rng.integers(4)}", key=key, harm=float(rng.random()),
        signal=f"g{rng.integers(3)}", at=SECONDS * (tick - int(rng.integers(4))) + 1.0, **about,
    )  # fmt: skip


def _change(rng: np.random.Generator) -> dict[str, Any]:
    changes: list[dict[str, Any]] = [
        {"confirm_ticks": int(rng.integers(1, 12))},
        {"scar_ticks": None if rng.random() < 0.5 else int(rng.integers(1, 12))},
        {"params": {"delta": 0.8}},
        {"params": {"eta": 0.0}},
        {"cap_source": 0.2},
        {"min_sources": 1, "min_signals": 1},
        {"params": {"psi_min": 0.5}},
        {"half_life": float(rng.choice([2.0, 15.0]))},
        {"half_life": 9.0, "shrinkage": 1.0},
        {"base_rates": {"t2": 0.02}, "scale": 0.5},
    ]
    return changes[int(rng.integers(len(changes)))]


def _act_on_region(rng: np.random.Generator, what: str, known: list[Region], tick: int) -> Op:
    region = known[int(rng.integers(len(known)))]
    data: Any = ([], [region])
    if what == "override":
        ends = None if rng.random() < 0.5 else SECONDS * (tick + int(rng.integers(1, 9)))
        data = {"region": region, "psi": float(rng.uniform(0.1, 1)), "expires_at": ends}
    if what == "allow":
        data = {"region": region, "allowed": bool(rng.random() < 0.6)}
    return Op(tick, what, "", data)


def _few(rng: np.random.Generator, keys: list[str]) -> list[str]:
    return sorted({keys[i] for i in rng.integers(len(keys), size=rng.integers(1, 3))})


def _rollback(rng: np.random.Generator, keys: list[str], tick: int) -> dict[str, Any]:
    way = rng.random()
    if way < 0.4:
        return {"keys": _few(rng, keys)}
    if way < 0.7:
        return {"source": f"s{rng.integers(4)}", "from": None, "to": None}
    first = SECONDS * (tick - int(rng.integers(1, 15)))
    return {"source": None, "from": first, "to": first + SECONDS * float(rng.integers(1, 9))}


# --- what must hold


def agree(one: State, other: State, what: str) -> None:
    """Two states that serve the same."""
    assert one.field_hash() == other.field_hash(), what
    psi = [dict(zip(map(str, s.regions.names), s.psi(), strict=True)) for s in (one, other)]
    both = set(psi[0]) & set(psi[1])
    assert {k: psi[0][k] for k in both} == {k: psi[1][k] for k in both}, what


def replayed(player: Player, cut: int | None = None) -> State:
    """The log read again from its start, or from a snapshot at a cut."""
    state = State()
    for event in player.log.events:
        state.apply(event, player.log)
        if event.position == cut:
            state = load(dump(state), state.ledger.rows)
    return state


def same_replay(rng: np.random.Generator, player: Player) -> None:
    live = player.state
    cuts = [None, int(rng.integers(1, live.position + 1))]
    for state in [replayed(player, cut) for cut in cuts]:
        agree(live, state, "a replay differs")
        assert state.revision == live.revision
        assert sorted(state.review) == sorted(live.review)
        assert np.array_equal(state.ledger.rows, live.ledger.rows), "the ledger differs"
        assert np.array_equal(state.ledger.taken, live.ledger.taken), "the caps differ"
        served = [s.traffic.served[: len(s.regions)] for s in (state, live)]
        assert np.array_equal(*served), "the counts differ"
        assert _plain(state) == _plain(live), "the cells differ"
    before = live.field_hash(), _plain(live)
    live.fold.refold(live.fold.ledger.regions)
    assert (live.field_hash(), _plain(live)) == before, "folding again differs"
    again = live.fold.preview(Plan(live.ledger.regions))
    for name, found in zip(("G", "H", "psi"), again[1:], strict=True):
        assert np.array_equal(getattr(live.fold, name)[again.regions], found), "a preview differs"


def _plain(state: State) -> list[Any]:
    """What is known of every region that anything counted for, by its name; and who is live.

    Where a region is not live its tick may lag; but not by how the time was cut.
    """
    cells = state.fold.f.cells[: state.ledger.slots]
    shown = [n for n in cells.dtype.names if n not in ("point_tick", "point_E", "topic")]
    names = [str(state.regions.names[r]) for r in state.ledger.regions]
    return sorted(
        (name, cell[shown].tolist()) for name, cell in zip(names, cells, strict=True)
        if cell["heard"]
    )  # fmt: skip


def same_reference(player: Player) -> None:
    """The kernels sum and decay in their own ways: the last digits may differ."""
    state, count = player.state, len(player.state.regions)
    fold = state.fold
    shown = REFERENCE["exposures"](player.log.events, state.regions.number, state.config.D)
    topics = {r: label["topic"] for r, label in state.labels.items() if "topic" in label}
    found = REFERENCE["fold"](
        state.ledger.rows, count, fold.start, state.tick, fold.changes, shown, fold.confirmations,
        state.allowed, topics,
    )  # fmt: skip
    psi, sure = fold.conductance()
    psi[list(state.allowed)] = 1.0
    for name, mine, theirs in (
        ("G", fold.G, found.G), ("H", fold.H, found.H), ("psi", psi, found.psi),
        ("sure", sure, np.where(np.isin(np.arange(count), list(state.allowed)), sure[:count],
                                found.sure)),
    ):  # fmt: skip
        np.testing.assert_allclose(mine[:count], theirs, rtol=1e-9, atol=1e-12, err_msg=name)


def same_however_time_is_cut(player: Player, ops: list[Op]) -> None:
    """Every tick by itself, instead of many at once."""
    other = Player(player.config)
    for op in ops:
        for tick in range(other.state.tick + 1, op.tick):
            other.play(Op(tick, "pass"))
        other.play(op)
    agree(player.state, other.state, "another cut of time differs")
    assert _plain(player.state) == _plain(other.state), "another cut of time differs in a cell"


def same_in_another_order(rng: np.random.Generator, player: Player, ops: list[Op]) -> None:
    """Reports and exposures arrive at other times before they count, some of them twice."""
    D = player.config.D
    made = {op.id: (op.tick, i) for i, op in enumerate(ops) if op.what == "decide"}
    waits = {key for key, position in player.reports.items() if position in player.state.review}
    timed: list[tuple[float, Op]] = []
    for i, op in enumerate(ops):
        when = _moment(op.tick, i, len(ops))
        if op.what in ("report", "expose") and op.id not in waits:
            about = op.data.decision_id if op.what == "report" else op.id
            # one that names regions must not come before they are known
            exposed, first = made[about] if about else (int(op.data.at // SECONDS), i)
            if exposed + D > op.tick:  # in time: it may come whenever it is so
                earliest = _moment(ops[first].tick, first, len(ops))
                when = float(rng.uniform(earliest, exposed + D - 0.01))
        timed.append((when, op))
        if rng.random() < 0.3 and op.what in ("report", "expose", "decide"):
            timed.append((when + float(rng.random()) * 4, op))
    other = Player(player.config)
    for when, op in sorted(timed, key=lambda pair: pair[0]):
        other.play(replace(op, tick=max(int(when), op.tick if op.what == "decide" else 0)))
    if other.state.tick < player.state.tick:
        other.play(Op(player.state.tick, "pass"))
    while player.state.tick < other.state.tick:
        player.play(Op(other.state.tick, "pass"))
    agree(player.state, other.state, "another order of arrival differs")


def _moment(tick: int, i: int, count: int) -> float:
    """A time within a tick that keeps the order of ops."""
    return tick + i / count * 0.9


def same_without(player: Player, ops: list[Op]) -> int:
    """A rolled-back report might as well never have come; returns how many there were."""
    gone: set[str] = set()
    came: dict[str, HarmReport] = {}
    for op in ops:
        if op.what == "report":
            came[op.id] = op.data
        elif op.what == "rollback" and "keys" in op.data:
            gone |= set(op.data["keys"])
        elif op.what == "rollback":
            source, start, end = (op.data[n] for n in ("source", "from", "to"))
            gone |= {
                k for k, r in came.items()
                if (source is None or r.source == source)
                and (start is None or start <= r.at) and (end is None or r.at < end)
            }  # fmt: skip
    other = Player(player.config)
    for op in ops:
        if op.id in gone or op.what == "rollback":
            op = Op(op.tick, "pass")
        if op.what == "confirm":
            keys = [k for k in op.data[0] if k not in gone]
            op = replace(op, data=(keys, op.data[1]))
        other.play(op)
    agree(player.state, other.state, "a rollback is not a history without those reports")
    return len(gone)


def run_histories(count: int, seed: int = 0) -> dict[str, int]:
    """Check generated histories; returns how much happened in them."""
    seen = {"events": 0, "scarred": 0, "rolled back": 0}
    for i in range(count):
        rng, human, player, ops = generated(seed, i)
        seen["events"] += len(player.log.events)
        seen["scarred"] += bool((player.state.fold.H > 0).any())
        try:
            same_replay(rng, player)
            same_however_time_is_cut(player, ops)
            if i % 8 == 0:
                same_reference(player)
            if human:
                seen["rolled back"] += same_without(player, ops)
            else:
                same_in_another_order(rng, player, ops)
        except AssertionError as error:
            raise AssertionError(f"history {i} of seed {seed}: {error}") from error
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_histories(seed: int) -> None:
    seen = run_histories(25, seed)
    assert seen["scarred"] > 5
    assert seen["rolled back"] > 5


def test_the_log_alone_decides() -> None:
    """An event that comes twice, or out of order, is refused."""
    player, _ = generate(np.random.default_rng(1), human=False)
    event: Event = player.log.events[-1]
    with pytest.raises(ValueError, match="came after"):
        player.state.apply(event, player.log)


if __name__ == "__main__":
    begun = time.perf_counter()
    found = run_histories(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(f"{sys.argv[1]} histories hold: {found}, {time.perf_counter() - begun:.0f} s")
