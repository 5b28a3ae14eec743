"""Agents on every platform: our methods and a PPO of Stable-Baselines3, trained, then in the suite.

Each is trained on platform seed 1000, which the suite does not score, and leaves its run and its
scorecard in `runs/suite_agents`; what is there is not done again. Rows are kept in
`results/platforms/agents.csv` as they come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pandas as pd

from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo.agents import PlatformConfig
from rapo.agents.train import train
from rapo.experiments.suite.command import run_suite
from rapo.experiments.suite.domains import DOMAINS, Domain
from rapo.experiments.suite.measure import CONSTANT, OFF, RAPO
from rapo.experiments.suite.scorecard import Card
from rapo.experiments.suite.sizes import Size

TITLE = "Trained agents in the suite"
FOLDER = Path("runs/suite_agents")
KEPT = Path(__file__).resolve().parents[2] / "results" / "platforms" / "agents.csv"
STEPS = 50_000
SIZE = Size("agents", (0, 1, 2), 4, (500, 200, 500))
"""Between smoke and quick: twenty agents are scored."""
PLATFORM = 1000
METHODS = ("GE", "DR", "PM-ST", "RAPO")
SB3 = "PPO of SB3"
SHOWN = ("SM_vs_P0", "SM_R", "ReturnKept", "ASD")


def measure(effort: Effort) -> list[Row]:
    """Every agent on every platform; those of the cascade are in `results/paper`."""
    rows, found = [], []
    for domain in [d for d in DOMAINS.values() if d.name != "cascade"]:
        for agent in (*METHODS, SB3):
            effort.progress(f"{domain.name}: {agent}")
            card = score(domain, agent, FOLDER, STEPS, SIZE, jobs=None)
            found.append(told(card, agent, STEPS))
            pd.DataFrame(found).round(4).to_csv(KEPT, index=False)
            case = f"{domain.name}, {agent}"
            rows += [Row(name, float(found[-1][name]), case=case) for name in SHOWN]
            held = sum(bar.holds for bar in card.bars)
            rows.append(Row("demands that hold", held, f"of {len(card.bars)}", case))
    return rows


def score(
    domain: Domain,
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
    row["missed"] = " ".join(bar.name for bar in card.bars if not bar.holds)
    return row


def train_ours(
    domain: Domain, agent: str, kwargs: dict[str, object], place: Path, steps: int
) -> Path:
    """A method of the paper, with the numbers of the package."""
    config = PlatformConfig(method=agent, env=domain.env, env_kwargs=kwargs, steps=steps)
    train(config, place, resume=True)
    return place / "checkpoint.pt"


def train_sb3(domain: Domain, kwargs: dict[str, object], place: Path, steps: int) -> Path:
    """SB3's PPO with its own numbers, on the deformed kernel, seeing `x`."""
    from stable_baselines3 import PPO

    path = place / "agent.zip"
    place.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        env = gymnasium.make(domain.env, **kwargs)
        PPO("MlpPolicy", env, seed=0, device="cpu").learn(steps).save(path)
    return path
