"""`run.toml`: a training run as one file. Every run writes it, `rapo train --config` repeats it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from rapo.agents.run_config import RunConfig
from rapo.cascade.setting import Setting
from rapo_core.checks import UserError
from rapo_core.files import written_whole
from rapo_core.version import VERSION

NAME = "run.toml"
"""Name of the file in the folder of every run."""

_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(("method", "env", "cost"), ("text", (str,))),
    **dict.fromkeys(("seed", "steps", "delay"), ("a whole number", (int,))),
    **dict.fromkeys(("budget", "threshold"), ("a number", (int, float))),
    "env_kwargs": ("a table, or JSON", (dict, str)),
    "ppo": ("a table", (dict,)),
    "track": ("a list such as ['tensorboard']", (list,)),
}
"""What the value of each field of the file must be."""


def write_run(path: Path, config: RunConfig) -> None:
    """Write a file of which `read_run` makes the same config, to the bit."""
    values = config.to_dict()
    values["env_kwargs"] = _without_null(values["env_kwargs"])
    head = f"# rapo {VERSION}; rapo train --config {NAME} --out FOLDER repeats this run.\n"
    with written_whole(path) as part:
        part.write_text(head + tomli_w.dumps(values), encoding="utf-8")


def read_run(path: Path) -> RunConfig:
    """Read the config that a file holds; what the file leaves out has its usual value.

    Raises:
        UserError: a field is unknown or wrong; the message names it with what is allowed.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # of TOML, or of UTF-8
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        return config_of(values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def config_of(values: Mapping[str, Any]) -> RunConfig:
    """The config that the plain values of a file stand for."""
    for name, value in values.items():
        if name not in _KINDS:
            raise UserError(f"unknown field {name}; allowed are {', '.join(_KINDS)}")
        allowed, kinds = _KINDS[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise UserError(f"{name} must be {allowed}, got {value!r}")
    kwargs = values.get("env_kwargs", {})
    if isinstance(kwargs, str):
        kwargs = parse_env_kwargs("env_kwargs", kwargs)
    return RunConfig.from_dict({**values, "env_kwargs": kwargs})


def parse_env_kwargs(name: str, text: str) -> dict[str, Any]:
    """Keyword arguments of an environment from JSON.

    Args:
        name: what the text is called, for the error.
        text: a JSON object.
    """
    try:
        kwargs = json.loads(text)
    except ValueError as error:
        raise UserError(f"{name} must be JSON such as '{{\"x\": 1}}': {error}") from None
    if not isinstance(kwargs, dict):
        raise UserError(f"{name} must be a JSON object, got {text}")
    return kwargs


def _without_null(kwargs: Mapping[str, Any]) -> dict[str, Any] | str:
    """Keyword arguments for TOML, which has no null; as JSON where a null cannot be left out."""
    values = dict(kwargs)
    if isinstance(setting := values.get("setting"), dict):  # what is missing is as by default
        usual = Setting.default().to_dict()
        values["setting"] = {
            k: v for k, v in setting.items() if v is not None or usual[k] is not None
        }
    if isinstance(fit := values.get("fit"), dict):  # a number that was not measured is NaN
        unmeasured = {k: float("nan") for k, v in fit.items() if v is None and k != "spec"}
        values["fit"] = {k: v for k, v in {**fit, **unmeasured}.items() if v is not None}
    return json.dumps(kwargs) if _has_none(values) else values


def _has_none(value: Any) -> bool:
    """Whether a plain value is None, or holds one somewhere."""
    inner = value.values() if isinstance(value, Mapping) else value
    return value is None or (
        isinstance(value, Mapping | list | tuple) and any(map(_has_none, inner))
    )
