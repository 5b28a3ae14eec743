"""The task of the suite: one platform of a domain under every kernel and every constant action."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from rapo.cascade.setting import REPLAY
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.graphs.idle import IdleWarning
from rapo.names import import_named
from rapo.paper.task import Task, Tell, digest
from rapo.policies import ConstantPolicy
from rapo.rsd.pooled import totals
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo.suite.domains import DOMAINS, Domain
from rapo.suite.piece import piece_path, write
from rapo.suite.policies import Given
from rapo.suite.sizes import Size
from rapo_core.checks import UserError
from rapo_core.version import VERSION

OFF, RAPO, OFF_AT_REPLAY, TRACE = "off (P0)", "RAPO", "off@rep", "trace alone"
KERNELS = (OFF, RAPO, OFF_AT_REPLAY, TRACE)
"""Of every domain; its baselines come after them."""
CONSTANT = "constant"
"""Kernel of the rows of the frontier: a constant action under `P0`."""
RATIOS = ("RAG", "AUC_R", "SM_R")
FORMAT = 1
"""Of a piece; another one is not gone on with."""


@dataclass(frozen=True)
class Measure:
    """Everything about one platform; leaves `pieces/<key>.parquet`."""

    domain: str
    seed: int
    """Of the platform."""
    size: Size
    policy: Given
    observe: str
    stand_in: bool
    made_of: str
    """Digest of the domain's setting: pieces of another one are not gone on with."""
    seconds: float = 0.0
    """What it will take, roughly."""

    @property
    def key(self) -> str:
        """Name of the piece: all that the result depends on, but for the seed's name."""
        spec = [
            FORMAT, self.domain, self.seed, self.size.episodes, self.size.horizons,
            self.policy.words, self.policy.fingerprint, self.observe, self.stand_in, self.made_of,
        ]  # fmt: skip
        return f"{self.domain}-{self.seed}-{digest(spec)}"

    @property
    def needs(self) -> tuple[Task, ...]:
        """Nothing has to be there."""
        return ()

    def piece(self, root: Path) -> Path:
        """Where the result is."""
        return piece_path(root, self.key)

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return self.piece(root).exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Run all rows of the platform; the piece is written at once or not at all."""
        start = perf_counter()
        domain = DOMAINS[self.domain]
        env = domain.make(self.seed, self.stand_in)
        policy, observe = self.policy.load(domain, env)
        if observe != self.observe:
            raise UserError(f"{self.policy.name} changed while the suite ran; run it again")
        actions = int(env.single_action_space.n)  # type: ignore[attr-defined]
        count, runs = len(KERNELS) + len(domain.baselines) + actions, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdleWarning)  # a trace alone never scars
            for run in self._runs(domain, env, policy, actions):
                runs.append(run)
                tell(len(runs) / count)
        content = {
            "format": FORMAT, "key": self.key, "version": VERSION, "domain": self.domain,
            "seed": self.seed, "steps": self.size.horizons[REPLAY], "about": about(env),
            "runs": runs,
            "seconds": round(perf_counter() - start, 2),
        }  # fmt: skip
        write(self.piece(root), content)

    def _runs(
        self, domain: Domain, env: EpisodesVectorEnv, policy: Any, actions: int
    ) -> Iterator[dict[str, Any]]:
        """Kernels with the policy, baselines, then constants: the same draws for all."""
        seen = env if self.observe == "x" else env.like(1, observe=self.observe)
        horizons, under = self.size.horizons, kernels(seen)
        for name, kernel in under.items():
            found = self._evaluate(kernel, policy, horizons, name == OFF_AT_REPLAY)
            yield {"kernel": name, **sums(found), **ratios(found)}
        for baseline in domain.baselines:
            place = env if baseline.policy else seen
            acting = import_named(baseline.policy, "policy")() if baseline.policy else policy
            found = self._evaluate(place.like(1, **baseline.options), acting, horizons, False)
            yield {"kernel": baseline.name, **sums(found), **ratios(found)}
        nominal = under[OFF] if seen is env else env.like(1, deformation="off")
        for action in range(actions):
            # Coupled, `P0` replays a constant action exactly: its Exposure need not be run.
            constant = ConstantPolicy(action, actions)
            found = self._evaluate(nominal, constant, (1, 1, horizons[REPLAY]), False)
            yield {"kernel": CONSTANT, "action": action, **sums(found)}

    def _evaluate(
        self, env: EpisodesVectorEnv, policy: Any, horizons: tuple[int, int, int], off: bool
    ) -> RSDResult:
        seed = 1000 * self.seed
        return evaluate(
            env, policy, self.size.episodes, seed, True, horizons=horizons, off_at_replay=off
        )


def kernels(env: EpisodesVectorEnv) -> dict[str, EpisodesVectorEnv]:
    """The environment under every kernel; off@rep is RAPO's, switched off by the diagnostic."""
    engine: Any = env.engine
    trace = env.like(1, params=replace(engine.params, eta=0.0))
    return {OFF: env.like(1, deformation="off"), RAPO: env, OFF_AT_REPLAY: env, TRACE: trace}


def sums(found: RSDResult) -> dict[str, list[float]]:
    """Reach, sensitive mass and return of Replay, by episode."""
    return {
        "reach": found.of_phase("reach", REPLAY).sum(axis=1, dtype=np.float64).tolist(),
        "sensitive_mass": found.of_phase("sensitive_mass", REPLAY)
        .sum(axis=1, dtype=np.float64)
        .tolist(),
        "return": found.frame["ReplayReturn"].tolist(),
    }


def ratios(found: RSDResult) -> dict[str, Any]:
    """What the paper's ratios are made of, and means, by episode; None where undefined."""
    out: dict[str, Any] = {}
    for name in RATIOS:
        after, before = totals(found, name)
        out[name] = {"replay": after.tolist(), "exposure": before.tolist()}
    for name in ("OddsRatio", "ASD"):
        out[name] = [None if v != v else v for v in found.frame[name].tolist()]
    return out


def about(env: EpisodesVectorEnv) -> dict[str, Any]:
    """What the platform says of itself, as plain values."""
    described: Mapping[str, Any] = env.describe()
    return dict(json.loads(json.dumps(dict(described), default=str)))


def made_of(domain: Domain, env: EpisodesVectorEnv) -> str:
    """Digest of all that a domain's platforms are made of, but for their seed."""
    engine: Any = env.engine
    options = [[b.name, dict(b.options), b.policy] for b in domain.baselines]
    return digest([repr(getattr(engine, "setting", None)), about(env), options])
