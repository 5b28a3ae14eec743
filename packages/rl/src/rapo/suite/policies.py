"""The policy that the suite scores, from its words: loaded anew in every process that needs it."""

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
from rapo.graphs.idle import IdleWarning
from rapo.policies import ConstantPolicy, find_policy
from rapo.rsd.runner import evaluate
from rapo.suite.domains import Domain
from rapo_core.checks import UserError

FILES = (".pt", ".zip")
"""Checkpoints of `rapo train`, and models of Stable-Baselines3."""


@dataclass(frozen=True)
class Given:
    """Words of `--policy`, and what stands behind them now."""

    words: str = ""
    """A file, or `module:name`; empty for the domain's default constant action."""
    fingerprint: str = ""
    """Of the file, or of the module's source: another policy of the same name is another one."""
    here: str = ""
    """Folder in which modules are looked for."""

    @classmethod
    def of(cls, words: str | None) -> Given:
        """Find what the words name.

        Raises:
            ValueError: there is no such file or module.
        """
        if not words:
            return cls()
        if words.endswith(FILES):
            path = Path(words).resolve()
            if not path.is_file():
                raise UserError(f"there is no policy at {words}")
            return cls(str(path), _hash(path.read_bytes()))
        if ":" not in words:
            raise UserError(
                f"a policy is a checkpoint .pt, an SB3 .zip or package.module:name, got {words!r}"
            )
        policy = find_policy(words)
        return cls(words, _source(words, policy), os.getcwd())

    @property
    def name(self) -> str:
        """As tables call it."""
        if self.words.endswith(FILES):
            path = Path(self.words)
            return f"{path.parent.name}/{path.name}" if path.suffix == ".pt" else path.name
        return self.words or "constant"

    def load(self, domain: Domain, env: EpisodesVectorEnv) -> tuple[Any, str]:
        """The policy for a domain, and what it wants to observe.

        Args:
            domain: which one.
            env: its environment, observing `x`.

        Raises:
            ValueError: it cannot be loaded, or was made for another environment.
        """
        if not self.words:
            return ConstantPolicy(domain.action, int(env.single_action_space.n)), "x"  # type: ignore[attr-defined]
        if self.here and self.here not in sys.path:  # a process of Ray has a folder of its own
            sys.path.insert(0, self.here)
        if self.words.endswith(".pt"):
            return _checkpoint(self.words, domain)
        policy = find_policy(self.words)
        if self.words.endswith(".zip"):
            return policy, _fitting(policy, env)
        return policy, str(getattr(policy, "observe", "x"))

    def check(self, domain: Domain, env: EpisodesVectorEnv) -> str:
        """Try the policy on one platform for a moment; what it observes.

        Args:
            domain: which one.
            env: its environment, observing `x`.

        Raises:
            ValueError: it does not act in the domain, with the reason.
        """
        try:
            policy, observe = self.load(domain, env)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IdleWarning)  # in three steps nothing scars
                seen = env if observe == "x" else env.like(1, observe=observe)
                evaluate(seen, policy, 1, horizons=(1, 1, 1))
        except ValueError as error:
            raise UserError(f"{self.name} cannot be scored on {domain.name}: {error}") from error
        return observe


def _checkpoint(path: str, domain: Domain) -> tuple[Any, str]:
    """The agent of a checkpoint; its law is asked, so ASD is known."""
    try:
        from rapo.agents.agent import load_agent
        from rapo.agents.checkpoint import load_checkpoint
        from rapo.agents.env_agent import load_env_agent
        from rapo.agents.platform_agent import load_platform_agent
    except ImportError as error:
        raise UserError(f"checkpoints need torch; pip install 'rapo-rl[torch]' ({error})") from None
    config = load_checkpoint(path)["config"]
    trained = str(config.get("env", "rapo/GraphDiffusion-v0"))
    if trained.rpartition(":")[2] != domain.env:
        raise UserError(f"it was trained on {trained}, and {domain.name} is {domain.env}")
    if config.get("platform"):
        own, its = load_platform_agent(path)
        return own, its.observe
    if "env" in config:
        agent, made = load_env_agent(path)
        return agent.agent, str(made.env_kwargs.get("observe", "x"))
    policy, run = load_agent(path)
    if run.trained.observe != "x":
        raise UserError(
            f"{run.method} saw the fields of its own graph, and the suite runs on several; rapo "
            "rsd scores it there"
        )
    return policy, "x"


def _fitting(model: Any, env: EpisodesVectorEnv) -> str:
    """What a saved model was trained on, by its size: `x`, or that and a summary of the fields."""
    wanted: Any = getattr(model, "observation_space", env.single_observation_space)
    size = (env.single_observation_space.shape or (0,))[0]
    sizes = {"x": size, "xsummary": size + SUMMARY}
    for observe, count in sizes.items():
        if wanted.shape == (count,):
            return observe
    raise UserError(f"it observes {wanted.shape} numbers, the environment shows {sizes}")


def _source(words: str, policy: Any) -> str:
    """Of the file of the module, where there is one."""
    module = inspect.getmodule(policy) or sys.modules.get(words.partition(":")[0])
    file = getattr(module, "__file__", None)
    return _hash(Path(file).read_bytes()) if file and Path(file).exists() else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
