"""Gate: what a decision costs, how fast reports become durable and are folded, what must hold."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.effort import Effort
from benchmarks.table import Row
from benchmarks.timing import Contestant, interleave
from rapo_gate import Gate, GateConfig, HarmReport
from rapo_gate.fold.fold import ROW, UNIT, Fold
from rapo_gate.fold.state import State

TITLE = "Gate: 500 candidates of 10,000 regions in process; reports by the thousand; the log folded"
REGIONS, CANDIDATES = 10_000, 500
SCARRED = 300
"""Regions with psi below 1."""
BATCH = 1000
LEDGER = 1_000_000
NOW = 6e7
HISTORIES, CASES, POISON = 10_000, 1_000_000, 1_000_000
ROUNDS_FOR_ALL = 15
"""Fewer rounds try fewer histories and cases, in proportion."""
GATED, PLAIN = "decide", "multiply and normalise"
KNOWN, MANY, DRAWS = 1_000_000, 10_000, 8
STRINGS, INTEGERS = "strings", "integers"


def measure(effort: Effort) -> list[Row]:
    """Everything, on gates in a temporary folder."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        for part in (_decisions, _reports):
            with Gate.open(Path(folder) / f"{part.__name__}.db", clock=lambda: NOW) as gate:
                gate.decide(np.arange(REGIONS), np.full(REGIONS, 1 / REGIONS))
                gate.flush()
                rows += part(gate, effort)
        rows += _names(Path(folder), effort)
    return [*rows, _refold(effort), *_properties(effort)]


def _decisions(gate: Gate, effort: Effort) -> list[Row]:
    rng = np.random.default_rng(0)
    # scars by hand: one event instead of a history
    state = gate.read(lambda state: state)
    state.fold.H[: SCARRED * 30 : 30] = 0.4
    state.fold.psi[: SCARRED * 30 : 30] = 0.45
    gate.set_mode("enforce")
    regions = rng.integers(REGIONS, size=CANDIDATES)
    p = rng.dirichlet(np.ones(CANDIDATES))
    psi = gate.decide(regions, p).psi
    assert psi.min() < 1

    def gated(repeats: int) -> None:
        for _ in range(repeats):
            gate.decide(regions, p)

    def plain(repeats: int) -> None:
        for _ in range(repeats):
            weight = p * psi
            _ = weight / weight.sum()

    # a block is shorter than the writer's gathering: what is timed is the caller's part
    times = interleave(
        [Contestant(GATED, gated, prepare=gate.flush, most=50), Contestant(PLAIN, plain, most=500)],
        effort.rounds, effort.progress,
    )  # fmt: skip
    effort.progress("a stream of decisions")
    begun, count = time.perf_counter(), 3000
    gated(count)
    gate.flush()
    sustained = count / (time.perf_counter() - begun)
    return [
        Row("decide / multiply and normalise", times.ratio(GATED, PLAIN), "x", at_most=6,
            note=f"{CANDIDATES} candidates, integer ids, logged; {times.best(GATED) / 1e3:.1f} us "
                 f"to {times.best(PLAIN) / 1e3:.1f} us"),
        Row("decisions in a row, all of them durable", sustained, "/s", note="one caller"),
    ]  # fmt: skip


def _names(folder: Path, effort: Effort) -> list[Row]:
    """Very many regions: many candidates of them, as strings and as integers; human actions."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(KNOWN, size=(DRAWS, MANY))
    asked: dict[str, list[Any]] = {
        STRINGS: [[f"creator-{i}" for i in row] for row in chosen.tolist()],
        INTEGERS: list(chosen),
    }
    p = np.full(MANY, 1 / MANY)
    with ExitStack() as gates:
        contestants = []
        for kind, requests in asked.items():
            gate = gates.enter_context(Gate.open(folder / f"{kind}.db", clock=lambda: NOW))
            effort.progress(f"{KNOWN:,} regions as {kind}")
            for part in np.array_split(np.arange(KNOWN), 10):
                known = [f"creator-{i}" for i in part] if kind == STRINGS else part
                gate.decide(known, np.full(part.size, 1 / part.size))
            gate.flush()
            gate.read(lambda state: state).fold.psi[:KNOWN:30] = 0.45
            gate.set_mode("enforce")
            assert gate.decide(requests[0], p).psi.min() < 1

            def decide(repeats: int, gate: Gate = gate, requests: list[Any] = requests) -> None:
                for i in range(repeats):
                    gate.decide(requests[i % DRAWS], p)

            contestants.append(Contestant(kind, decide, prepare=gate.flush, most=DRAWS))
        times = interleave(contestants, effort.rounds, effort.progress)
        actions = _actions(gate, effort)
    names = Row(
        "decide with strings / with integers", times.ratio(STRINGS, INTEGERS), "x", at_most=10,
        note=f"{MANY:,} candidates of {KNOWN:,} regions, {times.best(STRINGS) / 1e6:.2f} ms to "
             f"{times.best(INTEGERS) / 1e6:.2f} ms",
    )  # fmt: skip
    return [names, actions]


def _actions(gate: Gate, effort: Effort) -> Row:
    """The dearest of the actions on a region or a report, among very many regions."""
    gate.report([HarmReport("s", "k", 1.0, "g", NOW, regions=[3])])
    acts: dict[str, Callable[[int], object]] = {
        "override": lambda i: gate.override(3, 0.5, reason="r"),
        "allow": lambda i: gate.allow(3, remove=bool(i % 2), reason="r"),
        "confirm": lambda i: gate.confirm(regions=[3], reason="r"),
        "label": lambda i: gate.label({3: {"topic": f"t{i % 2}"}}, reason="r"),
        "mode": lambda i: gate.set_mode("enforce", 50.0 + i % 2),
        "dry run": lambda i: gate.rollback(source="s", dry_run=True),
    }
    spent: dict[str, float] = {}
    for name, act in acts.items():
        effort.progress(f"{name} among {KNOWN:,} regions")
        taken = []
        for i in range(max(3, effort.rounds // 3)):
            gate.flush()
            begun = time.process_time()  # the writer's thread too
            act(i)
            taken.append(1000 * (time.process_time() - begun))
        spent[name] = statistics.median(taken)
    return Row(
        f"a human action at {KNOWN:,} regions", max(spent.values()), "ms", at_most=100,
        note="processor time; " + ", ".join(f"{n} {ms:.0f}" for n, ms in spent.items()),
    )  # fmt: skip


def _reports(gate: Gate, effort: Effort) -> list[Row]:
    effort.progress("durable reports")
    batches = [
        [
            HarmReport(f"s{i % 50}", f"{b} {i}", 0.5, f"g{i % 3}", NOW, regions=[i % REGIONS])
            for i in range(BATCH)
        ]
        for b in range(2 + 2 * effort.rounds)
    ]
    gate.report(batches[0])
    spent, begun = time.process_time(), time.perf_counter()
    for batch in batches[1:]:
        gate.report(batch)
    elapsed, spent = time.perf_counter() - begun, time.process_time() - spent
    count = BATCH * (len(batches) - 1)
    begun, replay = time.perf_counter(), State()
    effort.progress("the log from disk")
    while events := gate.store.read(replay.position, 5000):
        for event in events:
            replay.apply(event, gate.store)
    from_disk = replay.position / (time.perf_counter() - begun)
    return [
        Row("durable ingest", count / elapsed, "reports/s", at_least=10_000,
            note=f"batches of {BATCH}, synchronous=FULL; {count / spent:,.0f}/s of processor time"),
        Row("full replay from disk", from_disk, "events/s",
            note=f"{replay.position:,} reports read, decoded and applied one by one"),
    ]  # fmt: skip


def _refold(effort: Effort) -> Row:
    """Every row of the ledger counted again; a rollback does this for the regions concerned."""
    effort.progress("folding a ledger")
    rng = np.random.default_rng(1)
    fold = Fold(0, GateConfig())
    fold.grow(REGIONS)
    rows = np.zeros(LEDGER, ROW)
    rows["tick"] = np.sort(rng.integers(1, 1440, size=LEDGER))
    rows["region"] = rng.integers(REGIONS, size=LEDGER)
    rows["source"], rows["signal"] = rng.integers(1000, size=LEDGER), rng.integers(3, size=LEDGER)
    rows["amount"], rows["report"] = UNIT, np.arange(LEDGER)
    fold.count(rows)
    fold.run(1440)
    best = np.inf
    for _ in range(max(2, effort.rounds // 3)):
        begun = time.thread_time()  # one thread and no disk: others' load does not matter
        fold.refold(fold.ledger.regions)
        best = min(best, time.thread_time() - begun)
    return Row("refold of a ledger in memory", LEDGER / best, "events/s", at_least=1_000_000,
               note=f"{LEDGER:,} reports, {REGIONS:,} regions, 1,440 ticks; CPU time")  # fmt: skip


def _properties(effort: Effort) -> list[Row]:
    """Counts of what must hold; the tests' own checks, more often."""
    share = min(1.0, effort.rounds / ROUNDS_FOR_ALL)
    histories, cases = round(HISTORIES * share), round(CASES * share)
    run_histories = _from_tests("test_histories").run_histories
    run_bounds = _from_tests("test_bounds").run_bounds
    poison = _from_tests("test_guardrails").poison
    effort.progress(f"{histories} histories")
    broken, told = _held(lambda: run_histories(histories, 1))
    effort.progress(f"{cases} cases of bounds")
    outside, worst = _held(lambda: run_bounds(cases, 1))
    effort.progress("poisoning")
    floods = [poison(POISON, sources, signals) for sources, signals in ((1000, 1), (2, 1000))]
    psi = min(float(fold.conductance()[0].min()) for fold in floods)
    return [
        Row("histories that broke", broken, at_most=0, note=f"of {histories:,}; {told}"),
        Row("answers outside their bounds", outside, at_most=0, note=f"of {cases:,}; {worst}"),
        Row("dH of a flood without agreement", max(float(f.H.max()) for f in floods), at_most=0,
            note=f"{POISON:,} reports: one signal, or two sources"),
        Row("psi of a flood without agreement", psi, at_least=0.9),
    ]  # fmt: skip


def _held(run: Callable[[], object]) -> tuple[float, str]:
    try:
        return 0.0, str(run())
    except AssertionError as error:
        return 1.0, str(error)


def _from_tests(name: str) -> Any:
    """A module of the tests, which are no package."""
    path = Path(__file__).resolve().parents[2] / "packages" / "gate" / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"gate_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
