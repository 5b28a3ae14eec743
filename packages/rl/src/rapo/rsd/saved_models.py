"""Models that Stable-Baselines3 saved: which algorithm wrote a file, and loading it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError

ALGORITHMS = {
    "PPO": "stable_baselines3",
    "A2C": "stable_baselines3",
    "DQN": "stable_baselines3",
    "RecurrentPPO": "sb3_contrib",
    "QRDQN": "sb3_contrib",
    "TRPO": "sb3_contrib",
}
"""Algorithms with discrete actions, and the package of each; in the order to try them."""


def load_saved_model(path: str | Path) -> Any:
    """A model from the .zip that its `save` wrote.

    The file does not name its algorithm, but its policy class and settings tell; the others are
    tried after the one they point to.

    Raises:
        ValueError: no such file, no package to load it with, or no algorithm that can.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"there is no model at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
    except Exception as error:  # zip and JSON each have their own
        raise UserError(f"{path} is not a model saved by Stable-Baselines3: {error}") from error
    likely = writer_of(data if isinstance(data, dict) else {})
    tried, absent = [], []
    for name in sorted(ALGORITHMS, key=lambda name: name != likely):
        try:
            algorithm = getattr(import_module(ALGORITHMS[name]), name)
        except (ImportError, AttributeError):
            absent.append(name)
            continue
        try:
            return algorithm.load(path, device="cpu")
        except Exception as error:  # zip, pickle, torch and SB3 each have their own
            tried.append(f"{name} ({type(error).__name__}: {error!s:.80})")
    if not tried:
        raise UserError(f"{path} needs stable-baselines3; install it to load it")
    also = f"; {', '.join(absent)} could not be tried: install sb3-contrib" if absent else ""
    raise UserError(f"{path} cannot be loaded; tried {', '.join(tried)}{also}")


def writer_of(data: Mapping[str, Any]) -> str:
    """The algorithm that most likely wrote a model, from the plain part of its file."""
    policy = data.get("policy_class")
    module = str(policy.get("__module__", "")) if isinstance(policy, Mapping) else ""
    if "recurrent" in module:
        return "RecurrentPPO"
    if "qrdqn" in module:
        return "QRDQN"
    if "exploration_schedule" in data or "dqn" in module:
        return "DQN"
    if "cg_max_steps" in data:
        return "TRPO"
    return "PPO" if "clip_range" in data else "A2C"
