"""Score the best settings with trained policies of the methods that the targets name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from rapo.agents.config import PPOConfig
from rapo.agents.methods import METHODS
from rapo.agents.resolve import open_episodes
from rapo.agents.run_config import graph_run
from rapo.agents.train import train
from rapo.cascade.setting import ACTIONS, EXPOSURE, REPLAY, Setting
from rapo.jobs.run import as_they_end
from rapo.paper.calibration.log import Log
from rapo.paper.calibration.search import Report
from rapo.paper.calibration.targets import REQUIREMENTS, TARGETS, Target
from rapo.paper.evaluation import evaluate_run
from rapo.paper.paper import TABLE1
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate

TRAIN_GRAPHS = (1024, 1025, 1026, 1027)
"""Other graphs than the screening's, so that the trained round does not repeat its luck."""
SEEDS = (0, 1)
"""Seeds of the optimiser, on every graph."""
TRAINED = ("GE", "DR", "PM-ST", "RAPO")
EPISODES = 40
_NUMBERS = ("RAG", "AUC_R", "SM_R", "ReplayReturn", "OddsRatio", "ASD", "R_c")

RETURNS = tuple(
    Target(f"{method}_ReplayRet", *(2 * (TABLE1[method]["ReplayRet"][0],)), 0.04)
    for method in ("DR", "PM-ST")
)
"""Targets that only trained policies can meet or miss."""


def training(
    log: Log,
    settings: Sequence[Setting],
    steps: int,
    jobs: int | None,
    report: Report,
) -> list[dict[str, Any]]:
    """Train and evaluate every method under every setting; return means and score of each."""
    runs = product(settings, TRAIN_GRAPHS, SEEDS, TRAINED)
    calls = {
        _key(setting, method, graph, seed, steps): (_trained, setting, method, graph, seed, steps)
        for setting, graph, seed, method in runs
    }
    waiting = {key: call for key, call in calls.items() if key not in log.entries}
    for key, result in as_they_end(waiting, jobs):
        log.add(key, **result)
        report(f"trained {len(log.entries)} runs")
    return [judged(log, setting, steps) for setting in settings]


def _key(setting: Setting, method: str, graph_seed: int, seed: int, steps: int) -> str:
    """Name a training run; a method that pays for no cost does not depend on the budget."""
    # values that only loaded graphs use are no part of the search
    values = {k: v for k, v in setting.to_dict().items() if not k.startswith("loaded_")}
    if not METHODS[method].costs:
        values["budget"] = None
    parts = [values, method, graph_seed, seed, steps, asdict(PPOConfig())]
    return json.dumps(parts, sort_keys=True)


def judged(log: Log, setting: Setting, steps: int) -> dict[str, Any]:
    """Return means over graphs and optimiser seeds, and the score, of one setting."""
    means: dict[str, dict[str, float]] = {}
    for method in TRAINED:
        keys = [_key(setting, method, g, s, steps) for g in TRAIN_GRAPHS for s in SEEDS]
        rows = [log.entries[key]["found"] for key in keys]
        for name in rows[0]:
            frame = pd.DataFrame([row[name] for row in rows])
            means[name] = {str(k): float(v) for k, v in frame.mean().items()}
    base = means["GE"]
    for row in means.values():
        row["ReplayRet"] = row["ReplayReturn"] / base["ReplayReturn"]
        row["served"] /= base["served"] if row is not base else 1
        row["outside"] /= base["outside"] if row is not base else 1
    return {"setting": setting.to_dict(), "found": means, "score": trained_score(means)}


def trained_score(means: dict[str, dict[str, float]]) -> float:
    """Compute the screening's score with trained policies in place of fixed ones."""
    rapo, best = means["RAPO"], max(means[name]["ReplayRet"] for name in ACTIONS)
    whole = {
        **rapo,
        "alive": rapo["late"] / means["GE"]["late"],
        **{f"off_{m}": means["off@rep"][m] for m in ("RAG", "AUC_R", "SM_R")},
        "slow_RAG": means["slow-decay"]["RAG"],
        "R_c_P0": means["PM-ST"]["R_c"],
        "R_c_kept": rapo["R_c"] / means["PM-ST"]["R_c"],
        "gain": rapo["ReplayRet"] / best - 1,
        **{f"{m}_ReplayRet": means[m]["ReplayRet"] for m in ("DR", "PM-ST")},
    }
    total = sum(target.loss(whole) for target in (*TARGETS, *RETURNS))
    return float(total + sum(rule.distance(whole) for rule in REQUIREMENTS if rule.name == "gain"))


def _trained(
    setting: Setting, method: str, graph_seed: int, seed: int, steps: int
) -> dict[str, Any]:
    """Train one method on one graph and evaluate it, in a process of its own.

    RAPO's policy is also evaluated as off@rep and with slowly decaying scars, and the constant
    actions stand beside it under its kernel.
    """
    config = graph_run(
        method,
        graph_seed=graph_seed,
        seed=seed,
        steps=steps,
        setting=setting,
        ppo=PPOConfig(),
    )
    values = {}
    with TemporaryDirectory() as folder:
        summary = train(config, Path(folder))
        also = ("off@rep", "slow-decay") if method == "RAPO" else ()
        for name in (method, *also):
            result = evaluate_run(folder, episodes=EPISODES, seed=0, method=name)
            values[name] = _numbers(result)
    if method == "RAPO":
        run = open_episodes(config)
        for action, name in enumerate(ACTIONS):
            env = run.evaluation()
            values[name] = _numbers(
                evaluate(env, ConstantPolicy(action), episodes=EPISODES, seed=0)
            )
    return {"method": method, "found": values, "budgets": summary["budgets"]}


def _numbers(result: Any) -> dict[str, float]:
    frame = {name: float(result.frame[name].mean()) for name in _NUMBERS}
    reach, inside = result.of_phase("reach", REPLAY), result.of_phase("sensitive_mass", REPLAY)
    early = result.of_phase("reach", EXPOSURE)
    return {
        **frame,
        "served": float(result.of_phase("served", REPLAY).mean()),
        "outside": float((reach - inside).mean()),
        "late": float(early[:, early.shape[1] // 2 :].mean()),
    }
