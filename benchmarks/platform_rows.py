"""Rows of numbers of a platform beside those of the suite: measured and pooled as the suite does.

For the choice of settings, on seeds from 1000 on, and for variants that the suite does not run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from rapo.platforms.data import REAL
from rapo.policies import ConstantPolicy
from rapo.rsd import evaluate
from rapo.scars import FullWarning
from rapo.suite.domains import DOMAINS
from rapo.suite.measure import RATIOS, actions_of, episode_rows
from rapo.suite.scorecard import pooled

FOLDER = Path(__file__).resolve().parent.parent / "results" / "platforms"
HORIZONS = (500, 200, 500)
EPISODES = 6
CHOOSING, SCORING = range(1000, 1004), range(10)
OFF: dict[str, Any] = {"deformation": "off"}
SHOWN = (*RATIOS, "SM_vs_P0", "ReturnKept", "OddsRatio")


class Wanted(NamedTuple):
    """A row: what it says of itself, and the options of the platform that it is of."""

    told: dict[str, Any]
    options: dict[str, Any]
    own_P0: bool = False
    """Whether it is compared with `P0` under its own setting, not under the frozen one."""

    @property
    def nominal(self) -> dict[str, Any]:
        """Options of what it is compared with."""
        setting = {"setting": self.options["setting"]} if self.own_P0 else {}
        return {**OFF, **setting}


def run(domain: str, seed: int, options: dict[str, Any]) -> pd.DataFrame:
    """Episodes of one platform, with the domain's constant action and coupled draws."""
    env = DOMAINS[domain].make(seed, REAL, **options)
    policy = ConstantPolicy(DOMAINS[domain].action, actions_of(env))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FullWarning)  # a narrow width fills the centres
        found = evaluate(env, policy, EPISODES, 1000 * seed, True, horizons=HORIZONS)
    rows = episode_rows(found, "")
    rows.insert(0, "seed", seed)
    return rows


def runs(domain: str, seed: int, every: Sequence[dict[str, Any]]) -> list[pd.DataFrame]:
    """`run` of all options on one platform, whose tables are made once."""
    return [run(domain, seed, options) for options in every]


def rows(domain: str, seeds: range, wanted: Sequence[Wanted]) -> pd.DataFrame:
    """A row of pooled ratios with 95% intervals over platforms for each that is wanted."""
    every: list[dict[str, Any]] = []
    for options in [o for w in wanted for o in (w.options, w.nominal)]:
        if options not in every:
            every.append(options)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        asked = [pool.submit(runs, domain, seed, every) for seed in seeds]
        results = zip(*(task.result() for task in asked), strict=True)
        of = [pd.concat(platforms) for platforms in results]
    found = []
    for told, options, nominal in ((w.told, w.options, w.nominal) for w in wanted):
        numbers = pooled(of[every.index(options)], of[every.index(nominal)])
        kept = {k: v for k, v in numbers.items() if k.startswith(SHOWN)}
        found.append({**told, "platforms": len(seeds), "episodes": EPISODES, **kept})
    return pd.DataFrame(found)


def main(doc: str, parts: dict[str, Callable[[], pd.DataFrame]], domain: str) -> None:
    """Make the table that the command line names, print it and keep it."""
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        sys.exit(doc)
    table = parts[sys.argv[1]]()
    FOLDER.mkdir(parents=True, exist_ok=True)
    table.round(4).to_csv(FOLDER / f"{domain}_{sys.argv[1]}.csv", index=False)
    print(table.round(3).to_string())
