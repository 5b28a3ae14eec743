"""Run what a suite lacks, and write its csv, page and picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from rapo.jobs.lock import locked
from rapo.paper.pieces import need_pyarrow
from rapo.paper.reproduce import run_goals
from rapo.paper.schedule import checked_slots
from rapo.platforms.data import STAND_IN
from rapo.suite.domains import Domain, chosen_domains
from rapo.suite.folder import (
    check_folder,
    config_of,
    finished,
    manifest_of,
    note_plan,
)
from rapo.suite.measure import Measure, about, made_of
from rapo.suite.policies import Given
from rapo.suite.scorecard import Card, card_of, write_scorecard
from rapo.suite.sizes import Size, size_named
from rapo_core.checks import UserError

ENGINES = {"processes": "local", "local": "local", "ray": "ray"}
"""Words of `--engine`, and what the runner calls them."""
STEP = 0.002
"""Seconds of one thread that a step of a platform's episodes takes, roughly."""


def run_suite(
    domains: str = "all",
    preset: str | Size = "quick",
    out: Path | str = Path("results/suite"),
    *,
    policy: str | None = None,
    stand_in: bool = False,
    engine: str = "processes",
    jobs: int | None = None,
    console: Console | None = None,
) -> list[Card]:
    """Score a policy under every kernel in every domain; a card per domain.

    Whatever is wrong with the words, the data or the policy shows before anything is written.

    Args:
        domains: `all`, or names with commas between.
        preset: `smoke`, `quick` or `full`, or a size of one's own.
        out: folder of the results; goes on with what it holds.
        policy: a checkpoint, an SB3 .zip or `module:name`; default the domain's constant action.
        stand_in: run on generated data in place of the real ones.
        engine: `processes` of this machine, or a `ray` cluster.
        jobs: platforms at a time, default one per core.
        console: where to tell; default none.
    """
    need_pyarrow()
    out = Path(out)
    size = preset if isinstance(preset, Size) else size_named(preset)
    chosen, given = chosen_domains(domains), Given.of(policy)
    if engine not in ENGINES:
        raise UserError(f"engine must be processes or ray, got {engine!r}")
    slots = checked_slots(ENGINES[engine], jobs)
    config = config_of(size, given, stand_in)
    check_folder(out, config)
    plans = {domain.name: _plan(domain, size, given, stand_in) for domain in chosen}
    with locked(out):
        planned = {
            name: {"pieces": [t.key for t in tasks], "observe": tasks[0].observe, "data": data}
            for name, (tasks, data) in plans.items()
        }
        note_plan(out, config, planned)
        goals = [task for tasks, _ in plans.values() for task in tasks]
        run_goals(goals, out, ENGINES[engine], slots, console)
        return _write(out)


def report_suite(out: Path | str) -> list[Card]:
    """Build csv, page and picture again from the pieces of a folder; a card per domain."""
    out = Path(out)
    manifest_of(out)  # a folder that is none of ours is not even locked
    with locked(out):
        return _write(out)


def _plan(domain: Domain, size: Size, given: Given, stand_in: bool) -> tuple[list[Measure], str]:
    """Tasks of a domain, and which data they run on; refuses what could not be run.

    Raises:
        ValueError: the real data are not there, or the policy does not act here.
    """
    try:
        env = domain.make(size.seeds[0], stand_in)
    except ValueError as error:
        raise UserError(
            f"{domain.name}: {error}; or run on generated data with --stand-in"
        ) from error
    data = str(about(env).get("data", "generated"))
    if data == STAND_IN and not stand_in:
        raise UserError(f"{domain.name} has no real data here; allow generated ones: --stand-in")
    observe = given.check(domain, env)
    actions = int(env.single_action_space.n)  # type: ignore[attr-defined]
    runs = 4 + len(domain.baselines)
    seconds = STEP * (runs * sum(size.horizons) + actions * size.horizons[-1])
    made = made_of(domain, env)
    tasks = [
        Measure(domain.name, seed, size, given, observe, stand_in, made, seconds)
        for seed in size.seeds
    ]
    return tasks, data


def _write(out: Path) -> list[Card]:
    manifest = manifest_of(out)
    whole = finished(out, manifest)
    if not whole:
        raise UserError(f"{out} holds no finished domain; the same rapo suite run goes on with it")
    cards = [card_of(name, keys, manifest, out) for name, keys in whole.items()]
    waiting = [name for name in manifest["domains"] if name not in whole]
    write_scorecard(cards, manifest, waiting, out)
    return cards
