"""How much of the greedy policy's gain a plain PPO learns under the best settings.

The policy sees x alone and pays no costs, under the deformed kernel. Where it earns no more than a
constant action, no method can learn anything from x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from rapo.agents.config import PPOConfig
from rapo.agents.resolve import open_episodes
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.cascade.greedy_policy import GreedyPolicy
from rapo.cascade.setting import ACTIONS, Setting
from rapo.jobs.run import OnProgress, as_they_end
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate
from rapo_core.files import written_whole

GRAPHS = (2000, 2001, 2002, 2003)
"""Seeds of graphs on which nothing else was looked at."""
SEEDS = (0, 1)
"""Seeds of the optimiser, on every graph."""
EPISODES = 40
LEARNT = 0.25
"""Least share of the greedy policy's gain that a setting must let PPO learn."""
TABLE = "trained.csv"


def train_best(
    folder: Path,
    settings: Mapping[str, Setting],
    steps: int,
    *,
    slots: int | None,
    on_progress: OnProgress,
    graphs: Sequence[int] = GRAPHS,
    ppo: PPOConfig | None = None,
) -> pd.DataFrame:
    """Train PPO under every setting; a row for each setting, graph and seed.

    Rows are added to `trained.csv` as runs end, and runs whose rows are there are not repeated.

    Args:
        folder: where the table is.
        settings: by their names in the table.
        steps: of every run.
        slots: processes; None for one per core.
        on_progress: called as runs end.
        graphs: seeds of the graphs.
        ppo: numbers of the optimiser; default `PPOConfig()`.

    Returns:
        Columns setting, graph, seed, steps, learnt (gain of the policy over the best constant) and
        greedy (the greedy policy's gain).
    """
    path, names = folder / TABLE, ["setting", "graph", "seed", "steps"]
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=[*names, "learnt"])
    done = set(rows[names].itertuples(index=False, name=None))
    wanted = [(name, g, s, steps) for name, g, s in product(settings, graphs, SEEDS)]
    ppo = PPOConfig() if ppo is None else ppo
    calls = {key: (gains, settings[key[0]], *key[1:], ppo) for key in wanted if key not in done}
    ended = len(wanted) - len(calls)
    for key, numbers in as_they_end(calls, slots):
        row = dict(zip(names, key, strict=True)) | numbers
        rows = pd.concat([rows, pd.DataFrame([row])], ignore_index=True)
        with written_whole(path) as part:
            rows.to_csv(part, index=False)
        ended += 1
        on_progress(ended, len(wanted))
    return rows


def gains(
    setting: Setting, graph_seed: int, seed: int, steps: int, ppo: PPOConfig
) -> dict[str, float]:
    """Gains in Replay's return over the graph's best constant, under the deformed kernel."""
    config = graph_run(
        "RAPO",
        graph_seed=graph_seed,
        seed=seed,
        steps=steps,
        setting=setting,
        budget=1e6,  # no dual ever rises
        ppo=ppo,
    )
    config = replace(config, env_kwargs={**config.env_kwargs, "observe": "x"})
    run = open_episodes(config)

    def replay_return(policy: Any) -> float:
        result = evaluate(run.evaluation(), policy, episodes=EPISODES, seed=0)
        return float(result.frame["ReplayReturn"].mean())

    best = max(replay_return(ConstantPolicy(action)) for action in range(len(ACTIONS)))
    with TemporaryDirectory() as folder:
        train(config, Path(folder))
        learnt = replay_return(load_agent(folder)[0])
    return {"learnt": learnt / best - 1, "greedy": replay_return(GreedyPolicy()) / best - 1}


def learnt_share(rows: pd.DataFrame) -> pd.Series:
    """Share of the greedy gain that PPO learnt, by setting; means over graphs and seeds."""
    means = rows.groupby("setting", sort=False)[["learnt", "greedy"]].mean()
    return means["learnt"] / means["greedy"]
