"""Scaling: one factor per graph so that nominal cascades have the same size on every graph."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.setting import CONTACT, MODERATE, Setting
from rapo.cascade.stats import REACH
from rapo.graphs.reach import factor_for_reach
from rapo.graphs.spectral_radius import spectral_radius
from rapo_core.checks import UserError, whole_number
from rapo_core.lanes import LANES

FIRST, LAST = 50, 400
"""Steps over which |A_t| is averaged: after the start, before the end of Exposure."""
_ROUNDS = 10
"""Nominal runs per stimulus in the search."""
_TOLERANCE = 0.005
"""Relative distance to the target at which the search stops."""
_SMALLEST_FACTOR, _GROWTH, _LARGEST_FACTOR = 0.01, 1.6, 100.0
_START = 0.85
"""Share of the critical factor at which the search is begun: cascades there are small and cheap."""
_NEAR = 0.03
"""Relative distance to the target of the sizes between which the search is left to bisection."""
_CLOSE_IN_RUNS = 12
_CAUTION = 0.75
"""Part of the first step towards the target that is taken."""


def cascade_size(graph: Graph, setting: Setting, *, seed: int = 0, rounds: int = _ROUNDS) -> float:
    """Mean |A_t| over steps 50..400 of nominal runs under the moderate action.

    Every stimulus runs `rounds` times: the standard stimulus is one drawn as in `reset`.
    """
    return size_up_to(graph, setting, math.inf, seed=seed, rounds=rounds).least


class Size(NamedTuple):
    """A cascade size, or a bound on the size from runs that ended early."""

    least: float
    """The size if every run was finished; otherwise a number below the size and above `enough`."""
    guess: float
    """Mean over the steps that were simulated."""
    finished: bool


def size_up_to(
    graph: Graph,
    setting: Setting,
    enough: float,
    *,
    seed: int = 0,
    rounds: int = _ROUNDS,
    engines: dict[int, Cascade] | None = None,
) -> Size:
    """Return `cascade_size`, or end the runs once the size is certain to be above `enough`.

    Runs far above a target cost most: on 40,000 nodes a factor 1.5 times too large costs fifty
    times as much as the right one.
    """
    episodes = whole_number("rounds", rounds, 1) * graph.stimuli
    keys = derive(derive(seed, 0xCA5CADE), np.arange(episodes))
    engines = {} if engines is None else engines
    earlier = set(engines)
    total, seen, planned = 0.0, 0, episodes * (LAST - FIRST + 1)
    for first in range(0, episodes, LANES):
        number = np.arange(first, min(first + LANES, episodes))
        size = len(number)
        if size not in engines:
            engines[size] = Cascade(
                graph,
                size,
                setting=setting.replace(horizons=(LAST, 1, 1)),
                regions=np.zeros(graph.n, np.int32),  # under P0 regions do not matter
                deformation="off",
            )
        elif size in earlier:  # an engine of earlier runs, which had other probabilities
            engines[size].reweight(graph)
            earlier.discard(size)
        engine = engines[size]
        engine.start(keys[number], 1 + number % graph.stimuli)
        for step in range(0, LAST, FIRST):
            trace = engine.run(np.full(len(number), MODERATE), FIRST)
            reach = trace[max(FIRST - 1 - step, 0) :, REACH]  # row t holds |A_{t+1}|
            total += float(reach.sum(dtype=np.float64))  # whole numbers: no rounding
            seen += reach.size
            if total / planned > enough:
                return Size(total / planned, total / seen, seen == planned)
    return Size(total / planned, total / planned, True)


def scaled(graph: Graph, factor: float, cap: float = 1.0) -> Graph:
    """The graph with every probability times `factor`, at most `cap`; capped edges are counted."""
    prob = graph.prob.astype(np.float64) * factor
    meta = {**graph.meta, "scale": factor, "capped_edges": int((prob > cap).sum())}
    return graph.replace(prob=np.minimum(prob, cap), meta=meta)


class _Sizes:
    """Cascade sizes by factor, simulated only where earlier runs do not decide the comparison.

    With fixed draws every active set grows with every probability, in single precision too, since
    products and their rounding keep the order. The size therefore never falls as the factor grows,
    and a run at one factor also bounds the sizes at all smaller, or at all larger, factors.
    """

    def __init__(self, graph: Graph, setting: Setting, seed: int) -> None:
        self.graph, self.setting, self.seed = graph, setting, seed
        self.prob = graph.prob.astype(np.float64)
        self.engines: dict[int, Cascade] = {}
        self.low: tuple[float, float] | None = None
        """Largest factor whose size is known to be short of the target, and that size."""
        self.high: tuple[float, float] | None = None
        """Smallest factor whose size is known to be over it, and a number between the two."""

    def __call__(self, factor: float) -> float:
        """Cascade size at `factor`, or a stand-in on the same side of the target.

        Draws are fixed, so the size never falls as the factor rises: a factor below one that is
        known to be too small is not simulated.
        """
        if self.low is not None and factor <= self.low[0]:
            return self.low[1]
        if self.high is not None and factor >= self.high[0]:
            return self.high[1]
        return self.run(factor).least

    def run(self, factor: float, *, whole: bool = False) -> Size:
        """Simulate a factor; with `whole` until the size is exact, however far above the target."""
        target = self.setting.cascade_target
        graph = self.graph.replace(prob=np.minimum(self.prob * factor, self.setting.edge_cap))
        enough = math.inf if whole else target * (1 + 2 * _TOLERANCE)
        size = size_up_to(graph, self.setting, enough, seed=self.seed, engines=self.engines)
        beyond = size.least / target - 1
        if beyond < -_TOLERANCE and (self.low is None or factor > self.low[0]):
            self.low = (factor, size.least)
        if beyond > _TOLERANCE and (self.high is None or factor < self.high[0]):
            self.high = (factor, size.least)
        return size


def scale_to_target(graph: Graph, setting: Setting, *, seed: int = 0) -> Graph:
    """The graph scaled so that nominal cascades have the setting's size.

    Under `contact` that is a `cascade_size` of `setting.cascade_target`, under the other laws the
    share of nodes reached (`reach`).

    The factor is the one that bisection finds: grow from .01 until the size reaches the target,
    then halve. Few of its comparisons are run: `_close_in` first finds factors a little below and
    above, and the size being monotone (see `_Sizes`) everything outside is decided by them.
    """
    if setting.spread != CONTACT:
        return scaled(graph, factor_for_reach(graph, setting, seed=seed), setting.edge_cap)
    target = setting.cascade_target
    size = _Sizes(graph, setting, seed)
    _close_in(size)
    if size(0.0) >= target:
        floor = size.run(0.0, whole=True).least
        raise UserError(
            f"cascade_target {target} is not above the {floor:.2f} nodes that injection alone "
            "keeps active; raise the target or lower the rates"
        )
    low, high = 0.0, _SMALLEST_FACTOR
    while (reached := size(high)) < target:
        if high >= _LARGEST_FACTOR:
            raise UserError(
                f"cascade_target {target} is out of reach: probabilities x{high:g} give cascades "
                f"of {reached:.1f} of {graph.n} nodes; lower the target or raise the rates"
            )
        low, high = high, _GROWTH * high
    for _ in range(40):
        middle = (low + high) / 2
        reached = size(middle)
        if abs(reached / target - 1) <= _TOLERANCE:
            break
        low, high = (middle, high) if reached < target else (low, middle)
    return scaled(graph, middle, setting.edge_cap)


def _close_in(size: _Sizes) -> None:
    """Run factors until sizes within `_NEAR` of the target are known on both of its sides.

    What it runs decides how long the search takes, never what it finds. The start is a little
    under the critical factor (1 - s) / radius, as runs above it may take the whole graph.
    """
    setting, target = size.setting, size.setting.cascade_target
    stay = setting.stopping
    radius = spectral_radius(size.graph.adjacency)
    # without edges each injected seed stays active for 1 / (1 - s) steps
    points = [(0.0, setting.rates[MODERATE] / stay)]
    if points[0][1] >= target:
        return
    factor = _START * stay / radius if radius > 0 else 1.0
    for _ in range(_CLOSE_IN_RUNS):
        factor = min(factor, _LARGEST_FACTOR)
        points.append((factor, max(size.run(factor).guess, 1e-9)))  # rates may be next to nothing
        if size.high is None:
            if factor == _LARGEST_FACTOR:
                return
            factor = _further(points, target * (1 + _NEAR / 2))
        else:
            below = max(p for p in points if p[0] <= (size.low or points[0])[0])
            above = min(p for p in points if p[0] >= size.high[0])
            short, over = math.log(target / below[1]), math.log(above[1] / target)
            if size.low is not None and max(short, over) <= _NEAR:
                return
            aim = target * (1 - _NEAR / 2 if short > over else 1 + _NEAR / 2)
            factor = _between(points, below, above, aim)


Point = tuple[float, float]
"""A factor and the size there."""


def _further(points: list[Point], aim: float) -> float:
    """A factor beyond the last of `points`, whose sizes are all short of `aim`.

    Below the critical factor 1 / size falls about linearly, and the parabola of three points tells
    how it bends. From two points only a part of the step is taken: too little costs another small
    run, too much a large one.
    """
    (f0, s0), (f1, s1) = points[-2:]
    x, a, b = (1 / size for size in (aim, s0, s1))
    if b >= a:  # not yet above the injection alone
        return _GROWTH * f1
    chord = (f1 - f0) / (b - a)
    step = chord * (x - b)
    if len(points) == 2:
        step *= _CAUTION
    else:
        c = 1 / points[-3][1]
        bend = ((points[-3][0] - f0) / (c - a) - chord) / (c - b) if c > a else 0.0
        step = min(max(step + bend * (x - a) * (x - b), step / 2), 2 * step)
    return f1 + min(max(step, 0.001 * f1), (_GROWTH - 1) * f1)


def _between(points: list[Point], below: Point, above: Point, aim: float) -> float:
    """The factor at which the size should be `aim`, by the parabola f(log size) of three points."""
    nearest = sorted(points, key=lambda p: abs(math.log(p[1] / aim)))
    third = next((p for p in nearest if p[1] not in (below[1], above[1])), None)
    x, a, b = (math.log(size) for size in (aim, below[1], above[1]))
    chord = (above[0] - below[0]) / (b - a)
    factor = below[0] + chord * (x - a)
    if third is not None:
        c = math.log(third[1])
        bend = ((third[0] - below[0]) / (c - a) - chord) / (c - b)
        bent = factor + bend * (x - a) * (x - b)
        factor = bent if below[0] < bent < above[0] else factor
    margin = 0.02 * (above[0] - below[0])
    return min(max(factor, below[0] + margin), above[0] - margin)
