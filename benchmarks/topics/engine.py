"""One episode-step with fields, beside the same step in other tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.effort import Effort
from benchmarks.peers import HOW_TO_INSTALL, installed
from benchmarks.peers.cynetdiff_ic import CynetdiffCascade
from benchmarks.peers.jax_step import JaxStep
from benchmarks.peers.ndlib_sis import NdlibSis
from benchmarks.peers.numpy_step import NumpyStep
from benchmarks.peers.rng import candidates
from benchmarks.problem import Problem, problem_of
from benchmarks.same_step import AGREE, largest_difference
from benchmarks.table import Row, missing
from benchmarks.timing import Contestant, Timings, interleave
from rapo.cascade.engine import Cascade
from rapo.graphs.generate import generate

TITLE = "Engine: one episode-step with fields, 64 episodes on one graph, one thread"

EPISODES = 64
STEPS = 1200
"""Steps after which a block starts its episodes anew: the length of an RSD episode."""
JAX_STEPS = 100
MODERATE = np.ones(EPISODES, np.int32)
NANOSECONDS = {250: 300.0, 1000: 1200.0}
"""Nodes, and the most an episode-step may take."""
RUN, STEP, PUSH = "run", "step", "run, push"
VARIED = "run, other actions at every step"
NOMINAL = ("nominal, lanes", "nominal, push")


def make_engine(nodes: int, **options: Any) -> Cascade:
    """A started engine in an Exposure without end, as the peers know no phases."""
    engine = Cascade(generate(nodes, 0), EPISODES, scheduled=False, **options)
    restart(engine)
    return engine


def restart(engine: Cascade) -> None:
    """The same episodes from the beginning."""
    engine.start(keys=np.arange(EPISODES, dtype=np.uint64), stimuli=np.ones(EPISODES, np.int32))


def varied_actions() -> npt.NDArray[np.int64]:
    """(steps, episodes) actions drawn at random."""
    return np.random.default_rng(0).integers(3, size=(STEPS, EPISODES))


def stepping(step: Callable[[Any], object]) -> Callable[[int], None]:
    """One call of `step` per repeat, each with other actions, as an agent would."""
    actions = varied_actions()

    def run(repeats: int) -> None:
        for t in range(repeats):
            step(actions[t])

    return run


def ours(nodes: int) -> tuple[list[Contestant], Cascade]:
    """The engine in its ways of being called, and the engine whose step the peers copy."""
    lanes = make_engine(nodes, backend="lanes")
    push = make_engine(nodes, backend="push")
    nominal = [make_engine(nodes, backend=b, deformation="off") for b in ("lanes", "push")]

    actions = varied_actions()

    def whole(engine: Cascade) -> dict[str, Any]:
        return {
            "run": lambda repeats: engine.run(MODERATE, repeats),
            "units": EPISODES,
            "prepare": lambda: restart(engine),
            "most": STEPS,
        }

    return [
        Contestant(RUN, **whole(lanes)),
        Contestant(STEP, **{**whole(lanes), "run": stepping(lanes.step)}),
        Contestant(
            VARIED,
            **{**whole(lanes), "run": lambda repeats: lanes.run(actions[:repeats], repeats)},
        ),
        Contestant(PUSH, **whole(push)),
        *(Contestant(name, **whole(e)) for name, e in zip(NOMINAL, nominal, strict=True)),
    ], lanes


def edge_trials(nodes: int) -> float:
    """Mean number of out-edges of active nodes per nominal episode-step: the trials of a step."""
    engine = make_engine(nodes, deformation="off")
    degree = np.diff(engine.graph.indptr)
    total = 0.0
    for _ in range(STEPS):
        total += float((engine.active @ degree).mean())
        engine.step(MODERATE)
    return total / STEPS


def peers(problem: Problem, graph: Any) -> tuple[list[Contestant], dict[str, Any]]:
    """Every peer that is installed, and the traces by which they are compared with the engine."""
    numpy_step = NumpyStep(problem)
    found = [
        Contestant("NumPy", stepping(numpy_step.step), EPISODES, numpy_step.reset, STEPS),
        *(
            Contestant(name, run, EPISODES, None, STEPS)
            for name, run in candidates(problem.n, EPISODES).items()
        ),
    ]
    traces = {"NumPy": np.stack([numpy_step.step(MODERATE) for _ in range(JAX_STEPS * 5)])}
    if installed("jax"):
        for uniforms in ("hash", "threefry"):
            peer, name = JaxStep(problem, JAX_STEPS, uniforms), f"JAX {uniforms}"
            found.append(Contestant(name, _laps(peer), EPISODES * JAX_STEPS, peer.reset, 12))
            traces[name] = np.concatenate([np.asarray(peer.run(MODERATE)) for _ in range(5)])
    if installed("ndlib", "six"):
        found.append(Contestant("NDlib", NdlibSis(problem).run))
    if installed("cynetdiff"):
        cascade = CynetdiffCascade(graph)
        trials = cascade.run(20_000) / 20_000  # per cascade; a block holds thousands of them
        found.append(Contestant("CyNetDiff", cascade.run, trials))
    return found, traces


def _laps(peer: JaxStep) -> Callable[[int], None]:
    def run(repeats: int) -> None:
        for _ in range(repeats):
            peer.run(MODERATE)

    return run


def measure(effort: Effort) -> list[Row]:
    """All figures for each graph size."""
    rows = []
    for nodes in NANOSECONDS:
        effort.progress(f"n = {nodes}: building")
        own, engine = ours(nodes)
        problem = problem_of(engine)
        others, traces = peers(problem, engine.graph)
        restart(engine)
        trace = engine.run(MODERATE, JAX_STEPS * 5)
        times = interleave([*own, *others], effort.rounds, effort.progress)
        figures = [
            *own_rows(times, nodes),
            *ratio_rows(times),
            *trial_rows(times, edge_trials(nodes), engine.graph.edges),
            *draw_rows(times, nodes),
            *honesty_rows(times, trace, traces),
        ]
        rows += [replace(row, case=f"n = {nodes}") for row in figures]
    return rows


def own_rows(times: Timings, nodes: int) -> list[Row]:
    """Nanoseconds per episode-step of the engine."""
    most = NANOSECONDS[nodes]
    return [
        Row("engine.run, many steps a call", times.best(RUN), "ns", at_most=most),
        Row("engine.step, one step a call", times.best(STEP), "ns", at_most=most,
            note="other actions at every step, 64 episodes a call"),
        Row("engine.step / engine.run of the same actions", times.ratio(STEP, VARIED), "x",
            at_most=1.3,
            note=f"what a call a step costs; {times.ratio(STEP, RUN):.2f} x engine.run of one "
                 "action, whose injection never changes"),
        Row("engine.run, backend push", times.best(PUSH), "ns",
            note="cost follows the cascade, here of the moderate action"),
    ]  # fmt: skip


def ratio_rows(times: Timings) -> list[Row]:
    """How many times longer the same step takes elsewhere."""
    whole = times.ratio("NumPy", RUN)
    how = f"one call a step, sparse product in SciPy; {whole:.1f} x engine.run"
    rows = [_ratio(times, "NumPy", STEP, 10.0, how)]
    if "JAX hash" in times.ns:
        fast = times.fastest(["JAX hash", "JAX threefry"])
        slow = "JAX hash" if fast == "JAX threefry" else "JAX threefry"
        rows += [
            _ratio(times, fast, RUN, 4.0, "jit + scan; the faster generator"),
            _ratio(times, slow, RUN, None, "jit + scan"),
        ]
    else:
        rows.append(missing("JAX / engine.run", HOW_TO_INSTALL, unit="x", at_least=4.0))
    if "NDlib" in times.ns:
        rows.append(_ratio(times, "NDlib", STEP, 300.0, "one SIS iteration, no fields"))
    else:
        rows.append(missing("NDlib / engine.step", HOW_TO_INSTALL, unit="x", at_least=300.0))
    return rows


def _ratio(times: Timings, peer: str, own: str, at_least: float | None, note: str) -> Row:
    return Row(
        f"{peer} / engine.{own}",
        times.ratio(peer, own),
        "x",
        at_least=at_least,
        note=f"{times.best(peer):,.0f} ns; {note}",
    )


def trial_rows(times: Timings, trials: float, edges: int) -> list[Row]:
    """Nanoseconds per edge trial under the nominal kernel, and CyNetDiff's."""
    lanes, push = NOMINAL
    mine = times.fastest(NOMINAL)
    dense = Row("per in-edge, active or not, backend lanes", times.best(lanes) / edges, "ns")
    figure = "edge trial, engine / CyNetDiff"
    if "CyNetDiff" not in times.ns:
        return [missing(figure, HOW_TO_INSTALL, unit="x", at_most=0.5), dense]
    theirs = times.best("CyNetDiff")
    return [
        Row(figure, times.ratio(mine, "CyNetDiff") / trials, "x", at_most=0.5,
            note=f"lanes {times.best(lanes) / trials:.1f}, push {times.best(push) / trials:.1f} "
                 f"against {theirs:.1f} ns; edges whose source is active, {trials:.0f} a step; "
                 "no deformation"),
        dense,
    ]  # fmt: skip


def draw_rows(times: Timings, nodes: int) -> list[Row]:
    """The engine against random numbers alone."""
    names = list(candidates(nodes, EPISODES))
    bar = times.fastest(names)
    others = ", ".join(f"{name} {times.best(name):,.0f} ns" for name in names if name != bar)
    return [
        Row("engine.run / random numbers alone", times.ratio(RUN, bar), "x", at_most=5.0,
            note=f"{bar} {times.best(bar):,.0f} ns for {nodes} draws; {others}"),
    ]  # fmt: skip


def honesty_rows(
    times: Timings, trace: npt.NDArray[np.float32], traces: dict[str, Any]
) -> list[Row]:
    """That peers do the same work, on one thread."""
    gap, where = largest_difference(trace, traces)
    busiest = max(times.threads, key=lambda name: times.threads[name])
    return [
        Row("peers' statistics differ by at most", gap, "s.e.", at_most=AGREE,
            note=f"standard errors of a mean; {where}; {trace.shape[0]} steps"),
        Row("processor time / elapsed time, largest", times.threads[busiest], "x", at_most=1.3,
            note=f"{busiest}; 1 is one thread"),
    ]  # fmt: skip
