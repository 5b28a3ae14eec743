"""What options mean: counts, lists of seeds, horizons, and the configs of `rapo train`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rapo_core.checks import UserError, whole_number

if TYPE_CHECKING:
    from rapo.agents.run_config import RunConfig


def parse_count(name: str, text: str) -> int:
    """A whole number from `2000000` or `2e6`."""
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise UserError(f"{name} must be a whole number such as 2e6, got {text!r}") from None
    return whole_number(name, int(value), 1, 10**15)


def parse_seeds(name: str, text: str) -> list[int]:
    """Seeds from `3`, `0,2,5` or `0-9`."""
    seeds: list[int] = []
    for part in text.split(","):
        bounds = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if bounds is None or (bounds[2] and int(bounds[2]) < int(bounds[1])):
            raise UserError(f"{name} must be seeds such as 3, 0,2,5 or 0-9, got {text!r}")
        seeds += range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"{name} names a seed twice: {text!r}")
    return seeds


def parse_horizons(text: str) -> tuple[int, int, int]:
    """Steps of Exposure, the washout and Replay from `500,200,500`."""
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"horizons must be three whole numbers such as 500,200,500, got {text!r}")
    exposure, washout, replay = (int(part) for part in parts)
    return exposure, washout, replay


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `rapo train` that say what is trained; None where one was left out."""

    method: str | None = None
    env: str | None = None
    env_kwargs: str | None = None
    platform_seed: int | None = None
    cost: str | None = None
    delay: int | None = None
    nodes: int | None = None
    graph_seed: str | None = None
    graph: Path | None = None
    regions: str | None = None
    fit: bool | None = None
    reading: str | None = None
    seed: str | None = None
    steps: str | None = None
    budget: float | None = None
    threshold: float | None = None
    track: tuple[str, ...] | None = None
    changes: tuple[str, ...] = ()


def run_configs(base: RunConfig | None, options: TrainOptions) -> list[RunConfig]:
    """Make a config for every graph seed and seed that the options name.

    Options lie over `base`, the config of a run file. A fit belongs to one graph, its regions and
    its setting: if an option changes one of them, the stored fit is dropped and made again.

    Args:
        base: the config of a run file, or None.
        options: of `rapo train`.

    Raises:
        UserError: options do not fit together, or name nothing.
    """
    from rapo.agents.run_config import GRAPH_ENV, RunConfig
    from rapo.agents.run_file import parse_env_kwargs

    env = options.env or (GRAPH_ENV if base is None else base.env)
    _refuse_idle(base, options, on_graph=env == GRAPH_ENV)
    steps = None if options.steps is None else parse_count("steps", options.steps)
    kwargs = None if base is None or options.env is not None else dict(base.env_kwargs)
    if options.env_kwargs is not None:
        kwargs = parse_env_kwargs("--env-kwargs", options.env_kwargs)
    if options.platform_seed is not None:
        kwargs = {**(kwargs or {}), "seed": options.platform_seed}
    fields: dict[str, Any] = {
        "method": options.method, "env": options.env, "cost": options.cost, "delay": options.delay,
        "env_kwargs": kwargs,
        "steps": steps, "budget": options.budget, "threshold": options.threshold,
        "track": options.track,
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value is not None}
    if base is None and "method" not in fields:
        raise UserError("give a method such as RAPO, or --config with the run.toml of a run")
    config = RunConfig(**fields) if base is None else replace(base, **fields)
    if config.on_graph:
        return _graph_configs(config, options, from_file=base is not None)
    seeds = parse_seeds("--seed", options.seed or str(config.seed))
    return [replace(with_changes(config, options.changes), seed=seed) for seed in seeds]


def _refuse_idle(base: RunConfig | None, options: TrainOptions, *, on_graph: bool) -> None:
    """Refuse options that another kind of environment has."""
    graphs = {
        "--nodes": options.nodes, "--graph-seed": options.graph_seed, "--graph": options.graph,
        "--regions": options.regions, "--fit": options.fit, "--reading": options.reading,
    }  # fmt: skip
    foreign = {
        "--cost": options.cost, "--delay": options.delay, "--platform-seed": options.platform_seed,
    }  # fmt: skip
    candidates = foreign if on_graph and options.env is None else {} if on_graph else graphs
    idle = ", ".join(name for name, value in candidates.items() if value is not None)
    if idle and on_graph:
        raise UserError(f"{idle} needs --env" + (", not the graph of --config" if base else ""))
    if idle:
        raise UserError(f"{idle} are for graphs, not for --env {options.env or '(of --config)'}")


def _graph_configs(config: RunConfig, options: TrainOptions, from_file: bool) -> list[RunConfig]:
    """The configs of runs on graphs, with what is to be fitted."""
    from rapo.cascade.setting import Setting
    from rapo.graphs.fit import Fit

    nodes, seeds, graph = options.nodes, options.graph_seed, options.graph
    if graph is not None and (nodes is not None or seeds is not None):
        raise UserError(f"give either --graph {graph} or --nodes and --graph-seed, not both")
    stored, params = config.env_kwargs.get("fit"), config.env_kwargs.get("params")
    changes: dict[str, Any] = {}
    if graph is not None:
        changes = {"graph": str(graph.resolve()), "nodes": None, "graph_seed": None}
    elif nodes is not None:
        changes = {"graph": None, "nodes": nodes}
    elif seeds is not None and config.env_kwargs.get("graph") is not None:
        file = config.env_kwargs["graph"]
        raise UserError(f"--graph-seed {seeds} needs --nodes: the file has {file}")
    if options.regions is not None:
        changes["regions"] = options.regions
    if options.reading is not None:  # constants come with a reading
        params, changes["setting"] = None, Setting.named(options.reading)
    fitted_to = (nodes, seeds, graph, options.regions, options.fit, options.reading)
    parts = {change.partition(".")[0].strip() for change in options.changes}
    refit = (
        not from_file
        or any(value is not None for value in fitted_to)
        or bool({"setting", "params"} & parts)
    )
    if refit:
        if params is not None and isinstance(stored, Fit):  # its tau is of what it was fitted to
            params = replace(params, tau=config.setting.params.tau)
        changes |= {"params": params, "fit": None}
    config = with_changes(config.with_env(**changes), options.changes)
    named = seeds or str(config.env_kwargs.get("graph_seed", ""))
    graph_seeds = parse_seeds("--graph-seed", named) if named else [None]
    configs = [
        replace(config.with_env(graph_seed=graph_seed), seed=seed)
        for graph_seed in graph_seeds
        for seed in parse_seeds("--seed", options.seed or str(config.seed))
    ]
    if not refit:
        return configs
    wanted = options.fit
    if wanted is None and from_file and stored is False and graph is None:
        wanted = False  # the file says that nothing was to be fitted to the graph that stays
    return [with_fit(each, wanted, options.changes) for each in configs]


def with_fit(config: RunConfig, wanted: bool | None, changes: Iterable[str]) -> RunConfig:
    """Return the config of a run on a graph with what is to be fitted.

    A tau that `changes` sets stays, and leaves the regions to be fitted. Other constants stay too,
    and tau is fitted beside them.

    Args:
        config: the config, without a fit.
        wanted: whether to fit; None if the graph is not a generated one.
        changes: the changes of `--set`, which may name constants of the fields.
    """
    from rapo.agents.run_config import open_graph
    from rapo.graphs.fit import fit, fits

    kwargs = config.env_kwargs
    params = kwargs.get("params")
    names = [change.partition("=")[0].strip() for change in changes]
    if params is None or "params.tau" in names or not fits(graph := open_graph(kwargs), wanted):
        return config.with_env(fit=wanted)
    made = fit(graph, regions=kwargs.get("regions"), params=params, setting=config.setting)
    return config.with_env(fit=made, params=made.params)


def with_changes(config: RunConfig, changes: Iterable[str]) -> RunConfig:
    """Return the config with `lr=1e-4`, `setting.kappa_s=0.2` or `params.w_H=4` changed."""
    from rapo.agents.config import PPOConfig
    from rapo.cascade.setting import Setting
    from rapo_core.params import FieldParams

    tables: dict[str, dict[str, Any]] = {"ppo": asdict(config.ppo)}
    if config.on_graph:
        tables |= {"setting": config.setting.to_dict(), "params": config.params.to_dict()}
    changed: set[str] = set()
    for change in changes:
        name, equals, text = change.partition("=")
        part, _, inner = name.strip().rpartition(".")
        table = tables.get(part or "ppo", {})
        if not equals or inner not in table:
            others = ", setting.<name> or params.<name>" if config.on_graph else ""
            names = ", ".join(tables["ppo"])
            raise UserError(
                f"--set needs NAME=VALUE with a name of {names}{others}, got {change!r}"
            )
        table[inner] = _like(inner, text.strip(), table[inner])
        changed |= {part or "ppo", f"{part}.{inner}"}
    if "setting.psi_min" in changed and "params.psi_min" not in changed:
        tables["params"]["psi_min"] = tables["setting"]["psi_min"]
    kwargs: dict[str, Any] = {}
    if "setting" in changed:
        kwargs["setting"] = Setting.from_dict(tables["setting"])
    if "params" in changed or ("setting" in changed and "params" in config.env_kwargs):
        kwargs["params"] = FieldParams.from_dict(tables["params"])
    config = replace(config, ppo=PPOConfig(**tables["ppo"]))
    return config.with_env(**kwargs) if kwargs else config


def _like(name: str, text: str, example: Any) -> Any:
    """Read a value of the kind of `example` from text."""
    try:
        if isinstance(example, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(example, int):
            return int(text)
        if isinstance(example, float):
            return float(text)
        if isinstance(example, tuple):
            return tuple(type(example[0])(part) for part in text.split(","))
    except (ValueError, KeyError):
        raise UserError(f"{name} must be like {example!r}, got {text!r}") from None
    return text
