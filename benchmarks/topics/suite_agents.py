"""Agents on every domain: our methods and a PPO of Stable-Baselines3, trained, then in the suite.

Each is trained on platform seed 1000, which the suite does not score, and leaves its run and its
scorecard in `runs/suite_agents`; what is there is not done again.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium

from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo.agents import PlatformConfig
from rapo.agents.train import train
from rapo.experiments.suite.command import run_suite
from rapo.experiments.suite.domains import Domain, chosen_domains
from rapo.experiments.suite.measure import RAPO

TITLE = "Trained agents in the suite (preset quick)"
FOLDER = Path("runs/suite_agents")
STEPS = 100_000
PLATFORM = 1000
METHODS = ("GE", "DR", "PM-ST", "RAPO")
SB3 = "PPO of SB3"
SHOWN = ("SM_vs_P0", "SM_R", "ReturnKept", "ASD")


def measure(effort: Effort) -> list[Row]:
    rows = []
    for domain in chosen_domains("all"):
        for agent in (*METHODS, SB3):
            effort.progress(f"{domain.name}: {agent}")
            rows += score(domain, agent, FOLDER, STEPS, "quick", jobs=None)
    return rows


def score(
    domain: Domain,
    agent: str,
    folder: Path,
    steps: int,
    preset: str,
    *,
    jobs: int | None,
    stand_in: bool = False,
) -> list[Row]:
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
    found = card.rows[card.rows["kernel"] == RAPO].iloc[0]
    held = sum(bar.holds for bar in card.bars)
    case = f"{domain.name}, {agent}"
    return [
        *(Row(name, float(found[name]), case=case) for name in SHOWN),
        Row("demands that hold", held, f"of {len(card.bars)}", case),
    ]


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
