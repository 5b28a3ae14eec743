"""What the words of `rapo train` mean: counts, seeds, `--set`, and options over a run file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from rapo.agents.config import PPOConfig
from rapo.agents.train_config import TrainConfig
from rapo.cascade.setting import Setting
from rapo.graphs.fit import Fit, fit
from rapo.graphs.fitted import fits
from rapo_core.checks import UserError, whole_number
from rapo_core.params import FieldParams


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
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if found is None or (found[2] and int(found[2]) < int(found[1])):
            raise UserError(f"{name} must be seeds such as 3, 0,2,5 or 0-9, got {text!r}")
        seeds += range(int(found[1]), int(found[2] or found[1]) + 1)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"{name} names a seed twice: {text!r}")
    return seeds


def with_changes(config: TrainConfig, changes: Iterable[str]) -> TrainConfig:
    """The config with `lr=1e-4`, `setting.kappa_s=0.2` or `params.w_H=4` changed."""
    for change in changes:
        name, equals, text = change.partition("=")
        part, dot, inner = name.strip().rpartition(".")
        part = part if dot else "ppo"
        known = {
            "ppo": asdict(config.ppo),
            "setting": config.setting.to_dict(),
            "params": config.params.to_dict(),
        }
        if not equals or part not in known or inner not in known[part]:
            raise UserError(
                f"--set needs NAME=VALUE with a name of {', '.join(known['ppo'])}, "
                f"setting.<name> or params.<name>, got {change!r}"
            )
        if part == "ppo":
            config = replace(config, ppo=ppo_with_changes(config.ppo, [change]))
            continue
        values = {**known[part], inner: _value(inner, text.strip(), known[part][inner])}
        if part == "setting":
            config = replace(config, setting=config.setting.from_dict(values))
        else:
            config = replace(config, params=FieldParams.from_dict(values))
    return config


def ppo_with_changes(ppo: PPOConfig, changes: Iterable[str]) -> PPOConfig:
    """The numbers of the optimiser with `lr=1e-4` changed."""
    for change in changes:
        name, equals, text = (part.strip() for part in change.partition("="))
        known, name = asdict(ppo), name.removeprefix("ppo.")
        if not equals or name not in known:
            raise UserError(
                f"--set needs NAME=VALUE with a name of {', '.join(known)}, got {change!r}"
            )
        ppo = PPOConfig(**{**known, name: _value(name, text, known[name])})
    return ppo


def with_fit(
    config: TrainConfig, wanted: bool | None, changes: Iterable[str], given: bool = False
) -> TrainConfig:
    """The config with what is to be fitted, given the constants that `changes` has set.

    A given tau stays and leaves the regions to be fitted; other constants leave tau to be. With
    `given` the config's constants are given whatever `changes` has.
    """
    names = [change.partition("=")[0].strip() for change in changes]
    constants = [name for name in names if name.startswith("params.")]
    if not constants and not given:
        return replace(config, fit=wanted, params=cast(FieldParams, None))
    if "params.tau" in constants or not fits(config.network, wanted):
        return replace(config, fit=wanted)
    found = fit(
        config.network, regions=config.regions, params=config.params, setting=config.setting
    )
    return replace(config, fit=found, params=found.params)


def _value(name: str, text: str, like: Any) -> Any:
    """A value of the kind of `like` from its words."""
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(like, int):
            return int(text)
        if isinstance(like, float):
            return float(text)
        if isinstance(like, tuple):
            return tuple(type(like[0])(part) for part in text.split(","))
    except (ValueError, KeyError):
        raise UserError(f"{name} must be like {like!r}, got {text!r}") from None
    return text


def graph_configs(
    base: TrainConfig | None,
    method: str | None,
    *,
    nodes: int | None,
    graph_seeds: str | None,
    graph: Path | None,
    seeds: str | None,
    steps: str | None,
    regions: str | None,
    wanted_fit: bool | None,
    reading: str | None,
    budget: float | None,
    changes: Sequence[str],
) -> list[TrainConfig]:
    """A config for every graph seed and seed: the options that were given, over a run file's.

    What the file says of a fit stays, unless an option changes what was fitted to: then it is
    fitted anew, with the file's constants but tau.
    """
    if graph is not None and (nodes is not None or graph_seeds is not None):
        raise UserError(f"give either --graph {graph} or --nodes and --graph-seed, not both")
    given: dict[str, Any] = {
        "method": method, "nodes": nodes, "regions": regions,
        "graph": None if graph is None else str(graph.resolve()),
        "steps": None if steps is None else parse_count("steps", steps),
        "setting": None if reading is None else Setting.named(reading),
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    config = TrainConfig(**given, fit=False) if base is None else _over(base, given, graph_seeds)
    parts = [change.partition(".")[0].strip() for change in changes]
    fitted_to = (nodes, graph_seeds, graph, regions, wanted_fit, reading)
    anew = base is None or any(v is not None for v in fitted_to) or {"setting", "params"} & {*parts}
    kept = base is not None and reading is None
    if anew:
        wanted_fit = False if wanted_fit is None and _unfitted(base, graph) else wanted_fit
        if isinstance(config.fit, Fit):  # its tau is of what it was fitted to
            config = replace(config, params=replace(config.params, tau=config.setting.params.tau))
        config = replace(config, fit=False)
    config = with_changes(config, changes)
    if kept and any(change.startswith("setting.psi_min") for change in changes):
        config = replace(config, params=replace(config.params, psi_min=config.setting.psi_min))
    if budget is not None:
        config = replace(config, setting=config.setting.replace(budget=budget))
    chosen = [
        replace(config, graph_seed=g, seed=s)
        for g in parse_seeds("--graph-seed", graph_seeds or str(config.graph_seed))
        for s in parse_seeds("--seed", seeds or str(config.seed))
    ]
    return [with_fit(c, wanted_fit, changes, kept) for c in chosen] if anew else chosen


def _over(base: TrainConfig, given: dict[str, Any], graph_seeds: str | None) -> TrainConfig:
    """A run file's config with options over it."""
    if "nodes" in given:
        given["graph"] = None
    elif graph_seeds is not None and base.graph is not None:
        raise UserError(f"--graph-seed {graph_seeds} needs --nodes: the file has {base.graph}")
    if "setting" in given:
        given |= {"params": None, "fit": False}  # constants come with a reading
    return replace(base, **given)


def _unfitted(base: TrainConfig | None, graph: Path | None) -> bool:
    """Whether a run file says that nothing was to be fitted to the graph that stays."""
    return base is not None and base.fit is False and graph is None
