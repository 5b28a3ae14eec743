"""`rapo suite run` and `rapo suite report`: run the missing jobs, write table, page and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from rapo.jobs.folder import (
    NAME,
    note_versions,
    read_manifest,
    refuse_another_config,
    versions,
    write_manifest,
)
from rapo.jobs.lock import locked
from rapo.jobs.run import checked_slots, run_with_bar
from rapo.platforms.data import REAL, REMEDY, STAND_IN, missing_data
from rapo.platforms.entry import Entry
from rapo.suite.domains import DOMAINS, domains_named
from rapo.suite.measure import Measure, about, actions_of, episodes_path, made_of
from rapo.suite.page import write_scorecard
from rapo.suite.policies import ScoredPolicy
from rapo.suite.scorecard import Card, card_of
from rapo.suite.sizes import Size, size_named
from rapo_core.checks import UserError

MADE_BY = "rapo suite run"
RESULTS = ("suite.csv", "scorecard.html", "scorecard.png")
"""Files that a run writes, and overwrites only in a folder with its manifest."""
STEP_SECONDS = 0.002
"""Seconds of one thread that a step of a platform's episodes takes, roughly."""


def run_suite(
    domains: str = "all",
    preset: str | Size = "quick",
    out: Path | str = Path("results/suite"),
    *,
    policy: str | None = None,
    stand_in: bool = False,
    engine: str = "local",
    jobs: int | None = None,
    console: Console | None = None,
) -> list[Card]:
    """Score a policy under every kernel in every domain; a card per domain.

    Bad options, data and policies are refused before anything is written.

    Args:
        domains: `all`, or names with commas between.
        preset: `smoke`, `quick` or `full`, or a size of one's own.
        out: folder of the results; a run that was cut goes on there.
        policy: a checkpoint, an SB3 .zip or `module:name`; default the domains' constant actions.
        stand_in: generate data even where the real ones are there.
        engine: `local` processes, or a `ray` cluster.
        jobs: platforms at a time, default one per core.
        console: for progress and remarks; default none.
    """
    out = Path(out)
    size = preset if isinstance(preset, Size) else size_named(preset)
    chosen, scored = domains_named(domains), ScoredPolicy.named(policy)
    slots = checked_slots(engine, jobs)
    shown = {"name": scored.name, "fingerprint": scored.fingerprint}
    config = {"preset": size.to_dict(), "policy": shown}
    before = _domains_before(out, config)
    planned = {domain.name: _plan(domain, size, scored, stand_in, console) for domain in chosen}
    plans = {
        name: {"jobs": [job.key for job in measures], "observe": measures[0].observe, "data": data}
        for name, (measures, data) in planned.items()
    }
    for name in plans:
        if name in before and before[name] != plans[name]:
            raise UserError(
                f"{out} holds results of {name} on data: {before[name]['data']}, now "
                f"{plans[name]['data']}, or of another setting; choose another --out"
            )
    with locked(out, holder=MADE_BY):
        whole = {**before, **plans}
        manifest = {"made_by": MADE_BY, "config": config, "versions": versions()}
        if before:
            manifest = _read(out)
        domains_in_order = {name: whole[name] for name in DOMAINS if name in whole}
        write_manifest(out, {**manifest, "domains": domains_in_order})
        note_versions(out)
        measures = [job for jobs, _ in planned.values() for job in jobs]
        run_with_bar(measures, out, engine=engine, slots=slots, console=console)
        return _write(out)


def report_suite(out: Path | str) -> list[Card]:
    """Write table, page and picture again from the results in a folder; a card per domain."""
    out = Path(out)
    _read(out)  # a folder without a suite is not even locked
    with locked(out, holder="rapo suite report"):
        return _write(out)


def _domains_before(out: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Plans of the domains that a folder holds; refuse a folder that holds something else."""
    if (out / NAME).exists():
        manifest = _read(out)
        refuse_another_config(out, manifest["config"], config)
        return dict(manifest["domains"])
    taken = [name for name in RESULTS if (out / name).exists()]
    if taken:
        raise UserError(
            f"{out} holds {', '.join(taken)} and no {NAME} of {MADE_BY}; choose another --out"
        )
    return {}


def _read(out: Path) -> dict[str, Any]:
    """The manifest of a suite's folder."""
    if not (out / NAME).exists():
        raise UserError(f"{out} holds no suite; {MADE_BY} --out {out} makes one")
    manifest = read_manifest(out)
    if manifest.get("made_by") != MADE_BY or not isinstance(manifest.get("domains"), dict):
        raise UserError(f"{out / NAME} is not of {MADE_BY}; choose another folder")
    return manifest


def _plan(
    domain: Entry, size: Size, policy: ScoredPolicy, stand_in: bool, console: Console | None
) -> tuple[list[Measure], str]:
    """The jobs of a domain, and which data they run on.

    Raises:
        UserError: the policy does not act in the domain.
    """
    missing = missing_data(*domain.files)
    if missing and not stand_in and console is not None:
        console.print(
            f"{domain.name} runs on generated data (stand-in): {missing}; {REMEDY}",
            highlight=False,
        )
    source = STAND_IN if stand_in or missing else REAL
    env = domain.make(size.seeds[0], source)
    observe = policy.check(domain, env)
    runs = 4 + len(domain.baselines)
    steps = runs * sum(size.horizons) + actions_of(env) * size.horizons[-1]
    digest = made_of(domain, env)
    measures = [
        Measure(domain.name, seed, size, policy, observe, source, digest, STEP_SECONDS * steps)
        for seed in size.seeds
    ]
    return measures, str(about(env).get("data", "generated"))


def _write(out: Path) -> list[Card]:
    """Write what readers look at, from the domains of which every job is done."""
    manifest = _read(out)
    waiting = [
        name
        for name, plan in manifest["domains"].items()
        if not all(episodes_path(out, key).exists() for key in plan["jobs"])
    ]
    finished: Sequence[str] = [name for name in manifest["domains"] if name not in waiting]
    if not finished:
        raise UserError(f"{out} holds no finished domain; the same {MADE_BY} goes on with it")
    cards = [card_of(name, manifest, out) for name in finished]
    write_scorecard(cards, manifest, waiting, out)
    return cards
