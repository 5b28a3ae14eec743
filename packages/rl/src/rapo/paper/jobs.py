"""The jobs of the studies: one policy with all evaluations that are wanted of it.

A job writes a folder of its own, `jobs/KEY`. Its key says all that the policy depends on. `run` in
that folder holds the training. Beside it lie data frames, from which all tables are made:
`episodes`, `curves`, `training`, `evaluations` and, of a tuned shield, `tuning` (see `frames`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.agents.methods import METHODS, method_named
from rapo.agents.resolve import EpisodeRun, open_episodes
from rapo.agents.run_config import RunConfig
from rapo.agents.saved_run import WEIGHTS, open_saved
from rapo.agents.train import train
from rapo.cascade.engine import Cascade
from rapo.cascade.greedy_policy import GreedyPolicy
from rapo.cascade.setting import ACTIONS
from rapo.jobs.job import Job, digest
from rapo.jobs.lock import locked
from rapo.jobs.tables import JOBS, job_table, write_table
from rapo.paper.evaluation import shielded
from rapo.paper.frames import curves_of, episodes_of, shield_of, training_of, tuning_of
from rapo.paper.noisy_harm import NoisyReportsEnv
from rapo.paper.shields import make_shield
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError

GREEDY = "greedy"
STEPS_A_SECOND = {"mlp": 13_000.0, "gru": 7_400.0}
"""Training steps that one thread on a core of its own does in a second, by network."""
EVALUATION = 1.2
"""Seconds of 20 episodes."""
SHIELDED = 35.0
"""Seconds of 20 episodes behind a shield, which simulates thousands of transitions a step."""
TUNING = 110.0
"""Seconds in which the threshold of a shield is found."""
TUNING_EPISODES = 20
"""Held-out episodes of each trial of a threshold."""


@dataclass(frozen=True)
class Policy:
    """A policy that is trained, a shield that is tuned (Shield-UM), or one that is simply there."""

    config: RunConfig
    """What is trained; of an untrained policy, the graph, setting, regions and field constants."""
    untrained: str = ""
    """The action that is always taken, or `greedy`; empty for a policy that is trained."""

    @property
    def key(self) -> str:
        """Name of the policy: all that the policy depends on has a part in the name."""
        return _key(self)

    @property
    def tuned(self) -> bool:
        """Whether the policy is a shield around GE, tuned to the return of RAPO."""
        return not self.untrained and METHODS[self.config.method].shield == "matched"

    @property
    def needs(self) -> tuple[Policy, ...]:
        """Policies that a tuned shield is made of: GE, and RAPO."""
        if not self.tuned:
            return ()
        return tuple(Policy(replace(self.config, method=method)) for method in ("GE", "RAPO"))

    def folder(self, root: Path) -> Path:
        """Where the training is, below the folder of the results."""
        return root / JOBS / self.key / "run"

    def weights(self, root: Path) -> Path:
        """Where the weights of the trained policy are."""
        return self.folder(root) / WEIGHTS

    def ready(self, root: Path) -> bool:
        """Whether nothing has to be trained or tuned any more."""
        if self.untrained:
            return True
        last = self.weights(root) if self.tuned else self.folder(root) / "summary.json"
        return last.exists()

    def make(self, root: Path) -> None:
        """Train or tune the policy; a training that was cut goes on from where it was saved."""
        if self.tuned:
            ge, rapo = (policy.folder(root) for policy in self.needs)
            make_shield(ge, self.folder(root), match=rapo, episodes=TUNING_EPISODES)
        elif not self.untrained:
            train(self.config, self.folder(root), resume=True)

    def load(self, root: Path) -> tuple[Any, EpisodeRun]:
        """The policy, and the run that makes its environments."""
        if self.untrained == GREEDY:
            return GreedyPolicy(), open_episodes(self.config)
        if self.untrained:
            return ConstantPolicy(ACTIONS.index(self.untrained)), open_episodes(self.config)
        saved, run = open_saved(self.folder(root))
        return saved.policy(), run

    @property
    def seconds(self) -> float:
        """Roughly how long one thread needs to make the policy."""
        if self.untrained:
            return 0.0
        if self.tuned:
            return TUNING
        config = self.config
        return config.updates * config.ppo.rollout / STEPS_A_SECOND[config.trained.network]


@lru_cache(maxsize=4096)
def _key(policy: Policy) -> str:
    config, values = policy.config, policy.config.to_dict()
    place = f"n{config.nodes}-g{config.graph_seed}"
    if policy.untrained:  # a training has no part in the name
        return f"{policy.untrained}-{place}-{digest(values['env_kwargs'])}"
    return f"{config.method}-{place}-s{config.seed}-{digest(values)}"


@dataclass(frozen=True)
class Evaluation:
    """RSD of a policy as a method, perhaps with changed fields."""

    policy: Policy
    method: str
    """As what the policy is evaluated: its own method, or one that evaluates its policy."""
    episodes: int = 20
    params: tuple[tuple[str, float], ...] = ()
    """Changed constants of the fields."""
    options: tuple[tuple[str, str], ...] = ()
    """Changed options of the environment, such as deformation. `misattribute` is the share of the
    sensitive nodes whose harm is credited to a wrong region, `lost` and `spread` are those of
    `NoisyReportsEnv`."""
    threshold: float | None = None
    """Threshold of a shield instead of its own."""
    label: str = ""
    """What tables call the evaluation; default the method."""

    @property
    def name(self) -> str:
        """What tables call the evaluation."""
        return self.label or self.method

    @cached_property
    def key(self) -> str:
        """Everything that the result depends on beside the policy, as one line."""
        changes = [*self.params, *self.options]
        if self.threshold is not None:
            changes.append(("threshold", self.threshold))
        parts = [f"{name}={value}" for name, value in sorted(changes)]
        return " ".join([self.method, f"episodes={self.episodes}", *parts])

    @property
    def seconds(self) -> float:
        """Roughly how long one thread needs."""
        each = EVALUATION if METHODS[self.method].shield is None else SHIELDED
        return each * self.episodes / 20

    def measure(self, policy: Any, run: EpisodeRun) -> dict[str, pd.DataFrame]:
        """Play the episodes; return the rows of `episodes`, `curves` and `evaluations`.

        Args:
            policy: that was loaded.
            run: that makes its environments.
        """
        start = perf_counter()
        row = method_named(self.method)
        if not self.policy.untrained:
            policy = shielded(policy, row, run, self.threshold)
        elif row.shield is not None or self.threshold is not None:
            raise UserError(f"no shield guards an untrained policy, got {self.key}")
        result = evaluate(self._environment(run), policy, self.episodes, 0)
        frames = {"episodes": episodes_of(result), "curves": curves_of(result)}
        seconds = round(perf_counter() - start, 2)
        about = pd.DataFrame([{"seconds": seconds, **shield_of(policy)}])
        return {**frames, "evaluations": about}

    def _environment(self, run: EpisodeRun) -> Any:
        env: Any = run.evaluation(self.method)
        changes = dict[str, Any](self.options)
        if self.params:
            changes["params"] = replace(env.engine.params, **dict(self.params))
        if "misattribute" in changes:
            share = float(changes.pop("misattribute"))
            changes["harm_region_of"] = misattributed(env.engine, share, run.config.graph_seed)
        noise = {name: float(changes.pop(name)) for name in ("lost", "spread") if name in changes}
        if changes:
            env = env.like(1, **changes)
        return NoisyReportsEnv(1, **noise, **env.options) if noise else env


@dataclass(frozen=True)
class PolicyJob:
    """A policy and the evaluations that are wanted of it; without any, the policy alone."""

    policy: Policy
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def key(self) -> str:
        """Name of the policy, and of the job's folder."""
        return self.policy.key

    @property
    def needs(self) -> Sequence[Job]:
        """Jobs that make the two policies of a tuned shield."""
        return tuple(PolicyJob(policy) for policy in self.policy.needs)

    @property
    def seconds(self) -> float:
        """Roughly how long one thread will take."""
        return self.policy.seconds + sum(each.seconds for each in self.evaluations)

    def folder(self, root: Path) -> Path:
        """Where the frames are."""
        return root / JOBS / self.key

    def missing(self, root: Path) -> list[Evaluation]:
        """Evaluations whose results are not in the frames."""
        about = job_table(root, self.key, "evaluations")
        there = set() if about is None else set(about["evaluation"])
        return [each for each in self.evaluations if each.key not in there]

    def done(self, root: Path) -> bool:
        """Whether all evaluations are in the frames; a policy that they do not need may be gone."""
        return not self.missing(root) if self.evaluations else self.policy.ready(root)

    def run(self, root: Path) -> None:
        """Make the policy and the evaluations that are missing, each in the frames at once."""
        folder = self.folder(root)
        with locked(folder, f"the job {self.key}"):
            if not self.policy.ready(root):
                self.policy.make(root)
            run = self.policy.folder(root)
            for name, frame in (("training", training_of(run)), ("tuning", tuning_of(run))):
                if frame is not None and job_table(root, self.key, name) is None:
                    write_table(folder / f"{name}.parquet", frame)
            for evaluation in self.missing(root):
                policy, opened = evaluation.policy.load(root)
                append(root, evaluation, evaluation.measure(policy, opened))


def append(root: Path, evaluation: Evaluation, frames: Mapping[str, pd.DataFrame]) -> None:
    """Add the rows of an evaluation to the frames of its job.

    Args:
        root: folder of the results.
        evaluation: whose rows they are.
        frames: the rows by frame; the last frame says that all others are complete.
    """
    job = evaluation.policy.key
    for name, frame in frames.items():
        frame.insert(0, "evaluation", evaluation.key)
        earlier = job_table(root, job, name)
        if earlier is not None:
            others = earlier[earlier["evaluation"] != evaluation.key]
            frame = pd.concat([others, frame], ignore_index=True)
        write_table(root / JOBS / job / f"{name}.parquet", frame)


def jobs_of(wanted: Iterable[Evaluation | Job]) -> list[Job]:
    """Jobs of all evaluations that are wanted, one for each policy, in the order of the plan."""
    policies: dict[str, dict[str, Evaluation]] = {}
    jobs: dict[str, Job] = {}
    for each in wanted:
        if not isinstance(each, Evaluation):
            jobs[each.key] = each
            continue
        same = policies.setdefault(each.policy.key, {})
        same.setdefault(each.key, each)
        jobs[each.policy.key] = PolicyJob(each.policy)
    for key, same in policies.items():
        policy = next(iter(same.values())).policy
        jobs[key] = PolicyJob(policy, tuple(same.values()))
    return list(jobs.values())


def misattributed(engine: Cascade, share: float, seed: int) -> npt.NDArray[np.int32]:
    """Region that each node's harm is credited to, (n,), wrong for a share of the sensitive nodes.

    The nodes of a smaller share are among those of a larger one and err alike, so shares compare.

    Args:
        engine: whose regions and graph are used.
        share: of the sensitive nodes, in [0, 1], rounded to whole nodes.
        seed: of the choice.
    """
    if not 0 <= share <= 1:
        raise UserError(f"the misattributed share must be in [0, 1], got {share}")
    regions = engine.harm_regions
    if len(regions) < 2:
        raise UserError(f"a wrong region needs two that hold harm, got {regions.tolist()}")
    rng = np.random.default_rng([seed, 1])
    nodes = rng.permutation(np.flatnonzero(engine.graph.sensitive))
    own = np.searchsorted(regions, engine.regions[nodes])
    wrong = regions[(own + rng.integers(1, len(regions), len(nodes))) % len(regions)]
    count = round(share * len(nodes))
    harm_region_of = engine.regions.astype(np.int32)
    harm_region_of[nodes[:count]] = wrong[:count]
    return harm_region_of
