"""`train`: one run in one folder, resumable to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import torch

from rapo.agents.card import model_card
from rapo.agents.methods import METHODS
from rapo.agents.ppo import PPO
from rapo.agents.resolve import EpisodeRun, GymnasiumRun, resolve
from rapo.agents.run_config import RunConfig
from rapo.agents.run_file import NAME, read_run, write_run
from rapo.agents.saved_run import CARD, OLD, SavedRun, load_state, save_state, saved_of
from rapo.agents.tracking import Tracker, checked_trackers, open_trackers
from rapo.jobs.lock import locked
from rapo_core.checks import UserError
from rapo_core.files import written_whole

OpenRun = EpisodeRun | GymnasiumRun
Report = Callable[[int, dict[str, float]], None]
"""Called after every rollout with the steps so far and what happened."""

SAVE_EVERY = 25
"""Rollouts after which a run is saved."""
LAST_SHARE = 0.1
"""Final share of training over which budgets are judged."""
FREE = ("steps", "track")
"""Fields of the config that may differ when a run goes on."""
EPISODES = ("return", "length")
"""Means of whole episodes, where the learner tells them."""
TOLERANCE = 0.1
"""A budget counts as met up to this share above it."""


def train(
    config: RunConfig,
    out: Path | str,
    *,
    resume: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train a method and leave its run in the folder `out`.

    Beside the files of `saved_run` there are `progress.csv`, a row per rollout, and `summary.json`.
    `train(read_run(out / "run.toml"), ...)` repeats the run.

    A killed run goes on with `resume=True` from where it was saved last and ends with the weights
    it would have had. A foreign environment has no snapshot: there it goes on with new episodes.

    Args:
        config: what to train.
        out: folder of the run; made if missing.
        resume: go on with the run in `out`, of the same config but for a larger `steps`.
        report: called after every rollout.

    Returns:
        The summary: steps, seconds, budgets and whether they were met.
    """
    out, row = Path(out), METHODS[config.method]
    if row.policy_of is not None and row.shield is None:
        raise UserError(
            f"{row.name} is an evaluation of a trained {row.policy_of}: run rapo train "
            f"{row.policy_of}, then rapo rsd RUN --method {row.name}"
        )
    if row.shield == "matched":
        raise UserError(
            f"{row.name} is tuned, not trained: give --policy (a run of {row.policy_of}) and "
            "--match (a run of RAPO)"
        )
    torch.set_num_threads(1)
    track = checked_trackers(config.track)
    run = resolve(config)  # whatever is wrong with the config shows before a folder is made
    config, learner, shield = run.config, run.learner(), _shield(run)
    with locked(out):
        state = _earlier(run, out, resume)
        if state is not None:
            learner.load(state)
        trackers = open_trackers(track, out, config.to_dict(), learner.steps)
        write_run(out / NAME, config)
        start, first = perf_counter(), learner.updates
        try:
            log = _Log(out, learner, trackers)
            while learner.updates < config.updates:
                numbers = learner.iterate()
                log.write(learner.steps, numbers)
                if report is not None:
                    report(learner.steps, numbers)
                if learner.updates % SAVE_EVERY == 0 and learner.updates < config.updates:
                    log.flush()
                    _save(out, saved_of(run, learner, shield), learner)
            log.flush()
            saved = saved_of(run, learner, shield)
            _save(out, saved, learner)
        finally:
            for tracker in trackers:
                tracker.close()
        seconds = perf_counter() - start
        summary = _summarise(out, config, learner, seconds, learner.updates - first)
        _write_text(out / CARD, model_card(saved, summary))
        return summary


def _earlier(run: OpenRun, out: Path, resume: bool) -> dict[str, Any] | None:
    """The state to go on from, or None for a fresh start; anything else is refused."""
    if not (out / NAME).exists() and not (out / OLD).exists():
        return None
    if not resume:
        raise UserError(f"{out} holds a run; go on with --resume, or choose another --out")
    if not (out / NAME).exists() or (out / OLD).exists():
        raise UserError(f"{out} holds a run of rapo 0.2; train again in another --out")
    before, now = read_run(out / NAME).to_dict(), run.config.to_dict()
    if now["steps"] < before["steps"]:
        raise UserError(
            f"{out} was trained for {before['steps']} steps, which cannot become {now['steps']}"
        )
    differing = [name for name in _changes(before, now) if name not in FREE]
    if differing:
        raise UserError(f"{out} is a run of another config; they differ in {', '.join(differing)}")
    return load_state(out)


def _changes(before: Any, now: Any, name: str = "") -> list[str]:
    """Where two configs differ, as `setting.budget 0.8 -> 0.9`; tuples and lists are alike."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = sorted(set(before) | set(now))
        dot = f"{name}." if name else ""
        return [c for k in names for c in _changes(before.get(k), now.get(k), f"{dot}{k}")]
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        before, now = list(before), list(now)
    if before == now:
        return []
    return [name] if name in FREE else [f"{name} {before!r} -> {now!r}"]


def _shield(run: OpenRun) -> dict[str, float] | None:
    """Threshold and reference of the shield around the policy; None without one."""
    threshold = run.config.threshold
    if threshold is None or not isinstance(run, EpisodeRun):
        return None
    return {"threshold": threshold, "reference": run.references()["sensitive_mass"]}


def _save(out: Path, saved: SavedRun, learner: PPO) -> None:
    """Write the state before the weights: a policy is never newer than what goes on with it."""
    save_state(out, learner)
    saved.save(out)


def _write_text(path: Path, text: str) -> None:
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8")


def _summarise(
    out: Path, config: RunConfig, learner: PPO, seconds: float, updates: int
) -> dict[str, Any]:
    """Judge the budgets on the last part of training and write `summary.json`.

    Time and speed are of the last sitting; with nothing left to do the earlier summary stays.
    """
    path = out / "summary.json"
    if updates == 0 and path.exists():
        earlier = dict(json.loads(path.read_text()))
        if earlier["steps"] == learner.steps:
            return earlier
    progress = pd.read_csv(out / "progress.csv")
    last = progress.tail(max(1, round(LAST_SHARE * len(progress))))
    budgets = {}
    for constraint in learner.constraints:
        cost = _mean(last, f"cost_{constraint.name}")
        budgets[constraint.name] = {
            "budget": constraint.budget,
            "cost": cost,
            "reference": constraint.reference,
            "met": cost is not None and cost <= (1 + TOLERANCE) * constraint.budget,
            "dual": float(last[f"dual_{constraint.name}"].iloc[-1]),
            "dual_at_cap": bool(last[f"dual_{constraint.name}"].iloc[-1] >= config.ppo.dual_cap),
        }
    summary = {
        "method": config.method,
        "steps": learner.steps,
        "reward": round(float(last["reward"].mean()), 5),
        **{name: _mean(last, name) for name in EPISODES if name in last},
        "budgets": budgets,
        "seconds": round(seconds, 1),
        "steps_per_second": round(updates * config.ppo.rollout / seconds) if updates else None,
        "environment_share": round(learner.env_seconds / seconds, 4) if updates else None,
    }
    _write_text(path, json.dumps(summary, indent=2) + "\n")
    return summary


def _mean(rows: pd.DataFrame, name: str) -> float | None:
    """Mean of a column; None where no episode has ended."""
    mean = float(rows[name].mean())
    return round(mean, 4) if isfinite(mean) else None


class _Log:
    """`progress.csv`, a row per rollout; the trackers are told the same.

    What was logged after the state that a run goes on from is dropped: it comes again.
    """

    def __init__(self, out: Path, learner: PPO, trackers: Sequence[Tracker]) -> None:
        self.path, updates = out / "progress.csv", learner.updates
        self.rows: list[dict[str, float]] = []
        kept: list[str] = []
        if updates:
            kept = self.path.read_text().splitlines(True) if self.path.exists() else []
            if len(kept) <= updates:
                raise UserError(
                    f"{self.path} lacks some of the {updates} rollouts that were saved; restore it "
                    "or start again in another folder"
                )
        _write_text(self.path, "".join(kept[: 1 + updates]))
        self.fresh = updates == 0
        self.trackers = trackers

    def write(self, steps: int, numbers: dict[str, float]) -> None:
        self.rows.append({"steps": steps, **numbers})
        for tracker in self.trackers:
            tracker.write(steps, numbers)

    def flush(self) -> None:
        frame = pd.DataFrame(self.rows)
        frame.to_csv(self.path, mode="a", header=self.fresh, index=False, float_format="%.6g")
        self.rows, self.fresh = [], False
