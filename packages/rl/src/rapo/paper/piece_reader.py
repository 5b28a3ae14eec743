"""Pieces read back, checked before any table is made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapo.agents.methods import method_named
from rapo.paper.piece_folder import PACK_REMEDY, DamagedPackError, existing, read_content
from rapo.paper.pieces import METRICS, need_pyarrow
from rapo.paper.tasks import Evaluate
from rapo_core.checks import UserError


@dataclass(frozen=True)
class Piece:
    """What an evaluation found."""

    task: Evaluate
    frame: pd.DataFrame
    """A row per episode, with method, nodes and graph_seed."""
    curves: dict[str, Any] = field(repr=False)
    """By trace: mean and std over episodes, in bins of ten steps."""
    content: Mapping[str, Any] = field(repr=False)
    """The rest of the file."""


def read_piece(task: Evaluate, root: Path) -> Piece:
    """Read a piece; a missing or damaged one is named."""
    path = existing(task.piece(root))
    if not path.exists():
        raise UserError(f"{path} is missing; {_command(root)} makes it")
    if path.suffix != ".json":
        need_pyarrow()  # its lack is no damage
    try:
        content = read_content(task.piece(root))
        _check(content, task)
        frame = pd.DataFrame(content["episodes"])
        curves = {name: np.array(values, float) for name, values in content["curves"].items()}
        if content.get("key") != task.key or len(frame) != task.episodes:
            raise UserError(f"not {task.episodes} episodes of {task.key}")
    except DamagedPackError:
        raise
    except (OSError, ValueError, TypeError) as error:
        if path.stem == task.key:
            raise UserError(f"{path} is damaged ({error}); remove it and run again") from error
        raise UserError(f"{task.key} in {path} is damaged ({error}); {PACK_REMEDY}") from error
    config = task.policy.config
    frame.insert(0, "method", task.name)
    frame.insert(1, "nodes", config.nodes)
    frame.insert(2, "graph_seed", config.graph_seed)
    return Piece(task, frame, curves, content)


def _command(root: Path) -> str:
    """What makes the pieces of a folder; another preset than the folder's would be refused."""
    try:
        name = json.loads((root / "manifest.json").read_text(encoding="utf-8"))["preset"]
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    preset = f" --preset {name}" if isinstance(name, str) else ""
    return f"rapo reproduce all{preset} --out {root}"


def _check(content: Any, task: Evaluate) -> None:
    """Refuse what tables would stumble over later, where nobody knows the file any more."""
    if not isinstance(content, dict):
        raise UserError("not an object")
    for name in ("episodes", "curves"):
        if not isinstance(content.get(name), dict):
            raise UserError(f"{name} must be an object, got {content.get(name)!r:.40}")
    training, shield = (_object_or_none(content, name) for name in ("training", "shield"))
    _need_number("seconds", content.get("seconds"))
    if training.get("seconds") is not None:
        _need_number("seconds of training", training["seconds"])
    columns = list(METRICS)
    if "spec" in content:  # written by `run`, so all of it is there
        columns.append("OddsRatio")
        if method_named(task.method).shield is not None:
            for name in ("threshold", "transitions_per_step"):
                _need_number(f"{name} of shield", shield.get(name))
    for name in columns:
        if not isinstance(content["episodes"].get(name), list):
            raise UserError(f"no column {name}")
        for value in content["episodes"][name]:
            if value is not None:
                _need_number(name, value)


def _object_or_none(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part that may be absent or null; then empty."""
    value = content.get(name)
    if value is not None and not isinstance(value, dict):
        raise UserError(f"{name} must be an object or null, got {value!r:.40}")
    return value or {}


def _need_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{name} must be a number, got {value!r:.40}")
