"""`PlatformConfig`: a run of a method of the paper on a platform, by its Gymnasium id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from math import isfinite
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator, registry

from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint
from rapo.agents.methods import METHODS, Method, method_named
from rapo.agents.ppo import PPO
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.names import search_current_folder
from rapo_core.checks import UserError, whole_number

OWN = ("deformation", "schedule", "autoreset_mode", "deform_phases", "num_envs")
"""Options that the method chooses, not the caller."""
EACH = 4
"""Episodes of every constant action that the references are means of."""
SEED = 0x5AFE
"""Of those episodes."""


def is_platform(env: str) -> bool:
    """Whether an id is of an environment with our episodes: phases, fields, snapshots.

    Args:
        env: id, or `package:id` to import the package that registers it.
    """
    package, _, name = env.rpartition(":")
    if package:
        search_current_folder()
        try:
            import_module(package)
        except ImportError:
            return False
    spec = registry.get(name)
    if spec is None or spec.vector_entry_point is None:
        return False
    entry = spec.vector_entry_point
    made: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    return isinstance(made, type) and issubclass(made, EpisodesVectorEnv)


@dataclass(frozen=True, kw_only=True)
class PlatformConfig:
    """A method, a platform, a seed and the numbers of the optimiser.

    Methods that see the fields see ten numbers of them (`observe="xsummary"`), so that a policy
    fits every platform seed; `env_kwargs={"observe": "xGH"}` shows all regions instead.
    """

    method: str
    """A row of `METHODS` that is trained, without a shield."""
    env: str
    """Id such as `rapo/Routing-v0`, or `package:id`."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Options of the platform; plain values."""
    budget: float = 0.9
    """Of every cost, in units of the most rewarding constant action's under `P0`, >= 0."""
    seed: int = 0
    """Seed of weights, actions and episodes; the platform's is in `env_kwargs`."""
    steps: int = 200_000
    """Environment steps, rounded up to whole rollouts."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """Numbers of the optimiser."""

    def __post_init__(self) -> None:
        row = method_named(self.method)
        object.__setattr__(self, "method", row.name)
        object.__setattr__(self, "env_kwargs", dict(self.env_kwargs))
        if row.policy_of is not None:
            raise UserError(
                f"{row.name} is not trained on a platform; there are {', '.join(TRAINED)}"
            )
        if not is_platform(self.env):
            raise UserError(f"{self.env} is not a platform of rapo, nor one registered like it")
        chosen = sorted(set(OWN) & set(self.env_kwargs))
        if chosen:
            raise UserError(f"{', '.join(chosen)} come with {row.name}; leave them out")
        whole_number("seed", self.seed, 0, 2**31)
        whole_number("steps", self.steps, 1)
        if not isfinite(self.budget) or self.budget < 0:
            raise UserError(f"budget must be a share >= 0 of a cost, got {self.budget!r}")

    @property
    def row(self) -> Method:
        """The method."""
        return METHODS[self.method]

    @property
    def observe(self) -> str:
        """What the policy sees."""
        shown = "x" if self.row.observe == "x" else "xsummary"
        return str(self.env_kwargs.get("observe", shown))

    @property
    def updates(self) -> int:
        """Rollouts that `steps` come to, rounded up."""
        return -(-self.steps // self.ppo.rollout)

    def environment(self, num_envs: int, **changes: Any) -> EpisodesVectorEnv:
        """The platform as the method is trained on it, but for `changes`."""
        options = {
            **self.env_kwargs,
            "observe": self.observe,
            "deformation": self.row.deformation,
            "autoreset_mode": "SameStep",
            **changes,
        }
        try:
            made: Any = gymnasium.make_vec(
                self.env, num_envs, vectorization_mode="vector_entry_point", **options
            )
        except (gymnasium.error.Error, TypeError) as error:
            text = " ".join(str(error).split())
            raise UserError(f"cannot make the platform {self.env}: {text}") from error
        env: EpisodesVectorEnv = made.unwrapped
        return env

    def references(self) -> dict[str, float]:
        """Mean costs of a step by `info` key, of the constant action with the most reward.

        Whole schedules under `P0`, as for graphs: a budget relative to a method's own kernel would
        make RAPO bolder than its baselines.
        """
        actions = int(self.environment(1, observe="x").single_action_space.n)  # type: ignore[attr-defined]
        env = self.environment(EACH * actions, observe="x", deformation="off")
        keys = [cost.key for cost in self.row.costs]
        env.reset(seed=SEED)
        chosen = np.repeat(np.arange(actions), EACH)
        rewards, sums = np.zeros(len(chosen)), {key: np.zeros(len(chosen)) for key in keys}
        steps = sum(env.horizons)
        for _ in range(steps):
            _, reward, _, _, info = env.step(chosen)
            rewards += reward
            for key in keys:
                if key not in info:
                    raise UserError(
                        f"{self.method} pays for {key}, which {self.env} does not tell: a scar "
                        "field has no regions"
                    )
                sums[key] += info[key]
        env.close()
        best = rewards.reshape(actions, EACH).mean(axis=1).argmax()
        return {key: float(total[chosen == best].mean() / steps) for key, total in sums.items()}

    def constraints(self) -> list[Constraint]:
        """The costs that the policy pays; credit begins with the latest action to cause them."""
        if not self.row.costs:
            return []
        ppo, unit = self.ppo, self.references()
        engine: Any = self.environment(1).engine
        harm = getattr(getattr(engine, "memory", None), "harm", None)
        delay = int(engine.setting.delay if harm is None else harm.delay)
        decay = ppo.cost_gamma * ppo.gae_lambda
        carried = min(max(decay, 1 - 1 / max(delay, 1)), ppo.cost_gamma)
        return [
            Constraint(
                name=cost.name,
                key=cost.key,
                reference=unit[cost.key],
                budget=self.budget,
                decay=carried if cost.carried else decay,
                lag=delay + cost.lag,
                carry=1 - engine.params.lam if cost.remains else 0.0,
            )
            for cost in self.row.costs
        ]

    def learner(self) -> PPO:
        """The optimiser, at its start."""
        env = self.environment(self.ppo.envs)
        return PPO(
            env,
            self.ppo,
            constraints=self.constraints(),
            network=self.row.network,
            seed=self.seed,
            episode=sum(env.horizons),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `platform` tells it from the config of a foreign environment."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {**plain, "ppo": asdict(self.ppo), "platform": True}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PlatformConfig:
        """Build from what `to_dict` gave."""
        wrong = sorted(set(values) ^ {*_PLAIN, "ppo", "platform"})
        if wrong:
            raise UserError(f"unknown or missing entries {wrong} in the config of a run")
        given = {name: values[name] for name in _PLAIN}
        return cls(**given, ppo=PPOConfig.from_dict(values["ppo"]))


_PLAIN = ("method", "env", "env_kwargs", "budget", "seed", "steps")
TRAINED = tuple(row.name for row in METHODS.values() if row.policy_of is None)
"""Methods that can be trained on a platform."""
