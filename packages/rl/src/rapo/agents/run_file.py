"""`run.toml`: a training run as one file. Every run writes it, `rapo train --config` repeats it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import tomli_w

from rapo.agents.checkpoint import replace_text
from rapo.agents.config import PPOConfig
from rapo.agents.env_config import EnvConfig
from rapo.agents.platform_config import PlatformConfig, is_platform
from rapo.agents.train_config import TrainConfig
from rapo.cascade.setting import Setting
from rapo.graphs.fit import Fit
from rapo_core.checks import UserError
from rapo_core.params import FieldParams
from rapo_core.version import VERSION

NAME = "run.toml"
"""In the folder of every run."""
AnyConfig = TrainConfig | EnvConfig | PlatformConfig

Kind = tuple[str, tuple[type, ...]]
_TEXT: Kind = ("text", (str,))
_WHOLE: Kind = ("a whole number", (int,))
_NUMBER: Kind = ("a number", (int, float))
_TABLE: Kind = ("a table", (dict,))
_SHARED: dict[str, Kind] = {
    "method": _TEXT, "seed": _WHOLE, "steps": _WHOLE, "ppo": _TABLE,
    "track": ("a list such as ['tensorboard']", (list,)),
}  # fmt: skip
_GRAPH: dict[str, Kind] = {
    **_SHARED, "nodes": _WHOLE, "graph_seed": _WHOLE, "graph": _TEXT,
    "regions": ("text such as 'community:5', or a list of ids", (str, list)),
    "setting": _TABLE, "params": _TABLE, "fit": ("true, false or a table", (bool, dict)),
    "threshold": _NUMBER,
}  # fmt: skip
_ENV: dict[str, Kind] = {
    **_SHARED, "env": _TEXT, "env_kwargs": ("a table, or JSON", (dict, str)), "cost": _TEXT,
    "budget": _NUMBER, "delay": _WHOLE,
}  # fmt: skip
"""Fields of the file: what each must be."""


@dataclass(frozen=True)
class Run:
    """A config, and what `train` takes besides it."""

    config: AnyConfig
    threshold: float | None = None
    """Of a Shield."""
    track: tuple[str, ...] = ()
    """Names of `TRACKERS`."""


def write_run(path: Path, run: Run) -> None:
    """Write a file that `read_run` makes the same run of, to the bit."""
    values = run.config.to_dict()
    values.pop("platform", None)  # told by the id
    if isinstance(fit := values.get("fit"), dict):
        nan = {k: float("nan") for k, v in fit.items() if v is None and k != "spec"}
        values["fit"] = {**fit, **nan}
    if "env_kwargs" in values and _has_none(values["env_kwargs"]):
        values["env_kwargs"] = json.dumps(values["env_kwargs"])  # TOML has no null
    values |= {"threshold": run.threshold, "track": list(run.track) or None}
    head = f"# rapo {VERSION}; rapo train --config {NAME} --out FOLDER repeats this run.\n"
    replace_text(path, head + tomli_w.dumps(_plain(values)))


def read_run(path: Path) -> Run:
    """The run that a file stands for; what it leaves out has the default of `rapo train`.

    Raises:
        ValueError: a field is unknown or wrong; it is named, with what is allowed.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # of TOML, or of UTF-8
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        return run_of(values)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def run_of(values: Mapping[str, Any]) -> Run:
    """The run that plain values stand for."""
    foreign = "env" in values
    _check(values, _ENV if foreign else _GRAPH)
    if "method" not in values:
        raise UserError("method is missing: name one, such as RAPO")
    given = {k: v for k, v in values.items() if k not in ("threshold", "track")}
    config = _env_config(given) if foreign else _graph_config(given)
    return Run(config, values.get("threshold"), tuple(values.get("track", ())))


def env_config(values: Mapping[str, Any]) -> EnvConfig | PlatformConfig:
    """A run on a platform, or, with a cost or on any other environment, of constrained PPO."""
    options = {k: v for k, v in values.items() if v is not None}
    if options.get("cost") is None and is_platform(options["env"]):
        if options.get("delay"):
            raise UserError(
                f"{options['env']} knows the delay of its harm; leave delay {options['delay']} out"
            )
        options.pop("delay", None)
        return PlatformConfig(**options)
    return EnvConfig(**options)


def _env_config(given: dict[str, Any]) -> EnvConfig | PlatformConfig:
    if isinstance(given.get("env_kwargs"), str):
        given["env_kwargs"] = env_options("env_kwargs", given["env_kwargs"])
    platform = given.get("cost") is None and is_platform(given["env"])
    usual = PPOConfig() if platform else PPOConfig.for_gymnasium()
    return env_config({**given, "ppo": PPOConfig(**_section("ppo", given, asdict(usual)))})


def _graph_config(given: dict[str, Any]) -> TrainConfig:
    setting = Setting.from_dict(_section("setting", given, Setting.default().to_dict()))
    if "params" in given:
        usual = setting.params.to_dict()
        given["params"] = FieldParams.from_dict(_section("params", given, usual))
    if isinstance(given.get("fit"), dict):
        try:
            given["fit"] = Fit.from_dict({"spec": None, **given["fit"]})
        except TypeError as error:
            raise UserError(f"fit must be as a run wrote it: {error}") from None
    if isinstance(given.get("regions"), list):
        given["regions"] = tuple(given["regions"])
    ppo = PPOConfig(**_section("ppo", given, asdict(PPOConfig())))
    return TrainConfig(**{**given, "setting": setting, "ppo": ppo})


def env_options(name: str, text: str | None) -> dict[str, Any]:
    """Keyword arguments of an environment from JSON."""
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise UserError(f"{name} must be JSON such as '{{\"x\": 1}}': {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{name} must be a JSON object, got {text}")
    return found


def _section(name: str, given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """A table of the file over its usual values."""
    found = cast(dict[str, Any], given.get(name, {}))
    if wrong := [key for key in found if key not in usual]:
        raise UserError(f"unknown field {name}.{wrong[0]}; allowed are {', '.join(usual)}")
    return {**usual, **found}


def _check(values: Mapping[str, Any], known: Mapping[str, Kind]) -> None:
    """Every field is known and of its kind."""
    for name, value in values.items():
        if name not in known:
            raise UserError(f"unknown field {name}; allowed are {', '.join(known)}")
        words, kinds = known[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise UserError(f"{name} must be {words}, got {value!r}")


def _has_none(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value
    return value is None or (
        isinstance(value, Mapping | list | tuple) and any(map(_has_none, inner))
    )


def _plain(value: Any) -> Any:
    """What TOML can hold: no None, lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
