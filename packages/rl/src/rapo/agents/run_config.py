"""`RunConfig`: everything that a training run depends on, whatever its environment is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from math import isfinite
from typing import Any, cast

import numpy as np
from gymnasium.envs.registration import load_env_creator, registry

from rapo.agents.config import PPOConfig
from rapo.agents.cost_env import CostFunction
from rapo.agents.methods import METHODS, SHIELD_THRESHOLD, Method, method_named
from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import Setting
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.graphs.fit import Fit
from rapo.graphs.generate import generate
from rapo.graphs.load import read_graph
from rapo.names import search_current_folder
from rapo_core.checks import UserError, whole_number
from rapo_core.params import FieldParams

GRAPH_ENV = "rapo/GraphDiffusion-v0"
"""Id of the environment that runs the cascade on a graph."""
FOREIGN = ("GE", "SS", "DR")
"""Methods that need nothing but a reward and a cost, so that any environment will do."""
METHODS_OPTIONS = ("deformation", "schedule", "autoreset_mode", "deform_phases", "num_envs")
"""Keyword arguments of our environments that the method chooses, not the user."""
PLATFORM_BUDGET = 0.9
"""Budget of every cost on a platform, in units of the reference costs."""
MakeEnv = Callable[..., EpisodesVectorEnv]


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A method, an environment, a seed, a budget and the numbers of the optimiser.

    There are three kinds of environments. A graph is `rapo/GraphDiffusion-v0`, whose `env_kwargs`
    are those of `GraphDiffusionVectorEnv` with the path of a file as `graph`; `graph_run` writes
    them. A platform has the episodes of this package too, and any method can be trained on it. Any
    other Gymnasium environment with discrete actions needs a cost, and takes GE, SS and DR.

    >>> config = RunConfig(method="rapo", env_kwargs={"nodes": 40})
    >>> config.method, config.nodes, config.graph_seed, config.steps
    ('RAPO', 40, 0, 2000000)
    """

    method: str
    """A row of `METHODS`; case does not matter."""
    env: str = GRAPH_ENV
    """Gymnasium id, or `package:id` to import the package that registers the id."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Keyword arguments of the environment. On a graph `setting`, `params` and `fit` may be tables
    of plain values, and regions of any form are kept as text or as a tuple of ids."""
    seed: int = 0
    """Seed of weights, actions and episodes; the seed of the environment is in `env_kwargs`."""
    steps: int = cast(int, None)
    """Environment steps, rounded up to whole rollouts; usually 2,000,000 on a graph, else 200,000.
    """
    budget: float | None = None
    """Budget of every cost. On a graph and on a platform: the mean cost of a step over that of a
    constant action under `P0`, >= 0; None is `Setting.budget` on a graph and 0.9 on a platform.
    With `cost`: the mean cost of an episode, the undiscounted sum over its steps, > 0."""
    cost: str | CostFunction | None = None
    """`info:KEY`, `package.module:function`, or a function (observation, action, info) -> float of
    the observation that the action was taken at; for environments that do not tell their harm."""
    delay: int = 0
    """Steps by which `cost` comes late; DR needs the number, our environments know it."""
    threshold: float | None = None
    """Of a Shield: the largest relative sensitive mass that it allows, default 0.5."""
    track: tuple[str, ...] = ()
    """Names of `TRACKERS` that are told the progress too; no result depends on them."""
    ppo: PPOConfig = cast(PPOConfig, None)  # noqa: RUF009 - a stand-in for "the usual numbers"
    """Numbers of the optimiser; usually `PPOConfig()`, with a cost `PPOConfig.for_gymnasium()`."""

    def __post_init__(self) -> None:
        row = method_named(self.method)
        self._set("method", row.name)
        self._set("env_kwargs", dict(self.env_kwargs))
        self._set("track", tuple(self.track))
        if self.ppo is None:
            own = self.cost is None and is_platform(self.env)
            self._set("ppo", PPOConfig() if own else PPOConfig.for_gymnasium())
        if self.steps is None:
            self._set("steps", 2_000_000 if self.on_graph else 200_000)
        whole_number("delay", self.delay, 0)
        whole_number("seed", self.seed, 0, 2**31)
        whole_number("steps", self.steps, 1)
        self._check_threshold(row)
        if self.has_episodes:
            self._check_own(row)
        else:
            self._check_foreign(row)
        if self.on_graph:
            self._set("env_kwargs", _graph_kwargs(self.env_kwargs))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the class is frozen

    def _check_threshold(self, row: Method) -> None:
        if row.shield is None and self.threshold is not None:
            raise UserError(f"{row.name} has no shield, got a threshold of {self.threshold}")
        if row.shield == "fixed" and self.threshold is None:
            self._set("threshold", SHIELD_THRESHOLD)
        if self.threshold is not None and not self.threshold > 0:
            raise UserError(f"threshold must be > 0, got {self.threshold!r}")

    def _check_own(self, row: Method) -> None:
        """Check a run on a graph or a platform."""
        if row.policy_of is not None and not self.on_graph:
            trained = ", ".join(m.name for m in METHODS.values() if m.policy_of is None)
            raise UserError(f"{row.name} is not trained on a platform; there are {trained}")
        if self.delay:
            raise UserError(f"{self.env} knows the delay of its harm; leave delay {self.delay} out")
        if chosen := sorted(set(METHODS_OPTIONS) & set(self.env_kwargs)):
            raise UserError(f"{', '.join(chosen)} come with {row.name}; leave them out")
        if self.budget is None and not self.on_graph:
            self._set("budget", PLATFORM_BUDGET)
        if self.budget is not None and (not isfinite(self.budget) or self.budget < 0):
            raise UserError(f"budget must be a share >= 0 of a cost, got {self.budget!r}")

    def _check_foreign(self, row: Method) -> None:
        """Check a run on an environment that is not of this package."""
        if row.name not in FOREIGN:
            raise UserError(
                f"{row.name} needs the graph environment of this package or a platform; on "
                f"{self.env} there are {', '.join(FOREIGN)}"
            )
        parts = {"a cost": self.cost, "a budget": self.budget}
        if not row.costs:
            idle = [name for name, value in parts.items() if value is not None]
            if idle:
                raise UserError(f"{row.name} pays nothing: leave out {' and '.join(idle)}")
        elif missing := [name for name, value in parts.items() if value is None]:
            raise UserError(f"{row.name} needs {' and '.join(missing)}")
        elif not isfinite(self.budget or 0) or not (self.budget or 0) > 0:
            raise UserError(f"budget must be a mean cost of an episode > 0, got {self.budget!r}")
        carried = any(cost.carried for cost in row.costs)
        if carried != (self.delay > 0):
            rule = "needs a delay of 1 or more" if carried else "takes no delay"
            raise UserError(f"{row.name} {rule}, got {self.delay}")

    @property
    def on_graph(self) -> bool:
        """Whether the environment is the cascade on a graph."""
        return self.env == GRAPH_ENV and self.cost is None

    @property
    def has_episodes(self) -> bool:
        """Whether the environment has the episodes of this package: phases, fields, snapshots."""
        return self.cost is None and is_platform(self.env)

    @property
    def trained(self) -> Method:
        """The row whose policy is trained: that of the method itself, or of its `policy_of`."""
        row = METHODS[self.method]
        return row if row.policy_of is None else METHODS[row.policy_of]

    @property
    def updates(self) -> int:
        """Number of rollouts that `steps` come to, rounded up."""
        return -(-self.steps // self.ppo.rollout)

    @property
    def nodes(self) -> int:
        """Nodes of the generated graph, on a graph that is generated."""
        return int(self.env_kwargs["nodes"])

    @property
    def graph_seed(self) -> int:
        """Seed of the generated graph, on a graph that is generated."""
        return int(self.env_kwargs["graph_seed"])

    @property
    def setting(self) -> Setting:
        """Open choices of the cascade, on a graph."""
        return cast(Setting, self.env_kwargs["setting"])

    @property
    def params(self) -> FieldParams:
        """Constants of the fields on a graph: those given, else those of the setting.

        Where they are fitted, `resolve(config).config` has the fitted ones.
        """
        return cast(FieldParams, self.env_kwargs.get("params") or self.setting.params)

    @property
    def cost_name(self) -> str:
        """The cost as `--cost` names it; empty without one."""
        if self.cost is None or isinstance(self.cost, str):
            return self.cost or ""
        name = getattr(self.cost, "__qualname__", type(self.cost).__qualname__)
        return f"{getattr(self.cost, '__module__', '')}:{name}"

    @property
    def cost_label(self) -> str:
        """What logs call the cost: its key, or the name of its function; empty without one."""
        return self.cost_name.rpartition(":")[2].rpartition(".")[2]

    def with_env(self, **changes: Any) -> RunConfig:
        """The same run with other keyword arguments of the environment; None takes one away."""
        kwargs = {**self.env_kwargs, **changes}
        if changes.get("graph") is not None:
            kwargs |= {"nodes": None, "graph_seed": None}
        return replace(self, env_kwargs={k: v for k, v in kwargs.items() if v is not None})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, a cost by its name; what is None is left out."""
        kwargs = {name: _plain(value) for name, value in self.env_kwargs.items()}
        whole = {name: getattr(self, name) for name in _PLAIN}
        whole |= {"env_kwargs": kwargs, "cost": self.cost_name or None, "ppo": asdict(self.ppo)}
        whole |= {"track": list(self.track) or None, "delay": self.delay or None}
        return {name: value for name, value in whole.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Build from what `to_dict` returned; what is left out has its usual value."""
        if wrong := [name for name in values if name not in cls.__dataclass_fields__]:
            allowed = ", ".join(cls.__dataclass_fields__)
            raise UserError(f"unknown field {wrong[0]}; allowed are {allowed}")
        if "method" not in values:
            raise UserError("method is missing: name one, such as RAPO")
        whole = dict(values)
        own = whole.get("cost") is None and is_platform(str(whole.get("env", GRAPH_ENV)))
        usual = PPOConfig() if own else PPOConfig.for_gymnasium()
        whole["ppo"] = PPOConfig(**over("ppo", asdict(usual), whole.get("ppo", {})))
        return cls(**whole)


_PLAIN = ("method", "env", "seed", "steps", "budget", "threshold")


def graph_run(
    method: str,
    *,
    nodes: int | None = None,
    graph_seed: int | None = None,
    graph: str | None = None,
    regions: Any = None,
    setting: Setting | None = None,
    params: FieldParams | None = None,
    fit: bool | Fit | None = None,
    **options: Any,
) -> RunConfig:
    """Return the config of a run on a graph.

    Args:
        method: a row of `METHODS`.
        nodes: size of a generated graph, default 250.
        graph_seed: seed of a generated graph, default 0.
        graph: file of a graph (.npz, CSV, GraphML) instead of a generated one.
        regions: a region spec, an array (n,), or a function of the graph; default those of a fit.
        setting: open choices of the cascade.
        params: constants of the fields; default those of a fit, without one the setting's.
        fit: whether regions and tau are fitted; None if the graph is not a generated one; or a
            `Fit` of this graph.
        options: other fields of `RunConfig`.
    """
    kwargs = {
        "nodes": nodes, "graph_seed": graph_seed, "graph": graph, "regions": regions,
        "setting": setting, "params": params, "fit": fit,
    }  # fmt: skip
    chosen = {name: value for name, value in kwargs.items() if value is not None}
    return RunConfig(method=method, env_kwargs=chosen, **options)


def is_platform(env: str) -> bool:
    """Whether an id is of an environment with the episodes of this package; a graph is one.

    Args:
        env: id, or `package:id` to import the package that registers it.
    """
    return platform_maker(env) is not None


def platform_maker(env: str) -> MakeEnv | None:
    """What makes an environment with the episodes of this package; None for any other id."""
    package, _, name = env.rpartition(":")
    if package:
        search_current_folder()
        try:
            import_module(package)
        except ImportError:
            return None
    spec = registry.get(name)
    if spec is None or spec.vector_entry_point is None:
        return None
    entry = spec.vector_entry_point
    made: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    if not (isinstance(made, type) and issubclass(made, EpisodesVectorEnv)):
        return None
    make: MakeEnv = made
    kwargs = dict(spec.kwargs)
    return lambda num_envs, **options: make(num_envs, **{**kwargs, **options})


def over(name: str, usual: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    """Lay a table of changes over the usual values; a name that is not usual is refused.

    Args:
        name: what the table is called, for the error.
        usual: every value by its name.
        changes: some of them.
    """
    if not isinstance(changes, Mapping):
        raise UserError(f"{name} must be a table, got {changes!r}")
    if wrong := [key for key in changes if key not in usual]:
        raise UserError(f"unknown field {name}.{wrong[0]}; allowed are {', '.join(usual)}")
    return {**usual, **changes}


def _graph_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a graph with its size, its seed and its setting, tables as objects."""
    whole = {name: value for name, value in kwargs.items() if value is not None}
    if whole.get("graph") is None:
        whole = {"nodes": 250, "graph_seed": 0, **whole}
        whole_number("nodes", whole["nodes"], 1)
        whole_number("graph_seed", whole["graph_seed"], 0)
    elif "nodes" in whole or "graph_seed" in whole:
        raise UserError(f"give either graph {whole['graph']} or nodes and graph_seed, not both")
    setting = whole.get("setting", Setting.default())
    if not isinstance(setting, Setting):
        setting = Setting.from_dict(over("setting", Setting.default().to_dict(), setting))
    whole["setting"] = setting
    if not isinstance(params := whole.get("params"), FieldParams | None):
        usual = setting.params.to_dict()
        whole["params"] = FieldParams.from_dict(over("params", usual, params))
    if not isinstance(fit := whole.get("fit"), bool | Fit | None):
        try:
            whole["fit"] = Fit.from_dict({"spec": None, **fit})
        except TypeError as error:
            raise UserError(f"fit must be as a run wrote it: {error}") from None
    if not isinstance(regions := whole.get("regions"), str | tuple | None):
        whole["regions"] = tuple(make_regions(regions, open_graph(whole)).tolist())
    return whole


def open_graph(kwargs: Mapping[str, Any]) -> Graph:
    """Read or generate the graph that the keyword arguments of a run name."""
    if kwargs.get("graph") is not None:
        return read_graph(kwargs["graph"])
    return generate(kwargs["nodes"], kwargs["graph_seed"], kwargs["setting"])


def _plain(value: Any) -> Any:
    """A keyword argument as text, numbers, lists and tables."""
    if isinstance(value, Setting | FieldParams | Fit):
        return value.to_dict()
    return value.tolist() if isinstance(value, np.ndarray) else value
