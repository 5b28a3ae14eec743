"""Policies by what a user names: an action, a trained run, a saved model or `module:name`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import ACTIONS, AGGRESSIVE, MODERATE
from rapo.names import import_named
from rapo.rsd.saved_models import load_saved_model
from rapo_core.checks import UserError

SCRIPTED = "scripted"
"""Name of `scripted_policy`, which reads the observations of a graph."""
SCRIPTED_SHARE = 0.03
"""Share of active nodes above which the scripted policy holds back."""


class ConstantPolicy:
    """Always take the same action, and say so as action probabilities.

    Args:
        action: the number of the action.
        actions: how many actions the environment has; a graph has three.
    """

    batched = True

    def __init__(self, action: int, actions: int = len(ACTIONS)) -> None:
        self.action, self.actions = action, actions

    @property
    def constant_action(self) -> int:
        """The action, by which RSD runs whole phases without asking at every step."""
        return self.action

    def __call__(self, x: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Actions (E,) for observations (E, d)."""
        return np.full(len(x), self.action)

    def law(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Action probabilities (E, A): 1 for the action, 0 for all others."""
        probabilities = np.zeros((len(x), self.actions))
        probabilities[:, self.action] = 1
        return probabilities


def scripted_policy(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Inject aggressively, moderately while more than 3% of the nodes are active; x is (E, 5)."""
    return np.where(x[:, 0] > SCRIPTED_SHARE, MODERATE, AGGRESSIVE)


scripted_policy.batched = True  # type: ignore[attr-defined]  # takes all observations at once


def is_run(name: str) -> bool:
    """Whether a name is that of a folder which `rapo train` wrote, or meant to be one."""
    return name.endswith(".pt") or (Path(name).is_dir() and name not in ACTIONS)


def find_policy(
    name: str, *, actions: int = len(ACTIONS), action_names: Sequence[str] = ACTIONS
) -> Any:
    """Return the policy that a user names.

    Args:
        name: the name or number of a constant action, `scripted` on a graph, the folder of a
            run, a .zip of Stable-Baselines3, or `package.module:name`.
        actions: how many actions the environment has.
        action_names: names of the first actions; empty where actions have numbers alone.

    Raises:
        UserError: nothing has that name, or what has it cannot be loaded.
    """
    if name in action_names:
        return ConstantPolicy(action_names.index(name), actions)
    if name.isdecimal():
        if int(name) >= actions:
            raise UserError(f"action must be in 0..{actions - 1}, got {name}")
        return ConstantPolicy(int(name), actions)
    if name == SCRIPTED and action_names:
        return scripted_policy
    if name.endswith(".zip"):
        return load_saved_model(name)
    if is_run(name):
        from rapo.agents.saved_run import load_agent

        policy = load_agent(name)[0]
        return getattr(policy, "actor", policy)
    if ":" in name:
        return import_named(name, "policy")
    choices = [*action_names, SCRIPTED] if action_names else []
    choices += [f"0..{actions - 1}"] if actions else []
    raise UserError(
        f"no policy is called {name!r}; choose {', '.join([*choices, 'a '])}"
        "folder that rapo train wrote, a .zip of Stable-Baselines3 or package.module:name"
    )
