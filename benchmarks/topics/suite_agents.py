"""Agents on every platform: our methods and a PPO of Stable-Baselines3, trained, then in the suite.

Each is trained on platform seed 1000, which the suite does not score, and leaves its run and its
scorecard in `runs/suite_agents`. Rows are kept in `results/platforms/agents.csv` as they come; what
has a row is not done again, and a run that was cut goes on.

python -m benchmarks suite_agents                            # all
python -m benchmarks.topics.suite_agents warehouse RAPO      # one, so that others can come between
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo.agents import RunConfig
from rapo.agents.train import train
from rapo.platforms.entry import Entry
from rapo.suite.domains import DOMAINS
from rapo.suite.measure import CONSTANT, OFF, RAPO
from rapo.suite.run import run_suite
from rapo.suite.scorecard import Card
from rapo.suite.sizes import Size

TITLE = "Trained agents in the suite"
FOLDER = Path("runs/suite_agents")
KEPT = Path(__file__).resolve().parents[2] / "results" / "platforms" / "agents.csv"
STEPS = 50_000
SIZE = Size("agents", (0, 1, 2), 4, (500, 200, 500))
"""Between smoke and quick: twenty agents are scored."""
PLATFORM = 1000
METHODS = ("GE", "DR", "PM-ST", "RAPO")
SB3 = "PPO of SB3"
AGENTS = (*METHODS, SB3)
SHOWN = ("SM_vs_P0", "SM_R", "ReturnKept", "ASD")
NUMBERS = ("ReturnOfBest", "MassOfBest", *SHOWN)
PLATFORMS = tuple(name for name in DOMAINS if name != "cascade")
"""The agents of the cascade are in `results/paper`."""


def measure(effort: Effort) -> list[Row]:
    """Every agent on every platform."""
    rows = []
    for domain in PLATFORMS:
        for agent in AGENTS:
            effort.progress(f"{domain}: {agent}")
            found, case = kept_row(domain, agent, KEPT), f"{domain}, {agent}"
            rows += [Row(name, float(found[name]), case=case) for name in NUMBERS]
            missed = str(found["missed"]).split()
            rows.append(Row("demands missed", len(missed), case=case, note=", ".join(missed)))
    return rows


def kept_row(domain: str, agent: str, kept: Path) -> dict[str, Any]:
    """The row of an agent, from the table, or made and added to it."""
    table = pd.read_csv(kept, dtype={"missed": str}).fillna({"missed": ""})
    mine = table[(table["domain"] == domain) & (table["agent"] == agent)]
    if len(mine):
        return dict(mine.iloc[0].to_dict())
    card = score(DOMAINS[domain], agent, FOLDER, STEPS, SIZE, jobs=1)
    row = told(card, agent, STEPS)
    table = pd.concat([table, pd.DataFrame([row]).round(4)], ignore_index=True)
    order = [(d, a) for d in PLATFORMS for a in AGENTS]
    place = [order.index(pair) for pair in zip(table["domain"], table["agent"], strict=True)]
    table.iloc[np.argsort(place)].to_csv(kept, index=False)
    return row


def score(
    domain: Entry,
    agent: str,
    folder: Path,
    steps: int,
    preset: str | Size,
    *,
    jobs: int | None,
    stand_in: bool = False,
) -> Card:
    """Train an agent on a domain and put it through the suite."""
    place = folder / f"{domain.name}-{agent.replace(' ', '-')}"
    kwargs = {domain.seed: PLATFORM, **domain.data(stand_in)}
    if agent == SB3:
        policy = train_sb3(domain, kwargs, place, steps)
    else:
        policy = train_ours(domain, agent, kwargs, place, steps)
    (card,) = run_suite(
        domain.name, preset, place / "suite", policy=str(policy), jobs=jobs, stand_in=stand_in
    )
    return card


def told(card: Card, agent: str, steps: int) -> dict[str, Any]:
    """A row: what the agent earns beside the best constant, and what RAPO's kernel does to it.

    `ReturnOfBest` and `MassOfBest` put its return and sensitive mass in Replay over those of the
    constant action with the most return; both under `P0`, with the same draws.
    """
    of = card.rows[card.rows["kernel"] != CONSTANT].set_index("kernel")
    constants = card.rows[card.rows["kernel"] == CONSTANT]
    best = constants.loc[constants["return"].idxmax()]
    row: dict[str, Any] = {
        "domain": card.domain.name, "agent": agent, "steps": steps, "platforms": card.seeds,
        "episodes": card.episodes,
        "ReturnOfBest": of.loc[OFF, "return"] / best["return"],
        "MassOfBest": of.loc[OFF, "sensitive_mass"] / best["sensitive_mass"],
    }  # fmt: skip
    for name in SHOWN:
        for end in ("", "_low", "_high"):
            row[f"{name}{end}"] = of.loc[RAPO, f"{name}{end}"]
    row["missed"] = " ".join(d.name for d in card.demands if not d.holds)
    return row


def train_ours(
    domain: Entry, agent: str, kwargs: dict[str, object], place: Path, steps: int
) -> Path:
    """A method of the paper, with the numbers of the package."""
    config = RunConfig(method=agent, env=domain.env, env_kwargs=kwargs, steps=steps)
    train(config, place, resume=True)
    return place


def train_sb3(domain: Entry, kwargs: dict[str, object], place: Path, steps: int) -> Path:
    """SB3's PPO with its own numbers, on the deformed kernel, seeing `x`."""
    from stable_baselines3 import PPO

    path = place / "agent.zip"
    place.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        env = gymnasium.make(domain.env, **kwargs)
        PPO("MlpPolicy", env, seed=0, device="cpu").learn(steps).save(path)
    return path


def main(words: list[str]) -> None:
    """One agent on one platform."""
    if len(words) != 2 or words[0] not in PLATFORMS or words[1] not in AGENTS:
        sys.exit(f"give a platform of {PLATFORMS} and an agent of {AGENTS}, got {words}")
    print(kept_row(*words, KEPT))


if __name__ == "__main__":
    main(sys.argv[1:])
