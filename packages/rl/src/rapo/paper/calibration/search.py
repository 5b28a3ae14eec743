"""The stages of the search: many settings on two graphs, the best of them on more and more others.

Optuna keeps every trial in a journal, also those that failed, so a search that was cut goes on.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
import pandas as pd
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler, QMCSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from rapo.jobs.run import OnProgress, as_they_end
from rapo.paper.calibration.measures import measure
from rapo.paper.calibration.space import LAWS, SPACE, STARTS, setting_of
from rapo.paper.calibration.targets import held, score, unmet
from rapo_core.checks import UserError

logging.getLogger("optuna").setLevel(logging.WARNING)

BATCH = 32
"""Trials that are measured side by side: the population of CMA-ES and of NSGA-II."""
UNIFORM = 0.2
"""Share of a law's trials that are spread evenly over the space."""
ISLANDS = 6
"""Descents of CMA-ES that follow, each around another of the best settings so far."""
APART = 0.2
"""Least distance of the settings that descents start around, along one axis of the unit box."""
LOG, GOT = "trials.parquet", "got_"
"""Name of the log, which holds every trial, and what the names of measured numbers begin with."""
ENDED = (TrialState.COMPLETE, TrialState.FAIL)
SHARES = {"outbreak": 0.65, "cascade": 0.35}
"""Of the trials, by law."""


@dataclass(frozen=True)
class Stage:
    """Settings that are measured alike."""

    name: str
    graphs: tuple[int, ...]
    """Seeds of the graphs, on which no other stage looks."""
    settings: int
    """How many settings are measured, over all laws."""
    episodes: int
    ignition_runs: int
    """Of the setting's; fewer make a graph sooner."""


STAGES = (
    Stage("screen", (1000, 1001), 20_000, 20, 20),
    Stage("wide", tuple(range(1010, 1016)), 2_000, 20, 100),
    Stage("choose", tuple(range(1020, 1032)), 100, 40, 200),
)


def open_study(folder: Path, stage: Stage, law: str) -> optuna.Study:
    """The study of one stage and law: as its journal has it, else as the log has it, else new."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / f"{stage.name}-{law}.journal"
    new = not journal.exists()
    storage = JournalStorage(JournalFileBackend(str(journal)))
    study = optuna.create_study(storage=storage, study_name=stage.name, load_if_exists=True)
    if new and (folder / LOG).exists():
        study.add_trials(_logged(pd.read_parquet(folder / LOG), stage, law))
    return study


def _logged(log: pd.DataFrame, stage: Stage, law: str) -> Iterator[FrozenTrial]:
    """The trials of one stage and law that a log holds, in their order."""
    rows = log[(log["stage"] == stage.name) & (log["law"] == law)].sort_values("trial")
    for row in rows.to_dict("records"):
        failed = pd.notna(row["error"])
        numbers = {
            str(name).removeprefix(GOT): value
            for name, value in row.items()
            if str(name).startswith(GOT) and not failed
        }
        yield optuna.create_trial(
            state=TrialState.FAIL if failed else TrialState.COMPLETE,
            params={name: row[name] for name in SPACE[law]},
            distributions=SPACE[law],
            value=None if failed else row["score"],
            user_attrs={"error": row["error"]} if failed else {"numbers": numbers},
        )


def screen(
    study: optuna.Study,
    stage: Stage,
    law: str,
    *,
    settings: int,
    slots: int | None,
    on_progress: OnProgress,
) -> None:
    """Search the space of one law until the study has `settings` trials.

    Points spread evenly come first; then descents of CMA-ES from the best settings take turns with
    NSGA-II.
    """
    _forget_running(study)
    if not study.trials:
        for start in STARTS[law]:
            study.enqueue_trial(start)
    descents: dict[int, BaseSampler] = {}
    mixing = NSGAIISampler(population_size=BATCH, seed=1)
    # a search that goes on from a log begins another sequence: the old one's points are measured
    sequence = _ended_trials(study)
    uniform = _sampler(QMCSampler, qmc_type="sobol", scramble=True, seed=sequence)
    while (done := _ended_trials(study)) < settings:
        if done < UNIFORM * settings:
            study.sampler = uniform
        elif (done // BATCH) % 2:
            study.sampler = mixing
        else:
            island = int(ISLANDS * (done / settings - UNIFORM) / (1 - UNIFORM))
            if island not in descents:
                descents[island] = _descent(study, law, island)
            study.sampler = descents[island]
        trials = [study.ask(SPACE[law]) for _ in range(min(BATCH, settings - done))]
        _measure(study, stage, law, trials, slots)
        on_progress(_ended_trials(study), settings)


def _descent(study: optuna.Study, law: str, island: int) -> BaseSampler:
    """CMA-ES that learns from the trials around the best setting which no earlier descent had."""
    done = best(study, len(study.trials))
    points = _unit_box(law, [trial.params for trial in done])
    starts: list[int] = []
    for i, point in enumerate(points):
        if all(np.abs(point - points[other]).max() > APART for other in starts):
            starts.append(i)
        if len(starts) > island:
            break
    distance = np.abs(points - points[starts[-1]]).max(axis=1)
    around = [done[i] for i in np.argsort(distance, kind="stable")[: 10 * BATCH]]
    return _sampler(CmaEsSampler, source_trials=around, seed=island, popsize=BATCH)


def _sampler(kind: Callable[..., BaseSampler], **options: Any) -> BaseSampler:
    """Make a sampler without Optuna's warning that it may change: its version is pinned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return kind(**options)


def _unit_box(law: str, points: Sequence[Mapping[str, float]]) -> npt.NDArray[np.float64]:
    """(N, axes) points of a law's space with every axis from 0 to 1."""
    space: dict[str, Any] = SPACE[law]
    low = np.array([axis.low for axis in space.values()], float)
    high = np.array([axis.high for axis in space.values()], float)
    values = np.array([[point[name] for name in space] for point in points], float)
    return np.asarray((values - low) / (high - low))


def look_again(
    study: optuna.Study,
    stage: Stage,
    law: str,
    points: Sequence[Mapping[str, Any]],
    *,
    slots: int | None,
    on_progress: OnProgress,
) -> None:
    """Measure points that an earlier stage chose, on this stage's graphs."""
    _forget_running(study)
    seen = [trial.params for trial in study.trials if trial.state.is_finished()]
    waiting = [dict(point) for point in points if dict(point) not in seen]
    for first in range(0, len(waiting), BATCH):
        trials = []
        for point in waiting[first : first + BATCH]:
            study.enqueue_trial(point)
            trials.append(study.ask(SPACE[law]))
        _measure(study, stage, law, trials, slots)
        on_progress(len(points) - len(waiting) + first + len(trials), len(points))


def best(study: optuna.Study, count: int) -> list[FrozenTrial]:
    """The completed trials with the smallest scores, best first."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda trial: (trial.value, trial.number))[:count]


def _ended_trials(study: optuna.Study) -> int:
    """How many trials have ended, the failed ones among them; others only wait to be tried."""
    return len(study.get_trials(deepcopy=False, states=ENDED))


def _forget_running(study: optuna.Study) -> None:
    """Give up trials that a cut search left unfinished."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)


def _measure(
    study: optuna.Study, stage: Stage, law: str, trials: Sequence[Trial], slots: int | None
) -> None:
    calls = {trial.number: (numbers_of, law, dict(trial.params), stage) for trial in trials}
    by_number = {trial.number: trial for trial in trials}
    for number, (numbers, error) in as_they_end(calls, slots):
        trial = by_number[number]
        if error is not None:
            trial.set_user_attr("error", error)
            study.tell(trial, state=TrialState.FAIL)
            continue
        trial.set_user_attr("numbers", numbers)
        study.tell(trial, score(numbers))


def numbers_of(
    law: str, point: Mapping[str, float], stage: Stage
) -> tuple[dict[str, float], str | None]:
    """What a point gives on the graphs of a stage, or why it cannot be run."""
    try:
        setting = setting_of(law, point).replace(ignition_runs=stage.ignition_runs)
        return measure(setting, stage.graphs, episodes=stage.episodes), None
    except UserError as error:
        return {}, str(error)


def search(
    folder: Path,
    stages: Sequence[Stage] = STAGES,
    *,
    laws: Sequence[str] = LAWS,
    slots: int | None = None,
    on_stage: Callable[[str], OnProgress],
) -> dict[str, list[FrozenTrial]]:
    """Run all stages; the settings of the last one for each law, best first."""
    chosen: dict[str, list[FrozenTrial]] = {}
    for law in laws:
        for number, stage in enumerate(stages):
            settings = max(1, round(SHARES[law] * stage.settings))
            study = open_study(folder, stage, law)
            on_progress = on_stage(f"{stage.name} {law}")
            if number == 0:
                screen(study, stage, law, settings=settings, slots=slots, on_progress=on_progress)
            else:
                points = [trial.params for trial in chosen[law][:settings]]
                look_again(study, stage, law, points, slots=slots, on_progress=on_progress)
            chosen[law] = best(study, len(study.trials))
    return chosen


def log_frame(folder: Path, stages: Sequence[Stage] = STAGES) -> pd.DataFrame:
    """A row for every trial of every stage and law, those that failed too."""
    rows: list[dict[str, Any]] = []
    for stage, law in _journals(folder, stages):
        for trial in open_study(folder, stage, law).get_trials(deepcopy=False, states=ENDED):
            numbers = trial.user_attrs.get("numbers")
            rows.append(
                {
                    "stage": stage.name,
                    "law": law,
                    "trial": trial.number,
                    "score": trial.value,
                    "held": held(numbers) if numbers else None,
                    "unmet": "; ".join(unmet(numbers)) if numbers else None,
                    "error": None if numbers else trial.user_attrs.get("error", "not finished"),
                    **trial.params,
                    **{f"{GOT}{name}": value for name, value in (numbers or {}).items()},
                }
            )
    return pd.DataFrame(rows)


def _journals(folder: Path, stages: Sequence[Stage]) -> Iterator[tuple[Stage, str]]:
    for stage in stages:
        for law in LAWS:
            if (folder / f"{stage.name}-{law}.journal").exists():
                yield stage, law
