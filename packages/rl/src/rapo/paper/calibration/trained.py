"""The best settings with trained policies: the methods that the targets name, on other graphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from rapo.paper.calibration.targets import REQUIREMENTS, TARGETS, Target
from rapo.paper.evaluation import evaluate_run
from rapo.paper.paper import TABLE1
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate

TRAIN_GRAPHS = (1024, 1025, 1026, 1027)
"""Others than the screening's, so that the trained round does not repeat its luck."""
SEEDS = (0, 1)
"""Of the optimiser, on every graph."""
TRAINED = ("GE", "DR", "PM-ST", "RAPO")
EPISODES = 40
_NUMBERS = ("RAG", "AUC_R", "SM_R", "ReplayReturn", "OddsRatio", "ASD", "R_c")

RETURNS = tuple(
    Target(f"{method}_ReplayRet", *(2 * (TABLE1[method]["ReplayRet"][0],)), 0.04)
    for method in ("DR", "PM-ST")
)
"""What only trained policies tell."""


def training(
    log: Log,
    settings: Sequence[Setting],
    steps: int,
    jobs: int | None,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Train and evaluate every method under every setting; means and score of each."""
    runs = product(settings, TRAIN_GRAPHS, SEEDS, TRAINED)
    calls = {
        _key(setting, method, graph, seed, steps): (_trained, setting, method, graph, seed, steps)
        for setting, graph, seed, method in runs
    }
    waiting = {key: call for key, call in calls.items() if key not in log.known}
    for key, found in as_they_end(waiting, jobs):
        log.add(key, **found)
        tell(f"trained {len(log.known)} runs")
    return [judged(log, setting, steps) for setting in settings]


def _key(setting: Setting, method: str, graph_seed: int, seed: int, steps: int) -> str:
    """Names a training run; one that pays nothing does not depend on the budget."""
    # what loaded graphs alone use is chosen apart
    values = {k: v for k, v in setting.to_dict().items() if not k.startswith("loaded_")}
    if not METHODS[method].costs:
        values["budget"] = None
    what = [values, method, graph_seed, seed, steps, asdict(PPOConfig())]
    return json.dumps(what, sort_keys=True)


def judged(log: Log, setting: Setting, steps: int) -> dict[str, Any]:
    """Means over graphs and optimiser seeds, and the score of one setting."""
    found: dict[str, dict[str, float]] = {}
    for method in TRAINED:
        keys = [_key(setting, method, g, s, steps) for g in TRAIN_GRAPHS for s in SEEDS]
        rows = [log.known[key]["found"] for key in keys]
        for name in rows[0]:
            frame = pd.DataFrame([row[name] for row in rows])
            found[name] = {str(k): float(v) for k, v in frame.mean().items()}
    base = found["GE"]
    for row in found.values():
        row["ReplayRet"] = row["ReplayReturn"] / base["ReplayReturn"]
        row["served"] /= base["served"] if row is not base else 1
        row["outside"] /= base["outside"] if row is not base else 1
    return {"setting": setting.to_dict(), "found": found, "score": trained_score(found)}


def trained_score(found: dict[str, dict[str, float]]) -> float:
    """The screening's score with trained policies in place of fixed ones."""
    rapo, best = found["RAPO"], max(found[name]["ReplayRet"] for name in ACTIONS)
    whole = {
        **rapo,
        "alive": rapo["late"] / found["GE"]["late"],
        **{f"off_{m}": found["off@rep"][m] for m in ("RAG", "AUC_R", "SM_R")},
        "slow_RAG": found["slow-decay"]["RAG"],
        "R_c_P0": found["PM-ST"]["R_c"],
        "R_c_kept": rapo["R_c"] / found["PM-ST"]["R_c"],
        "gain": rapo["ReplayRet"] / best - 1,
        **{f"{m}_ReplayRet": found[m]["ReplayRet"] for m in ("DR", "PM-ST")},
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
    found = {}
    with TemporaryDirectory() as folder:
        summary = train(config, Path(folder))
        also = ("off@rep", "slow-decay") if method == "RAPO" else ()
        for name in (method, *also):
            result = evaluate_run(folder, episodes=EPISODES, seed=0, method=name)
            found[name] = _numbers(result)
    if method == "RAPO":
        run = open_episodes(config)
        for action, name in enumerate(ACTIONS):
            env = run.evaluation()
            found[name] = _numbers(evaluate(env, ConstantPolicy(action), episodes=EPISODES, seed=0))
    return {"method": method, "found": found, "budgets": summary["budgets"]}


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
