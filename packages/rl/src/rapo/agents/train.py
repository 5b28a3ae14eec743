"""`train`: one run in one folder, resumable to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import torch

from rapo.agents.checkpoint import load_checkpoint, replace_text, save_checkpoint, unpacked
from rapo.agents.methods import METHODS
from rapo.agents.ppo import PPO
from rapo.agents.resolve import EpisodeRun, GymnasiumRun, resolve
from rapo.agents.run_config import RunConfig
from rapo.agents.run_file import NAME, write_run
from rapo.agents.tracking import Tracker, checked_trackers, open_trackers
from rapo.jobs.lock import locked
from rapo_core.checks import UserError

OpenRun = EpisodeRun | GymnasiumRun
Report = Callable[[int, dict[str, float]], None]
"""Called after every rollout with the steps so far and what happened."""

SAVE_EVERY = 25
"""Rollouts between two checkpoints."""
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
    """Train a method and leave `checkpoint.pt`, `progress.csv` and `summary.json` in `out`.

    `run.toml` beside them repeats the run: `train(read_run(path), ...)`.

    A killed run goes on with `resume=True` from its last checkpoint and ends with the weights it
    would have had; on a foreign environment, which has no snapshot, it goes on with new episodes.

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
            f"{row.policy_of}, then rapo rsd RUN/checkpoint.pt --method {row.name}"
        )
    if row.shield == "matched":
        raise UserError(
            f"{row.name} is tuned, not trained: give --policy (a checkpoint of {row.policy_of}) "
            "and --match (a checkpoint of RAPO)"
        )
    torch.set_num_threads(1)
    track = checked_trackers(config.track)
    run = resolve(config)  # whatever is wrong with the config shows before a folder is made
    config, learner, shield = run.config, run.learner(), _shield(run)
    with locked(out):
        earlier = _earlier(run, out, resume)
        plan = config.to_dict()
        if earlier is not None:
            state = earlier["learner"]
            learner.load({**state, "env": unpacked(state["env"])})
        trackers = open_trackers(track, out, plan, learner.steps)
        replace_text(out / "config.json", json.dumps(plan, indent=2) + "\n")
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
                    _save(out, run, learner, shield, finished=False)
            log.flush()
            _save(out, run, learner, shield, finished=True)
        finally:
            for tracker in trackers:
                tracker.close()
        seconds = perf_counter() - start
        return _summarise(out, config, learner, seconds, learner.updates - first)


def _earlier(run: OpenRun, out: Path, resume: bool) -> dict[str, Any] | None:
    """The checkpoint to go on from, or None for a fresh start; anything else is refused."""
    path, plan = out / "checkpoint.pt", out / "config.json"
    if not path.exists() and not plan.exists():
        return None
    if not resume:
        raise UserError(f"{out} holds a run; go on with --resume, or choose another --out")
    content: dict[str, Any] | None = None
    if path.exists():
        content = load_checkpoint(path)
        before = content["config"]
    else:  # cut before its first checkpoint
        try:
            before = dict(json.loads(plan.read_text()))
        except (ValueError, TypeError):
            raise UserError(f"{plan} is damaged; remove {out} and start again") from None
    now = run.config.to_dict()
    if now["steps"] < before.get("steps", 0):
        raise UserError(
            f"{out} was trained for {before['steps']} steps, which cannot become {now['steps']}"
        )
    differing = [name for name in _changes(before, now) if name not in FREE]
    if differing:
        raise UserError(f"{out} is a run of another config; they differ in {', '.join(differing)}")
    if content is not None and content["graph_hash"] != run.graph_hash:
        raise UserError(
            f"{out} was trained on graph {content['graph_hash']}, this is {run.graph_hash}"
        )
    return content


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
    """What a checkpoint says of the shield around its policy; None without one."""
    threshold = run.config.threshold
    if threshold is None or not isinstance(run, EpisodeRun):
        return None
    return {"threshold": threshold, "reference": run.references()["sensitive_mass"]}


def _save(
    out: Path,
    run: OpenRun,
    learner: PPO,
    shield: dict[str, float] | None,
    *,
    finished: bool,
) -> None:
    model, config = learner.model, run.config
    save_checkpoint(
        out / "checkpoint.pt",
        {
            "method": config.method,
            "config": config.to_dict(),
            "graph_hash": run.graph_hash,
            "finished": finished,
            "model": {
                "kind": model.kind,
                "inputs": model.inputs,
                "actions": model.actions,
                "signals": 1 + len(learner.constraints),
                "hidden": config.ppo.hidden,
                "told": model.told,
            },
            "constraints": [asdict(constraint) for constraint in learner.constraints],
            "shield": shield,
            "learner": learner.save(),
        },
    )


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
    replace_text(path, json.dumps(summary, indent=2) + "\n")
    return summary


def _mean(rows: pd.DataFrame, name: str) -> float | None:
    """Mean of a column; None where no episode has ended."""
    found = float(rows[name].mean())
    return round(found, 4) if isfinite(found) else None


class _Log:
    """`progress.csv`, a row per rollout; the trackers are told the same.

    What was logged after the checkpoint that a run goes on from is dropped: it comes again.
    """

    def __init__(self, out: Path, learner: PPO, trackers: Sequence[Tracker]) -> None:
        self.path, updates = out / "progress.csv", learner.updates
        self.rows: list[dict[str, float]] = []
        kept: list[str] = []
        if updates:
            kept = self.path.read_text().splitlines(True) if self.path.exists() else []
            if len(kept) <= updates:
                raise UserError(
                    f"{self.path} lacks rollouts before the checkpoint's {updates}; restore it, or "
                    "start again in another folder"
                )
        replace_text(self.path, "".join(kept[: 1 + updates]))
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
