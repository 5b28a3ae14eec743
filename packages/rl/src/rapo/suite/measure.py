"""The job of the suite: one platform under every kernel and every constant action."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.cascade.setting import REPLAY
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.graphs.fit import IdleWarning
from rapo.jobs.job import Job, digest
from rapo.names import import_named
from rapo.platforms.entry import Entry
from rapo.policies import ConstantPolicy
from rapo.rsd.pooled import totals
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo.suite.domains import DOMAINS
from rapo.suite.policies import ScoredPolicy
from rapo.suite.sizes import Size
from rapo_core.checks import UserError
from rapo_core.files import written_whole

OFF, RAPO, OFF_AT_REPLAY, TRACE = "off (P0)", "RAPO", "off@rep", "trace alone"
KERNELS = (OFF, RAPO, OFF_AT_REPLAY, TRACE)
"""Kernels that run in every domain; the domain's baselines come after them."""
CONSTANT = "constant"
"""Kernel of the rows of the frontier: a constant action under `P0`."""
RATIOS = ("RAG", "AUC_R", "SM_R")
SUMS = ("reach", "sensitive_mass", "return")
"""Sums over Replay that every run has."""


@dataclass(frozen=True)
class Measure:
    """One platform of a domain; leaves `episodes.csv` and `about.json` in a folder of its own."""

    domain: str
    seed: int
    """Of the platform."""
    size: Size
    policy: ScoredPolicy
    observe: str
    """What the policy observes."""
    data: str
    """`real` or `stand-in`, for a domain that has real data."""
    made_of: str
    """`made_of` of the domain: results of another setting are not gone on with."""
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """Name of the job: it changes with everything that the results depend on."""
        spec = [
            self.size.episodes, self.size.horizons, self.policy.name, self.policy.fingerprint,
            self.observe, self.data, self.made_of,
        ]  # fmt: skip
        return f"{self.domain}-{self.seed}-{digest(spec)}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """No other job."""
        return ()

    def done(self, root: Path) -> bool:
        """Whether the results are there."""
        return episodes_path(root, self.key).exists()

    def run(self, root: Path) -> None:
        """Run everything on the platform; the results are written at the end, or not at all."""
        domain = DOMAINS[self.domain]
        env = domain.make(self.seed, self.data)
        policy, observe = self.policy.load(domain, env)
        if observe != self.observe:
            raise UserError(f"{self.policy.title} changed while the suite ran; run it again")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdleWarning)  # a trace alone never scars
            runs = list(self._runs(domain, env, policy))
        table = pd.concat(runs, ignore_index=True)
        table.insert(0, "seed", self.seed)
        path = episodes_path(root, self.key)
        with written_whole(path.with_name("about.json")) as part:
            part.write_text(json.dumps(about(env), indent=2) + "\n", encoding="utf-8")
        with written_whole(path) as part:
            table.to_csv(part, index=False)

    def _runs(self, domain: Entry, env: EpisodesVectorEnv, policy: Any) -> Iterator[pd.DataFrame]:
        """The policy under the kernels and baselines, then constants: all with the same draws."""
        seen = env if self.observe == "x" else env.like(1, observe=self.observe)
        horizons, by_kernel = self.size.horizons, kernels(seen)
        for name, kernel in by_kernel.items():
            result = self._evaluate(kernel, policy, horizons, name == OFF_AT_REPLAY)
            yield episode_rows(result, name)
        for baseline in domain.baselines:
            base, acting = seen, policy
            if baseline.policy:
                base, acting = env, import_named(baseline.policy, "policy")()
            result = self._evaluate(base.like(1, **baseline.options), acting, horizons)
            yield episode_rows(result, baseline.name)
        nominal = by_kernel[OFF] if seen is env else env.like(1, deformation="off")
        for action in range(actions_of(env)):
            # P0 has no memory: Replay of a constant action does not depend on its Exposure.
            constant = ConstantPolicy(action, actions_of(env))
            result = self._evaluate(nominal, constant, (1, 1, horizons[REPLAY]))
            rows = episode_rows(result, CONSTANT, action)
            yield rows[["kernel", "action", "episode", *SUMS]]

    def _evaluate(
        self, env: EpisodesVectorEnv, policy: Any, horizons: tuple[int, int, int], off: bool = False
    ) -> RSDResult:
        first = 1000 * self.seed
        return evaluate(
            env, policy, self.size.episodes, first, True, horizons=horizons, off_at_replay=off
        )


def episodes_path(root: Path, key: str) -> Path:
    """Return where the table of a job is, or will be."""
    return root / "platforms" / key / "episodes.csv"


def read_episodes(root: Path, key: str) -> pd.DataFrame:
    """Read what a job wrote: a row for each run and episode.

    Raises:
        UserError: the table is missing or damaged.
    """
    path = episodes_path(root, key)
    try:
        table = pd.read_csv(path, dtype={"action": "Int64"})
        numbers = table[["seed", "action", "episode", *SUMS]].apply(pd.to_numeric)
        if len(numbers) == 0 or numbers[list(SUMS)].isna().to_numpy().any():
            raise ValueError("numbers are missing")
    except FileNotFoundError:
        raise UserError(f"{path} is missing; rapo suite run --out {root} makes it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it and run again") from error
    return table


def kernels(env: EpisodesVectorEnv) -> dict[str, EpisodesVectorEnv]:
    """The environment under every kernel; RSD itself switches RAPO off for off@rep."""
    engine: Any = env.engine
    trace = env.like(1, params=replace(engine.params, eta=0.0))
    return {OFF: env.like(1, deformation="off"), RAPO: env, OFF_AT_REPLAY: env, TRACE: trace}


def episode_rows(result: RSDResult, kernel: str, action: int | None = None) -> pd.DataFrame:
    """A row per episode: sums over Replay, both parts of the paper's ratios, OddsRatio and ASD.

    Args:
        result: of `evaluate`.
        kernel: under which the policy ran.
        action: the constant action; None for another policy.
    """
    columns: dict[str, Any] = {"kernel": kernel, "action": action}
    columns["episode"] = np.arange(len(result.frame))
    for name in ("reach", "sensitive_mass"):
        columns[name] = result.of_phase(name, REPLAY).sum(axis=1, dtype=np.float64)
    columns["return"] = result.frame["ReplayReturn"].to_numpy()
    for name in RATIOS:
        columns[f"{name}_replay"], columns[f"{name}_exposure"] = totals(result, name)
    for name in ("OddsRatio", "ASD"):
        columns[name] = result.frame[name].to_numpy()
    return pd.DataFrame(columns).astype({"action": "Int64"})


def actions_of(env: EpisodesVectorEnv) -> int:
    """How many actions an environment of the suite has."""
    space: Any = env.single_action_space
    return int(space.n)


def about(env: EpisodesVectorEnv) -> dict[str, Any]:
    """What the environment says of itself, as plain values."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(env.describe()), default=str))
    return plain


def made_of(domain: Entry, env: EpisodesVectorEnv) -> str:
    """Digest of what a domain's platforms are made of: their setting, data and baselines."""
    engine: Any = env.engine
    options = [[b.name, dict(b.options), b.policy] for b in domain.baselines]
    return digest([repr(getattr(engine, "setting", None)), about(env), options])
