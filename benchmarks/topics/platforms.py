"""Batch platforms: steps a second at the recommender's shape, and what RSD adds to them.

Seconds are of the processor: on a busy machine the clock on the wall measures the others.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.effort import Effort
from benchmarks.peers import HOW_TO_INSTALL, installed, rware_step
from benchmarks.table import Row, missing
from rapo.platforms import (
    BatchPlatform,
    CandidateReplayEnv,
    Candidates,
    PlatformVectorEnv,
)
from rapo.platforms.entry import Entry
from rapo.platforms.vector import platform_of
from rapo.platforms.warehouse import Warehouse
from rapo.rsd import evaluate
from rapo.rsd.policy import as_actor
from rapo.suite.domains import DOMAINS

Array = npt.NDArray[Any]

WALKERS, CANDIDATES, REGIONS, ITEMS, ACTIONS, STIMULI = 120, 20, 60, 1395, 3, 5
EPISODES = 64
HORIZONS = (100, 40, 100)
REPEATS = 20
WARM_UP = 150
"""Steps until flows and robots are everywhere, and scars have grown."""
LEAST = {"feed": 20_000, "routing": 60_000, "warehouse": 60_000, "twin": 15_000}
KERNEL_SCARS = 2_000
"""Steps a second that are asked of the domains, and of the twin with kernel scars."""
STEPS, ONE_BY_ONE = "steps of an episode a second", "against walkers that are asked one by one"
BEFORE = 382.0
"""Steps a second of a platform of this shape before platforms were batches, on a quiet machine."""
TITLE = (
    f"Platforms: {WALKERS} walkers, {CANDIDATES} candidates, {REGIONS} regions, {ITEMS:,} items; "
    "one thread"
)


class Tables:
    """Random candidates and laws of every item."""

    def __init__(self, candidates: int = CANDIDATES) -> None:
        rng = np.random.default_rng(0)
        self.next = np.stack([rng.choice(ITEMS, candidates, replace=False) for _ in range(ITEMS)])
        self.law = rng.dirichlet(np.ones(candidates), (ACTIONS, ITEMS))
        self.harmful = np.arange(ITEMS) < ITEMS // 10
        self.region = (np.arange(ITEMS) % REGIONS).astype(np.int32)
        self.next_region = self.region[self.next]
        self.next_harmful = self.harmful[self.next]


TABLES = Tables()


class Synthetic(BatchPlatform):
    """Everybody is always there and goes from item to item."""

    def __init__(self, episodes: int = 1, **options: Any) -> None:
        super().__init__(
            episodes, walkers=WALKERS, actions=ACTIONS, stimuli=STIMULI, observed=2,
            regions=REGIONS, delay=30, **options,
        )  # fmt: skip

    def rest(self, episodes: int) -> dict[str, Array]:
        return {"at": np.tile(np.arange(WALKERS) % 10, (episodes, 1))}

    def candidates(self, state: dict[str, Array], action: Array) -> Candidates:
        at = state["at"]
        return Candidates(
            TABLES.law[action[:, None], at], TABLES.next_region[at], TABLES.next_harmful[at]
        )

    def transition(
        self, state: dict[str, Array], action: Array, choice: Array, found: Candidates
    ) -> tuple[dict[str, Array], Array]:
        return {"at": TABLES.next[state["at"], choice]}, np.ones(self.episodes)

    def harmed(self, state: dict[str, Array]) -> tuple[Array, Array]:
        return TABLES.harmful[state["at"]], TABLES.region[state["at"]]

    def reach(self, state: dict[str, Array]) -> Array:
        return (state["at"] < ITEMS // 2).sum(axis=1)

    def observation(self, state: dict[str, Array], clock: Array) -> Array:
        return np.stack([state["at"].mean(axis=1) / ITEMS, clock / 500], axis=1)


class OneByOne(CandidateReplayEnv):
    """The same, asked walker by walker.

    Args:
        walkers: m.
        tables: with K candidates.
    """

    def __init__(self, walkers: int = WALKERS, tables: Tables = TABLES) -> None:
        self.tables = tables
        starts = np.zeros((STIMULI, ITEMS))
        starts[:, :10] = 0.1
        super().__init__(
            actions=ACTIONS, harmful=tables.harmful, starts=starts, walkers=walkers,
            regions=tables.region.astype(np.int64), delay=30, leave=0,
        )  # fmt: skip
        self.reset(seed=0)

    def candidates(self, state: Any, action: int) -> tuple[Array, Array]:
        return self.tables.next[int(state)], self.tables.law[action, int(state)]

    def transition(self, state: Any, action: int, choice: int) -> tuple[Any, float, bool]:
        return choice, 1.0, False


class Chosen:
    """Actions at next to no cost."""

    batched = True

    def __call__(self, x: Array) -> Array:
        return np.ones(len(x), np.int64)


def measure(effort: Effort) -> list[Row]:
    """Steps of an episode a second, in batches, alone and one by one; the share of recording."""
    batch, alone, slow = (
        Synthetic(EPISODES, scheduled=False),
        Synthetic(scheduled=False),
        OneByOne(),
    )
    for platform in (batch, alone):
        _start(platform)
    a_second = _a_second({"batch": batch, "alone": alone, "one by one": slow}, effort)
    recording = float(np.median([_recording() for _ in range(max(3, effort.rounds // 3))]))
    case = f"{EPISODES} episodes"
    return [
        Row(STEPS, a_second["batch"], case=case, at_least=20_000),
        Row(ONE_BY_ONE, a_second["batch"] / a_second["one by one"], "x", case=case, at_least=20,
            note=f"{a_second['one by one']:,.0f} steps a second"),
        Row("against platforms before there were batches", a_second["batch"] / BEFORE, "x",
            case=case, at_least=20, note=f"{BEFORE:,.0f} steps a second then"),
        Row("share of an RSD run that is recording", recording, case=case, at_most=0.2),
        Row("steps a second", a_second["alone"], case="one episode"),
        *_domains(effort),
    ]  # fmt: skip


def _domains(effort: Effort) -> list[Row]:
    """The four domains at work, each beside walkers that are asked one by one, and RWARE."""
    there = {name: _at_work(DOMAINS[name], {}) for name in LEAST}
    there["twin, kernel scars"] = _at_work(DOMAINS["twin"], {"field": "kernel"})
    slow = {
        f"{name}, one by one": OneByOne(there[name].walkers, Tables(_candidates(there[name])))
        for name in LEAST
    }
    warehouse = there["warehouse"]
    assert isinstance(warehouse, Warehouse)
    peers = {"rware": rware_step.Rware(warehouse)} if installed("rware") else {}
    rate = _a_second({**there, **slow, **peers}, effort)
    rows = []
    for name, platform in there.items():
        case = f"{name}, {EPISODES} episodes"
        shape = f"{platform.walkers} walkers, {_candidates(platform)} candidates"
        note = f"{shape}; data: {platform.describe()['data']}"
        least = LEAST.get(name, KERNEL_SCARS)
        rows.append(Row(STEPS, rate[name], case=case, at_least=least, note=note))
        if name in LEAST:
            one = rate[f"{name}, one by one"]
            note = f"{one:,.0f} steps a second at this shape, candidates looked up in a table"
            rows.append(Row(ONE_BY_ONE, rate[name] / one, "x", case, at_least=20, note=note))
    case, against = f"warehouse, {EPISODES} episodes", "against RWARE, as many robots, same floor"
    if not peers:
        return [*rows, missing(against, HOW_TO_INSTALL, case=case)]
    note = f"{rate['rware']:,.0f} steps a second, one episode, random actions"
    return [*rows, Row(against, rate["warehouse"] / rate["rware"], "x", case, note=note)]


def _at_work(domain: Entry, options: dict[str, Any]) -> BatchPlatform:
    """A platform in mid-Exposure, with scars, whose phases do not end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says what the data are
        platform = platform_of(domain.made_by)(EPISODES, seed=1000, scheduled=False, **options)
    keys = np.arange(EPISODES, dtype=np.uint64)
    platform.start(keys, np.arange(EPISODES) % platform.stimuli + 1)
    for _ in range(WARM_UP):
        platform.step(np.full(EPISODES, domain.action))
    return platform


def _candidates(platform: BatchPlatform) -> int:
    """K."""
    state = platform.arrive(platform.state)
    return int(platform.checked_candidates(state, np.zeros(EPISODES, np.int64)).P0.shape[2])


def _start(platform: BatchPlatform) -> None:
    keys = np.arange(platform.episodes, dtype=np.uint64)
    platform.start(keys, np.ones(platform.episodes, np.int64))


def _a_second(platforms: dict[str, Any], effort: Effort) -> dict[str, float]:
    """Steps of an episode a second in the best round; the platforms take turns."""
    best = dict.fromkeys(platforms, 0.0)
    for i in range(effort.rounds + 1):  # the first compiles
        effort.progress(f"round {i} of {effort.rounds}")
        for name, platform in platforms.items():
            episodes = getattr(platform, "episodes", 1)
            action = np.ones(episodes, np.int64) if isinstance(platform, BatchPlatform) else 1
            start = time.process_time()
            for _ in range(REPEATS):
                platform.step(action)
            rate = REPEATS * episodes / (time.process_time() - start)
            best[name] = max(best[name], rate if i else 0.0)
    return best


def _recording() -> float:
    """Share of the processor time of a diagnostic that its bare steps do not take."""
    env = PlatformVectorEnv(1, platform=Synthetic)
    start = time.process_time()
    evaluate(env, Chosen(), EPISODES, horizons=HORIZONS)
    whole = time.process_time() - start
    stage = env.stage(
        EPISODES, seed=0, stimuli=None, horizons=HORIZONS, coupled=False,
        deformed=(True, True, True),
    )  # fmt: skip
    actor = as_actor(Chosen(), env.single_action_space)
    start = time.process_time()
    for phase, span in enumerate(HORIZONS):
        x = stage.begin(phase)
        for step in range(span):
            x, _, _ = stage.step(actor.act(x, stage.draws(step))[0])
    return 1 - (time.process_time() - start) / whole
