"""Both constrained examples with and without their budgets, over several seeds: table and figure.

    python examples/constrained_study.py results/constrained      # a quarter of an hour on one core

Runs are kept in the folder: the same command goes on with what is there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from rapo.agents import RunConfig, load_agent
from rapo.agents.env_agent import play
from rapo.agents.train import train

SEEDS = range(5)


@dataclass(frozen=True)
class Example:
    """An environment, its cost and budget, and how many episodes tell a policy's means."""

    name: str
    env: str
    cost: str
    budget: float
    steps: int
    episodes: int

    def config(self, method: str, seed: int) -> RunConfig:
        """GE without the cost, SS with its budget."""
        paid: dict[str, Any] = {"cost": self.cost, "budget": self.budget} if method == "SS" else {}
        return RunConfig(method=method, env=self.env, seed=seed, steps=self.steps, **paid)


EXAMPLES = (
    Example(
        "CartPole, left of a line", "CartPole-v1", "cartpole_left_of_line:cost", 25.0, 60_000, 100
    ),
    Example("Blackjack, few busts", "Blackjack-v1", "blackjack_few_busts:cost", 0.02, 40_000, 2000),
)


def study(out: Path) -> pd.DataFrame:
    """A row per example, method and seed: means of the trained, stochastic policy."""
    rows = []
    for example in EXAMPLES:
        for seed in SEEDS:
            for method in ("GE", "SS"):
                run = out / "runs" / f"{example.env}-{method}-s{seed}"
                config = example.config(method, seed)
                summary = train(config, run, resume=True)
                agent, _ = load_agent(run)
                found = play(agent, config, cost=example.cost, episodes=example.episodes)
                dual = summary["budgets"]["cost"]["dual"] if method == "SS" else float("nan")
                values = [*found.mean(axis=0), dual]
                rows.append((example.name, method, seed, example.budget, *values))
                print(*rows[-1], flush=True)
    columns = ["example", "method", "seed", "budget", "return", "cost", "length", "dual"]
    return pd.DataFrame(rows, columns=columns)


def draw(out: Path, path: Path) -> None:
    """Cost of an episode and the dual during training; a line per seed."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 5.2), sharex="row", constrained_layout=True)
    for row, example in zip(axes, EXAMPLES, strict=True):
        for method, colour in (("GE", "tab:grey"), ("SS", "tab:blue")):
            for seed in SEEDS:
                run = out / "runs" / f"{example.env}-{method}-s{seed}"
                told = pd.read_csv(run / "progress.csv")
                thousands = told["steps"] / 1000
                label = {"GE": "without budget", "SS": "with budget"}[method] if not seed else None
                style = {"color": colour, "alpha": 0.7, "lw": 1}
                row[0].plot(thousands, told["return"], label=label, **style)
                if method == "SS":
                    row[1].plot(thousands, told["cost_cost"], **style)
                    row[2].plot(thousands, told["dual_cost"], **style)
        row[1].axhline(example.budget, color="tab:red", lw=1.5, label="budget")
        row[0].set_ylabel(example.name)
        for ax, title in zip(row, ("return of an episode", "cost of an episode", "dual"),
                             strict=True):  # fmt: skip
            ax.set_title(title, fontsize=10)
        row[1].set_ylim(0, 8 * example.budget)
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].legend(fontsize=8)
    for ax in axes[1]:
        ax.set_xlabel("thousand steps")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Study, table, figure."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "constrained")
    out.mkdir(parents=True, exist_ok=True)
    frame = study(out)
    frame.round(4).to_csv(out / "runs.csv", index=False)
    draw(out, out / "constrained.png")
    numbers = frame.groupby(["example", "method"])[["return", "cost", "dual"]]
    print(numbers.agg(["mean", "min", "max"]).round(3).to_string())


if __name__ == "__main__":
    main()
