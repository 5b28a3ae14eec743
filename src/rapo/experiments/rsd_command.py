"""What `rapo rsd` does with its words: find the policy, read the horizons."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import ACTIONS
from rapo.experiments.demo import scripted_policy


class ConstantPolicy:
    """Always the same action, with its law."""

    batched = True

    def __init__(self, action: int) -> None:
        self.action = action

    def __call__(self, x: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Actions (E,) for observations (E, d)."""
        return np.full(len(x), self.action)

    def law(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """(E, 3) all mass on the action."""
        law = np.zeros((len(x), len(ACTIONS)))
        law[:, self.action] = 1
        return law


def find_policy(name: str) -> Any:
    """A policy from its name: a constant action, `scripted`, an SB3 file or `module:attribute`."""
    if name in ACTIONS:
        return ConstantPolicy(ACTIONS.index(name))
    if name == "scripted":
        return scripted_policy
    if name.endswith(".zip"):
        if not Path(name).exists():
            raise ValueError(f"there is no model at {name}")
        try:
            from stable_baselines3 import PPO
        except ImportError:
            raise ValueError(f"{name} needs stable-baselines3; install it to load it") from None
        try:
            return PPO.load(name, device="cpu")
        except Exception as error:  # zip, pickle and SB3 each have their own
            raise ValueError(f"{name} is not a saved PPO model: {error}") from error
    module, colon, attribute = name.partition(":")
    if colon and module and attribute:
        if (here := os.getcwd()) not in sys.path:  # the console script does not look here
            sys.path.insert(0, here)
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"cannot load the policy {name}: {error}") from error
    raise ValueError(
        f"no policy is called {name!r}; choose {', '.join(ACTIONS)}, scripted, an SB3 .zip or "
        "package.module:name"
    )


def parse_horizons(text: str) -> tuple[int, int, int]:
    """Three whole numbers from `500,200,500`."""
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"horizons must be three whole numbers such as 500,200,500, got {text!r}")
    exposure, decay, replay = (int(part) for part in parts)
    return exposure, decay, replay
