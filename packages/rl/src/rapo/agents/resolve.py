"""`resolve`: open what a `RunConfig` names, and make its environments, costs and learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from rapo.agents.budget_units import reference_costs
from rapo.agents.config import PPOConfig
from rapo.agents.cost_env import KEY, GymTask, find_cost, make_env, probe
from rapo.agents.episode_budget import EpisodeBudget, EpisodicPPO
from rapo.agents.lagrangian import Constraint
from rapo.agents.methods import METHODS, method_named
from rapo.agents.ppo import PPO
from rapo.agents.run_config import RunConfig, open_graph, platform_maker
from rapo.cascade.graph import Graph
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.graphs.fit import Fit, chosen_fit
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

EPISODES_PER_ACTION = 4
"""Episodes of every constant action over which the reference costs of a platform are means."""
REFERENCE_SEED = 0x5AFE
"""Seed of the first of those episodes."""


def resolve(config: RunConfig) -> EpisodeRun | GymnasiumRun:
    """Open the graph of a run and fit what is to be fitted.

    On a graph, `config` of the result holds the fit and the constants in force, so that resolving
    it again fits nothing.

    Raises:
        UserError: the environment, the graph or the cost cannot be used.
    """
    return open_episodes(config) if config.has_episodes else GymnasiumRun(config)


def open_episodes(config: RunConfig) -> EpisodeRun:
    """Resolve a run on a graph or on a platform, as `resolve` does; any other is refused."""
    if not config.has_episodes:
        raise UserError(f"{config.env} is neither a graph nor a platform of rapo")
    if not config.on_graph:
        return EpisodeRun(config)
    graph, kwargs = open_graph(config.env_kwargs), config.env_kwargs
    fit = chosen_fit(
        graph,
        kwargs.get("fit"),
        regions=kwargs.get("regions"),
        params=kwargs.get("params"),
        setting=config.setting,
    )
    params = kwargs.get("params") or (config.setting.params if fit is None else fit.params)
    settled = {**kwargs, "params": params, "fit": False if fit is None else fit}
    return EpisodeRun(replace(config, env_kwargs=settled), graph)


@dataclass(frozen=True)
class EpisodeRun:
    """A run on a graph or on a platform, whose environments have the episodes of this package.

    Methods that see the fields see all regions of their graph (`observe="xGH"`), and of a platform
    ten numbers of them (`xsummary`), so that a policy fits every platform seed. `observe` in
    `env_kwargs` overrides both.
    """

    config: RunConfig
    graph: Graph | None = None
    """The graph; None on a platform."""

    @property
    def graph_hash(self) -> str:
        """Hash of the graph; empty on a platform."""
        return "" if self.graph is None else self.graph.hash

    @property
    def observe(self) -> str:
        """What the policy sees."""
        shown = self.config.trained.observe
        if self.graph is None and shown != "x":
            shown = "xsummary"
        return str(self.config.env_kwargs.get("observe", shown))

    def environment(self, num_envs: int = 1, **changes: Any) -> EpisodesVectorEnv:
        """Make the environment that the policy is trained on.

        Args:
            num_envs: episodes side by side.
            changes: keyword arguments that differ from those of training.
        """
        options = {
            **self.config.env_kwargs,
            "observe": self.observe,
            "deformation": self.config.trained.deformation,
            **changes,
        }
        if self.graph is not None:
            options = {k: v for k, v in options.items() if k not in ("nodes", "graph_seed")}
            options["graph"] = self.graph
        make = platform_maker(self.config.env)
        assert make is not None  # the config was checked
        try:
            return make(num_envs, **options)
        except TypeError as error:
            raise UserError(f"cannot make {self.config.env}: {error}") from error

    def evaluation(self, method: str | None = None) -> EpisodesVectorEnv:
        """Make the environment on which `method` evaluates this run's policy; default its own."""
        own, trained = METHODS[self.config.method], self.config.trained.name
        row = own if method is None else method_named(method)
        if row.name not in (own.name, trained) and row.policy_of != trained:
            usable = [m.name for m in METHODS.values() if m.policy_of == trained]
            raise UserError(
                f"{row.name} cannot evaluate a policy of {own.name}; it can be evaluated as "
                f"{', '.join([trained, *usable])}"
            )
        changes = dict(row.evaluation)
        if "delta" in changes:
            changes["params"] = replace(self._delay_and_params()[1], delta=changes.pop("delta"))
        return self.environment(1, **changes)

    def references(self) -> dict[str, float]:
        """Mean costs of a step, by `info` key, of a constant action over whole schedules under P0.

        They are the unit of the budgets: a budget relative to a method's own kernel would make
        RAPO bolder than its baselines. The action is the aggressive one on a graph, and on a
        platform the one with the largest reward.
        """
        if self.graph is None:
            return self._references_of_platform()
        kwargs = self.config.env_kwargs
        regions, fit = kwargs.get("regions"), kwargs.get("fit")
        if regions is None and isinstance(fit, Fit):
            regions = tuple(fit.regions.tolist())
        return reference_costs(self.graph, self.config.setting, self.config.params, regions)

    def _references_of_platform(self) -> dict[str, float]:
        space: Any = self.environment(1, observe="x").single_action_space
        count = EPISODES_PER_ACTION * int(space.n)
        env = self.environment(count, observe="x", deformation="off", autoreset_mode="SameStep")
        keys = [cost.key for cost in self.config.trained.costs]
        env.reset(seed=REFERENCE_SEED)
        actions = np.repeat(np.arange(int(space.n)), EPISODES_PER_ACTION)
        rewards, sums = np.zeros(count), {key: np.zeros(count) for key in keys}
        steps = sum(env.horizons)
        for _ in range(steps):
            _, reward, _, _, info = env.step(actions)
            rewards += reward
            for key in keys:
                if key not in info:
                    raise UserError(
                        f"{self.config.method} pays for {key}, which {self.config.env} does not "
                        "report: a scar field has no regions"
                    )
                sums[key] += info[key]
        env.close()
        best = rewards.reshape(-1, EPISODES_PER_ACTION).mean(axis=1).argmax()
        return {key: float(total[actions == best].mean() / steps) for key, total in sums.items()}

    def _delay_and_params(self) -> tuple[int, FieldParams]:
        """Steps by which harm comes late, and the constants of the fields."""
        if self.graph is not None:
            return self.config.setting.delay, self.config.params
        engine: Any = self.environment(1, observe="x").engine
        harm = getattr(getattr(engine, "memory", None), "harm", None)
        return int(engine.setting.delay if harm is None else harm.delay), engine.params

    def constraints(self) -> list[Constraint]:
        """The costs that the policy pays, with their budgets.

        Credit for a cost begins with the latest action that can have caused it.
        """
        config, costs = self.config, self.config.trained.costs
        if not costs:
            return []
        budget = config.setting.budget if config.budget is None else config.budget
        unit = self.references()
        delay, params = self._delay_and_params()
        return [
            Constraint(
                name=cost.name,
                key=cost.key,
                reference=unit[cost.key],
                budget=budget,
                decay=trace_decay(delay if cost.carried else 0, config.ppo),
                lag=delay + cost.lag,
                retained=1 - params.lam if cost.remains else 0.0,
            )
            for cost in costs
        ]

    def learner(self) -> PPO:
        """Make the optimiser, at its start."""
        env = self.environment(self.config.ppo.envs, autoreset_mode="SameStep")
        return PPO(
            env,
            self.config.ppo,
            constraints=self.constraints(),
            network=self.config.trained.network,
            seed=self.config.seed,
            episode=sum(env.horizons),
        )


@dataclass(frozen=True)
class GymnasiumRun:
    """A run of constrained PPO on an environment that is not of this package."""

    config: RunConfig
    graph_hash = ""

    def task(self) -> GymTask:
        """Make the copies of the environment, with the cost in `info`.

        Raises:
            UserError: the environment or the cost cannot be used.
        """
        config = self.config
        cost = find_cost(config.cost) if isinstance(config.cost, str) else config.cost
        make = partial(make_env, config.env, config.env_kwargs)
        probe(make, cost, config.seed)
        return GymTask(make, config.ppo.envs, cost)

    def constraints(self) -> list[Constraint]:
        """The cost with its budget; none for a method that pays nothing."""
        config = self.config
        if config.budget is None:
            return []
        return [
            EpisodeBudget(
                name=config.cost_label,
                key=KEY,
                reference=1.0,
                budget=config.budget,
                decay=trace_decay(config.delay, config.ppo),
                gamma=config.ppo.cost_gamma,
                lag=config.delay,
            )
        ]

    def learner(self) -> EpisodicPPO:
        """Make the optimiser, at its start."""
        budgets = cast(list[EpisodeBudget], self.constraints())
        budget = budgets[0] if budgets else None
        return EpisodicPPO(self.task(), self.config.ppo, budget=budget, seed=self.config.seed)


def trace_decay(delay: int, ppo: PPOConfig) -> float:
    """Decay per step of the eligibility trace that carries a cost back in time.

    The trace of a cost that is carried back over its delay D is as long as the delay, 1 - 1/D: it
    still weighs 1/e on the action D steps before the latest one that can have caused the cost. It
    is never shorter than PPO's own trace, which every other cost has (D = 0), nor longer than the
    discount of costs. The same delay gives the same decay in every environment.
    """
    own = ppo.cost_gamma * ppo.gae_lambda
    return min(max(own, 1 - 1 / delay), ppo.cost_gamma) if delay else own
