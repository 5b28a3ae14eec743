"""Cost and memory of a step from 10^3 to 10^6 nodes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.effort import Effort
from benchmarks.footprint import bytes_of
from benchmarks.table import Row
from benchmarks.timing import Contestant, Timings, interleave
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.graphs.generate import generate

TITLE = "Scaling: cost of a step against the size of the graph, one thread"

SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPISODES = 32
"""One block of the lanes backend."""
SLOPE = 1.1
"""Largest log-log slope that counts as linear: doubling the edges may cost 2.14 times as much, so
that there is room for leaving the caches on the way up."""


def start(graph: Graph, episodes: int, backend: str) -> Cascade:
    """A started engine in an Exposure without end."""
    engine = Cascade(graph, episodes, backend=backend, scheduled=False)
    engine.start(np.arange(episodes, dtype=np.uint64), np.ones(episodes, np.int32))
    return engine


def contestant(name: str, engine: Cascade) -> Contestant:
    """Timed per step of all episodes of the engine."""
    actions = np.ones(engine.episodes, np.int32)
    return Contestant(name, lambda repeats: engine.run(actions, repeats), most=1200)


def measure(effort: Effort) -> list[Row]:
    """Nanoseconds per edge, slope, bytes; and one episode on the largest graph."""
    sizes = [n for n in SIZES if n <= effort.largest]
    # one factor for all: searching the cascade target anew on 10^6 nodes is not the topic
    factor = float(generate(sizes[0], 0).meta["scale"])
    graphs, engines, made, contestants = {}, {}, {}, []
    for n in sizes:
        effort.progress(f"making a graph of {n:,} nodes")
        begun = time.perf_counter()
        graphs[n] = generate(n, 0, scale=factor)
        made[n] = time.perf_counter() - begun
        engines[n] = start(graphs[n], EPISODES, "lanes")
        contestants.append(contestant(f"{n}", engines[n]))
        contestants.append(contestant(f"{n} push", start(graphs[n], 1, "push")))
    times = interleave(contestants, min(effort.rounds, 7), effort.progress)
    rows = [row for n in sizes for row in size_rows(times, graphs[n], engines[n], made[n])]
    if len(sizes) > 1:
        edges = [graphs[n].edges for n in sizes]
        cost = [times.best(f"{n}") for n in sizes]
        slope = float(np.polyfit(np.log(edges), np.log(cost), 1)[0])
        last = float(np.log(cost[-1] / cost[-2]) / np.log(edges[-1] / edges[-2]))
        rows += [
            Row("log-log slope of a step against edges", slope, case="all", at_most=SLOPE,
                note=f"backend lanes; 1 is linear; {sizes[0]:,} to {sizes[-1]:,} nodes"),
            Row("the same between the two largest graphs", last, case="all",
                note="both beyond the caches"),
        ]  # fmt: skip
    return rows


def size_rows(times: Timings, graph: Graph, engine: Cascade, made: float) -> list[Row]:
    """The figures of one graph."""
    n, case = graph.n, f"n = {graph.n:,}"
    lanes = times.best(f"{n}") / EPISODES
    held = bytes_of(engine, without=(Graph,))
    figures: list[dict[str, Any]] = [
        {"figure": "step per episode and edge", "value": lanes / graph.edges, "unit": "ns",
         "note": f"{EPISODES} episodes, backend lanes, {graph.edges:,} edges, "
                 f"{lanes / 1e3:,.1f} us an episode-step"},
        {"figure": "step of one episode, backend push", "value": times.best(f"{n} push") / 1e3,
         "unit": "us", "note": f"graph made in {made:.1f} s"},
        {"figure": "engine memory per node and episode", "value": held / n / EPISODES,
         "unit": "bytes", "note": f"{held / n:,.0f} a node for {EPISODES} episodes; the graph "
                                  f"itself {bytes_of(graph) / n:,.0f}"},
    ]  # fmt: skip
    return [Row(case=case, **figure) for figure in figures]
