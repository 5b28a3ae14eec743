"""The scorecard of a domain: pooled ratios of every kernel, with intervals, and the demands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.setting import REPLAY
from rapo.platforms.data import STAND_IN
from rapo.platforms.entry import Entry
from rapo.rsd.bootstrap import bootstrap_interval, ratio_bootstrap
from rapo.suite.demands import DEMANDS, Demand, demands_of
from rapo.suite.domains import DOMAINS
from rapo.suite.measure import CONSTANT, OFF, RATIOS, read_episodes
from rapo.suite.policies import CONSTANT_ACTION

AGAINST = {"SM_vs_P0": "sensitive_mass", "Reach_vs_P0": "reach", "ReturnKept": "return"}
"""Ratios of Replay to the Replay of the same policy under `P0`, and the sums they are made of."""
MEANS = ("OddsRatio", "ASD")
METRICS = (*RATIOS, *AGAINST, *MEANS)
LEVEL, RESAMPLES = 0.95, 4000

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Card:
    """The results of one domain."""

    domain: Entry
    policy: str
    data: str
    """Which data the platforms ran on."""
    seeds: int
    """How many platforms there are."""
    episodes: int
    """Episodes on each platform."""
    rows: pd.DataFrame
    """Of `domain_rows`."""
    demands: list[Demand]

    @property
    def title(self) -> str:
        """The domain, marked where its data are generated in place of real ones."""
        return f"{self.domain.name} ({STAND_IN})" if self.data == STAND_IN else self.domain.name

    def table(self) -> pd.DataFrame:
        """The rows of `suite.csv`: whose they are, the numbers, and which demands hold."""
        table = self.rows.copy()
        for name in DEMANDS:
            verdicts = {d.kernel: d.verdict for d in self.demands if d.name == name}
            table[f"bar_{name}"] = table["kernel"].map(verdicts).fillna("")
        columns: dict[str, Any] = {
            "domain": self.domain.name, "data": self.data, "policy": self.policy,
            "platforms": self.seeds, "episodes": self.episodes,
        }  # fmt: skip
        for position, (name, value) in enumerate(columns.items()):
            table.insert(position, name, value)
        return table


def card_of(name: str, manifest: Mapping[str, Any], root: Path) -> Card:
    """Make the card of a finished domain from the tables of its jobs."""
    plan, config = manifest["domains"][name], manifest["config"]
    domain, preset = DOMAINS[name], config["preset"]
    episodes = pd.concat([read_episodes(root, key) for key in plan["jobs"]], ignore_index=True)
    rows = domain_rows(episodes, preset["horizons"][REPLAY])
    policy = config["policy"]["name"]
    return Card(
        domain=domain,
        policy=f"constant {domain.action}" if policy == CONSTANT_ACTION else Path(policy).name,
        data=plan["data"],
        seeds=len(plan["jobs"]),
        episodes=preset["episodes"],
        rows=rows,
        demands=demands_of(domain, rows, sees_memory=plan["observe"] != "x"),
    )


def domain_rows(episodes: pd.DataFrame, steps: int) -> pd.DataFrame:
    """A row per kernel, then one per constant action; `METRICS` with `_low` and `_high`.

    `return` and `sensitive_mass` (of a step) are means over Replay, in the domain's own units.

    Args:
        episodes: of all jobs of a domain, see `read_episodes`.
        steps: of Replay.
    """
    nominal = episodes[episodes["kernel"] == OFF]
    rows = []
    for (kernel, action), run in episodes.groupby(["kernel", "action"], sort=False, dropna=False):
        by_platform = [part for _, part in run.groupby("seed")]
        row = {"kernel": kernel, "action": action, **pooled(run, nominal)}
        row["return"] = float(np.mean([part["return"].mean() for part in by_platform]))
        inside = np.mean([part["sensitive_mass"].mean() for part in by_platform])
        row["sensitive_mass"] = float(inside) / steps
        rows.append(row)
    return pd.DataFrame(rows).astype({"action": "Int64"})


def pooled(run: pd.DataFrame, nominal: pd.DataFrame) -> dict[str, float]:
    """Ratios of sums over platforms and means over them, with a bootstrap over platforms.

    Args:
        run: rows of one run on several platforms, with a column `seed`.
        nominal: rows of the same policy under `P0`.
    """
    numbers: dict[str, float] = {}
    pairs = {name: (_sums(run, part), _sums(nominal, part)) for name, part in AGAINST.items()}
    constant = (run["kernel"] == CONSTANT).all()
    if not constant:  # the Exposure of a constant action is not run
        parts = {
            name: (_sums(run, f"{name}_replay"), _sums(run, f"{name}_exposure")) for name in RATIOS
        }
        pairs = {**parts, **pairs}
    for name, (after, before) in pairs.items():
        ratio = ratio_bootstrap(after, before, LEVEL, RESAMPLES, rng=0)
        numbers |= {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    for name in () if constant else MEANS:
        means = run.groupby("seed")[name].mean().tolist()
        mean = bootstrap_interval(means, np.mean, LEVEL, RESAMPLES, rng=0)
        numbers |= {name: mean.estimate, f"{name}_low": mean.low, f"{name}_high": mean.high}
    return numbers


def _sums(run: pd.DataFrame, column: str) -> Float:
    """(platforms,) sums over the episodes."""
    return run.groupby("seed")[column].sum().to_numpy(np.float64)
