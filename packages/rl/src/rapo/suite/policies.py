"""The policy that the suite scores: every process loads it from its name."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapo.envs.episodes import EpisodesVectorEnv
from rapo.envs.field_summary import SUMMARY
from rapo.graphs.fit import IdleWarning
from rapo.platforms.entry import Entry
from rapo.policies import ConstantPolicy, find_policy, is_run
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError

CONSTANT_ACTION = "constant"
"""Name of the default: the constant action of each domain's entry."""


@dataclass(frozen=True)
class ScoredPolicy:
    """A policy by its name, and a fingerprint of what the name stands for now."""

    name: str = CONSTANT_ACTION
    """Path of a run's folder or of a .zip, or `module:name`."""
    fingerprint: str = ""
    """Digest of the weights or of the module's source: it tells policies of one name apart."""
    folder: str = ""
    """Folder in which modules are looked for."""

    @classmethod
    def named(cls, name: str | None) -> ScoredPolicy:
        """Find the policy of a name; without one, the domains' constant actions.

        Raises:
            UserError: there is no such file or module.
        """
        if not name:
            return cls()
        path = Path(name).resolve()
        if is_run(name):
            from rapo.agents.saved_run import WEIGHTS, load_run

            load_run(name)
            return cls(str(path), _hash((path / WEIGHTS).read_bytes()))
        if name.endswith(".zip"):
            if not path.is_file():
                raise UserError(f"there is no policy at {name}")
            return cls(str(path), _hash(path.read_bytes()))
        if ":" not in name:
            raise UserError(
                "a policy is the folder of a run, a .zip of Stable-Baselines3 or "
                f"package.module:name, got {name!r}"
            )
        return cls(name, _source(name, find_policy(name)), os.getcwd())

    @property
    def title(self) -> str:
        """The policy's name in tables."""
        return self.name if ":" in self.name else Path(self.name).name

    def load(self, domain: Entry, env: EpisodesVectorEnv) -> tuple[Any, str]:
        """Load the policy for a domain; the policy, and the `observe` it was made for.

        Args:
            domain: which one.
            env: its environment, observing `x`.

        Raises:
            UserError: the policy cannot be loaded, or was made for another environment.
        """
        if self.name == CONSTANT_ACTION:
            space: Any = env.single_action_space
            return ConstantPolicy(domain.action, int(space.n)), "x"
        if self.folder and self.folder not in sys.path:  # a process of Ray works elsewhere
            sys.path.insert(0, self.folder)
        if is_run(self.name):
            return _trained(self.name, domain)
        policy = find_policy(self.name)
        if self.name.endswith(".zip"):
            return policy, _observed(policy, env)
        return policy, str(getattr(policy, "observe", "x"))

    def check(self, domain: Entry, env: EpisodesVectorEnv) -> str:
        """Run the policy for three steps of a platform; the `observe` it was made for.

        Args:
            domain: which one.
            env: its environment, observing `x`.

        Raises:
            UserError: the policy does not act in the domain; the message says why.
        """
        try:
            policy, observe = self.load(domain, env)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IdleWarning)  # nothing scars in three steps
                seen = env if observe == "x" else env.like(1, observe=observe)
                evaluate(seen, policy, 1, horizons=(1, 1, 1))
        except ValueError as error:
            raise UserError(f"{self.title} cannot be scored on {domain.name}: {error}") from error
        return observe


def _trained(folder: str, domain: Entry) -> tuple[Any, str]:
    """The agent of a run, which tells its action probabilities: so ASD is defined."""
    from rapo.agents.env_agent import EnvAgent
    from rapo.agents.resolve import open_episodes
    from rapo.agents.saved_run import load_agent

    policy, config = load_agent(folder)
    if config.env.rpartition(":")[2] != domain.env:
        raise UserError(f"it was trained on {config.env}, and {domain.name} is {domain.env}")
    if isinstance(policy, EnvAgent):
        return policy.agent, str(config.env_kwargs.get("observe", "x"))
    observe = open_episodes(config).observe
    if observe == "xGH":
        raise UserError(
            f"{config.method} saw the fields of its own graph, and the suite runs on several; rapo "
            "rsd scores it there"
        )
    return policy, observe


def _observed(model: Any, env: EpisodesVectorEnv) -> str:
    """The `observe` of a saved model, by how many numbers it takes: `x`, or `xsummary`."""
    wanted: Any = getattr(model, "observation_space", env.single_observation_space)
    size = (env.single_observation_space.shape or (0,))[0]
    sizes = {"x": size, "xsummary": size + SUMMARY}
    for observe, count in sizes.items():
        if wanted.shape == (count,):
            return observe
    raise UserError(f"it observes {wanted.shape} numbers, the environment shows {sizes}")


def _source(name: str, policy: Any) -> str:
    """Digest of the source of a policy; empty where there is no source file."""
    module = inspect.getmodule(policy) or sys.modules.get(name.partition(":")[0])
    file = getattr(module, "__file__", None)
    return _hash(Path(file).read_bytes()) if file and Path(file).exists() else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
