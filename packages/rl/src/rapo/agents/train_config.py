"""`TrainConfig`: everything that a training run depends on, and the environments it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from rapo.agents.budget_units import reference_costs
from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint
from rapo.agents.methods import METHODS, Method, method_named
from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec, make_regions
from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import Fit
from rapo.graphs.fitted import chosen_fit
from rapo.graphs.generate import generate
from rapo.graphs.load import read_graph
from rapo_core.checks import UserError, whole_number
from rapo_core.params import FieldParams


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A method, a graph, a seed and the numbers of the optimiser."""

    method: str
    """A row of `METHODS` that is trained."""
    nodes: int = 250
    """Size of the generated graph."""
    graph_seed: int = 0
    """Seed of the generated graph."""
    graph: str | None = None
    """A graph file (.npz, CSV, GraphML) instead of a generated one."""
    seed: int = 0
    """Seed of weights, actions and episodes."""
    steps: int = 2_000_000
    """Environment steps, rounded up to whole rollouts."""
    regions: RegionSpec | None = None
    """Regions as an environment takes them; an array or callable is kept as a tuple of ids."""
    setting: Setting = field(default_factory=Setting.default)
    """Open choices of the platform."""
    params: FieldParams = cast(FieldParams, None)  # noqa: RUF009 - a stand-in for "not given"
    """Constants of the fields; default those of the fit (see `settled`), else the paper's."""
    fit: bool | Fit | None = None
    """Whether regions and tau are fitted to the graph; None: if it is not a generated one."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """Numbers of the optimiser."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", method_named(self.method).name)
        whole_number("nodes", self.nodes, 1)
        whole_number("graph_seed", self.graph_seed, 0)
        whole_number("seed", self.seed, 0, 2**31)
        whole_number("steps", self.steps, 1)
        if not isinstance(self.regions, str | None):
            ids = make_regions(self.regions, self.network)
            object.__setattr__(self, "regions", tuple(ids.tolist()))
        unfitted = self.fit is False or (self.graph is None and not self.fit)
        if unfitted and self.params is None:
            object.__setattr__(self, "params", self.setting.params)  # nothing to be fitted

    @cached_property
    def settled(self) -> TrainConfig:
        """The same with everything fitted that is to be: `params` and `fit` say what is in force.

        What needs the graph is left until here, so that a config can name a file that is not there
        yet.
        """
        if isinstance(self.fit, Fit) or self.fit is False or (self.graph is None and not self.fit):
            found = self.fit if isinstance(self.fit, Fit) else None
            if self.params is not None:
                return self
        else:
            found = chosen_fit(
                self.network,
                self.fit,
                regions=self.regions,
                params=self.params,
                setting=self.setting,
            )
        chosen = self.params
        if chosen is None:
            chosen = self.setting.params if found is None else found.params
        whole = replace(self, params=chosen, fit=found or False)
        if "network" in self.__dict__:
            whole.__dict__["network"] = self.network  # read once
        return whole

    @property
    def trained(self) -> Method:
        """The row whose policy is trained: that of the method itself, or of its `policy_of`."""
        row = METHODS[self.method]
        return row if row.policy_of is None else METHODS[row.policy_of]

    @property
    def updates(self) -> int:
        """Rollouts that `steps` come to, rounded up."""
        return -(-self.steps // self.ppo.rollout)

    @cached_property
    def network(self) -> Graph:
        """The graph itself."""
        if self.graph is not None:
            return read_graph(self.graph)
        return generate(self.nodes, self.graph_seed, self.setting)

    def environment(self, num_envs: int, **changes: Any) -> GraphDiffusionVectorEnv:
        """The environment that the policy is trained on, but for `changes`."""
        row, whole = self.trained, self.settled
        options: dict[str, Any] = {
            "graph": whole.network, "regions": self.regions, "deformation": row.deformation,
            "observe": row.observe, "setting": self.setting, "params": whole.params,
            "fit": whole.fit or False,
        }  # fmt: skip
        return GraphDiffusionVectorEnv(num_envs, **{**options, **changes})

    def evaluation(self, method: str | None = None) -> GraphDiffusionVectorEnv:
        """The environment on which `method` evaluates this run's policy; default its own."""
        row = METHODS[self.method] if method is None else method_named(method)
        own = (self.method, self.trained.name)
        if row.name not in own and row.policy_of != self.trained.name:
            usable = [m.name for m in METHODS.values() if m.policy_of == self.trained.name]
            raise UserError(
                f"{row.name} cannot evaluate a policy of {self.method}; it can be evaluated as "
                f"{', '.join([self.trained.name, *usable])}"
            )
        changes = dict(row.evaluation)
        if "delta" in changes:
            changes["params"] = replace(self.settled.params, delta=changes.pop("delta"))
        return self.environment(1, **changes)

    def references(self) -> dict[str, float]:
        """Costs of the constant aggressive policy under `P0`, the unit of the budgets."""
        whole: Any = self.settled
        regions = self.regions
        if regions is None and isinstance(whole.fit, Fit):
            regions = tuple(whole.fit.regions.tolist())
        return reference_costs(whole.network, self.setting, whole.params, cast(Any, regions))

    def constraints(self) -> list[Constraint]:
        """The costs that the policy pays, with their budgets.

        Credit for a cost begins with the latest action that can have caused it. A carried cost has
        a trace of the length of the delay: it still weighs 1/e on the action D steps before that
        one, instead of 1/20 with PPO's own lambda.
        """
        ppo, unit = self.ppo, self.references()
        params: FieldParams = self.settled.params
        carried = min(1 - 1 / self.setting.delay, ppo.cost_gamma)
        return [
            Constraint(
                name=cost.name,
                key=cost.key,
                reference=unit[cost.key],
                budget=self.setting.budget,
                decay=carried if cost.carried else ppo.cost_gamma * ppo.gae_lambda,
                lag=self.setting.delay + cost.lag,
                carry=1 - params.lam if cost.remains else 0.0,
            )
            for cost in self.trained.costs
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what was fitted is among them, so that it is never fitted anew."""
        return self.settled.given()

    def given(self) -> dict[str, Any]:
        """Plain values as they were given: no graph is read, nothing is fitted."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "regions": list(self.regions) if isinstance(self.regions, tuple) else self.regions,
            "setting": self.setting.to_dict(),
            "params": None if self.params is None else self.params.to_dict(),
            "fit": self.fit.to_dict() if isinstance(self.fit, Fit) else self.fit,
            "ppo": asdict(self.ppo),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Build from what `to_dict` gave; a config of version 0.1, without `fit`, is not fitted."""
        parts = {"regions", "setting", "params", "ppo", "fit"}
        wrong = sorted(({"fit"} | set(values)) ^ {*_PLAIN, *parts})
        if wrong:
            raise UserError(f"unknown or missing entries {wrong} in a training config")
        fit, given = values.get("fit", False), values["params"]
        return cls(
            **{name: values[name] for name in _PLAIN},
            regions=values["regions"],
            setting=Setting.from_dict(values["setting"]),
            params=cast(FieldParams, given and FieldParams.from_dict(given)),
            fit=Fit.from_dict(fit) if isinstance(fit, Mapping) else fit,
            ppo=PPOConfig.from_dict(values["ppo"]),
        )


_PLAIN = ("method", "nodes", "graph_seed", "graph", "seed", "steps")
