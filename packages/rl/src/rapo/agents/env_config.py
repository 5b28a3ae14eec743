"""`EnvConfig`: everything that a run on a foreign environment depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from math import isfinite
from typing import Any

from rapo.agents.config import PPOConfig
from rapo.agents.cost_env import KEY, CostFunction, GymTask, find_cost, make_env, probe
from rapo.agents.episode_budget import EpisodeBudget, EpisodicPPO
from rapo.agents.methods import METHODS, method_named
from rapo_core.checks import UserError, whole_number

FOREIGN = ("GE", "SS", "DR")
"""Methods that need nothing but a reward and a cost."""


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """A Gymnasium environment, a cost with its budget, a seed and the numbers of the optimiser."""

    method: str
    """GE (no cost), SS, or DR: the cost is carried back over its delay."""
    env: str
    """Id, or `package:id` to import the package that registers it."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment; plain values."""
    cost: str | CostFunction | None = None
    """`info:KEY`, `package.module:function`, or the function (observation, action, info) -> float;
    the observation is the one that the action was taken at."""
    budget: float | None = None
    """Largest allowed mean cost of an episode: the undiscounted sum of its steps, > 0."""
    delay: int = 0
    """Steps by which the cost comes late; DR's."""
    seed: int = 0
    """Seed of weights, actions and episodes."""
    steps: int = 200_000
    """Environment steps, rounded up to whole rollouts."""
    ppo: PPOConfig = field(default_factory=PPOConfig.for_gymnasium)
    """Numbers of the optimiser."""

    def __post_init__(self) -> None:
        row = method_named(self.method)
        object.__setattr__(self, "method", row.name)
        object.__setattr__(self, "env_kwargs", dict(self.env_kwargs))
        if row.name not in FOREIGN:
            raise UserError(
                f"{row.name} needs the graph environment of this package or a platform; on "
                f"{self.env} there are {', '.join(FOREIGN)}"
            )
        whole_number("delay", self.delay, 0)
        whole_number("seed", self.seed, 0, 2**31)
        whole_number("steps", self.steps, 1)
        given = {"a cost": self.cost, "a budget": self.budget}
        if not row.costs:
            idle = [name for name, value in given.items() if value is not None]
            if idle:
                raise UserError(f"{row.name} pays nothing: leave out {' and '.join(idle)}")
        elif lost := [name for name, value in given.items() if value is None]:
            raise UserError(f"{row.name} needs {' and '.join(lost)}")
        elif not isfinite(self.budget or 0) or not (self.budget or 0) > 0:
            raise UserError(f"budget must be a mean cost of an episode > 0, got {self.budget!r}")
        carried = any(cost.carried for cost in row.costs)
        if carried != (self.delay > 0):
            rule = "needs a delay of 1 or more" if carried else "takes no delay"
            raise UserError(f"{row.name} {rule}, got {self.delay}")

    @property
    def updates(self) -> int:
        """Rollouts that `steps` come to, rounded up."""
        return -(-self.steps // self.ppo.rollout)

    @property
    def label(self) -> str:
        """What logs call the cost: its key, or the name of its function."""
        if self.cost is None:
            return ""
        return self.words.rpartition(":")[2].rpartition(".")[2]

    @property
    def words(self) -> str:
        """The cost as `--cost` names it."""
        if self.cost is None or isinstance(self.cost, str):
            return self.cost or ""
        name = getattr(self.cost, "__qualname__", type(self.cost).__qualname__)
        return f"{getattr(self.cost, '__module__', '')}:{name}"

    def task(self) -> GymTask:
        """The environment's copies with the cost in `info`.

        Raises:
            ValueError: the environment or the cost cannot be used.
        """
        cost = find_cost(self.cost) if isinstance(self.cost, str) else self.cost
        make = partial(make_env, self.env, self.env_kwargs)
        probe(make, cost, self.seed)
        return GymTask(make, self.ppo.envs, cost)

    def constraint(self) -> EpisodeBudget | None:
        """The budget of the cost.

        With a delay credit begins that many steps before the arrival, and DR's trace is as long,
        PPO's own where longer.
        """
        if self.budget is None:
            return None
        ppo = self.ppo
        decay = ppo.cost_gamma * ppo.gae_lambda
        if self.delay:
            decay = min(max(decay, 1 - 1 / self.delay), ppo.cost_gamma)
        return EpisodeBudget(
            name=self.label,
            key=KEY,
            reference=1.0,
            budget=self.budget,
            decay=decay,
            gamma=ppo.cost_gamma,
            lag=self.delay,
        )

    def learner(self) -> EpisodicPPO:
        """The optimiser, at its start."""
        return EpisodicPPO(self.task(), self.ppo, budget=self.constraint(), seed=self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a function by its name."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {**plain, "cost": self.words or None, "ppo": asdict(self.ppo)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EnvConfig:
        """Build from what `to_dict` gave."""
        wrong = sorted(set(values) ^ {*_PLAIN, "cost", "ppo"})
        if wrong:
            raise UserError(f"unknown or missing entries {wrong} in the config of a run")
        return cls(**{**values, "ppo": PPOConfig.from_dict(values["ppo"])})


_PLAIN = ("method", "env", "env_kwargs", "budget", "delay", "seed", "steps")
assert set(FOREIGN) <= set(METHODS)
