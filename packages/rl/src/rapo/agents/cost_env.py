"""Any Gymnasium environment as a task for PPO: its copies side by side, a cost beside the reward.

A cost is an entry of `info` after the step (`info:KEY`), or a function of (observation, action,
info): the observation that the action was taken at, as the environment gives it; the action; the
`info` that came back with the step. Steps are undiscounted in an episode's return and cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation

from rapo.names import import_named, search_current_folder
from rapo_core.checks import UserError

CostFunction = Callable[[Any, Any, Mapping[str, Any]], float]
KEY = "cost"
"""Entry of a task's `info` that holds the costs of a step, (N,)."""
PROBED = 100
"""Random steps by which a cost is tried before anything is written."""
SEEDS, FOLD = 2**30, 2**29
"""Seeds of training are folded into FOLD numbers from SEEDS on, those of evaluation into the FOLD
after these: many environments take no larger ones."""

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


class NoKeyError(UserError):
    """`info` lacks the key of a cost."""


def find_cost(name: str) -> CostFunction:
    """The cost that `info:KEY` or `package.module:function` names; the current folder counts.

    Raises:
        ValueError: there is no such function.
    """
    module, _, key = name.partition(":")
    if module == "info" and key:
        return partial(_from_info, key)
    if not module or not key:
        raise UserError(f"a cost is info:KEY or package.module:function, got {name!r}")
    cost = import_named(name, "cost")
    if not callable(cost):
        raise UserError(f"the cost {name} must be a function, got {type(cost).__name__}")
    return cost  # type: ignore[no-any-return]


def _from_info(key: str, observation: Any, action: Any, info: Mapping[str, Any]) -> float:
    if key not in info:
        there = ", ".join(map(str, sorted(info, key=str))) or "nothing"
        raise NoKeyError(f"info has no {key!r} to be the cost; there is {there}")
    return info[key]  # type: ignore[no-any-return]


def make_env(name: str, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """`gymnasium.make`, its complaints in one line.

    Args:
        name: id, or `package:id` to import the package that registers it.
        options: keyword arguments of the environment.
    """
    search_current_folder()
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        text = " ".join(str(error).split())
        raise UserError(f"cannot make the environment {name}: {text}") from error


class Meter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells the cost of the last step, and the sums of the episodes that have ended.

    Args:
        env: with discrete actions; observations as they come.
        cost: of a step; None for none.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], cost: CostFunction | None) -> None:
        super().__init__(env)
        self._cost = cost
        self._seen: Any = None
        self._sums = np.zeros(3)
        self.cost = 0.0
        self.ended: list[npt.NDArray[np.float64]] = []
        """Return, cost and length of each."""

    def reset(self, **options: Any) -> Any:
        """Begin an episode; the cost of the last step stays."""
        self._sums = np.zeros(3)
        self._seen, info = self.env.reset(**options)
        return self._seen, info

    def step(self, action: Any) -> Any:
        """One step and its cost."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        self.cost = 0.0 if self._cost is None else self._number(action, info)
        self._sums += (float(reward), self.cost, 1)
        if terminated or truncated:
            self.ended.append(self._sums)
        self._seen = seen
        return seen, reward, terminated, truncated, info

    def _number(self, action: Any, info: Mapping[str, Any]) -> float:
        assert self._cost is not None
        try:
            value = float(self._cost(self._seen, action, info))
        except NoKeyError:
            raise
        except Exception as error:  # of a function that is not ours
            said = f"{type(error).__name__}: {error}"
            raise UserError(f"the cost fails {self._where(action)}: {said}") from error
        if not np.isfinite(value):
            raise UserError(f"a cost must be finite, got {value} {self._where(action)}")
        return value

    def _where(self, action: Any) -> str:
        seen = " ".join(repr(self._seen).split())
        return f"for action {action} at {seen[:200]}"


class _FromZero(gymnasium.ActionWrapper[Any, Any, Any]):
    """Actions 0..n-1 for a discrete space that starts elsewhere."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.action_space, Discrete)
        self.start = env.action_space.start
        self.action_space = Discrete(env.action_space.n)

    def action(self, action: Any) -> Any:
        return self.start + action


def metered(make: MakeEnv, cost: CostFunction | None) -> tuple[gymnasium.Env[Any, Any], Meter]:
    """One copy with flat observations and actions from 0, and its meter.

    Raises:
        ValueError: actions are not discrete, or observations cannot be made flat.
    """
    env = make()
    space = env.action_space
    if not isinstance(space, Discrete):
        raise UserError(f"actions must be discrete, {_name(env)} has {space}")
    meter = Meter(env, cost)
    whole: gymnasium.Env[Any, Any] = meter
    if space.start != 0:
        whole = _FromZero(whole)
    seen = env.observation_space
    if not isinstance(seen, Box) or len(seen.shape) != 1:
        if not seen.is_np_flattenable:
            raise UserError(f"observations of {_name(env)} cannot be made flat: {seen}")
        whole = FlattenObservation(whole)
    return whole, meter


def _name(env: gymnasium.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


class GymTask(SyncVectorEnv):
    """Copies of an environment with autoreset `SameStep`, whose `info` holds the cost alone.

    Args:
        make: makes one copy.
        copies: how many.
        cost: of a step; None for none.
    """

    def __init__(self, make: MakeEnv, copies: int, cost: CostFunction | None = None) -> None:
        self.meters: list[Meter] = []

        def one() -> gymnasium.Env[Any, Any]:
            env, meter = metered(make, cost)
            self.meters.append(meter)
            return env

        super().__init__([one] * copies, autoreset_mode=AutoresetMode.SAME_STEP)
        self.meters = self.meters[-copies:]  # Gymnasium may make one more to look at

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """As Gymnasium's; a whole number seeds copy i with itself + i, as `seeds_from` has it."""
        if isinstance(seed, int):
            seed = seeds_from(seed, self.num_envs)
        x, _ = super().reset(seed=seed, options=options)
        return np.asarray(x, np.float32), {}

    def step(self, actions: Any) -> Any:
        """As Gymnasium's, `info` with the costs (N,) and, where episodes end, `final_obs`."""
        x, reward, terminated, truncated, info = super().step(actions)
        reported = {KEY: np.array([meter.cost for meter in self.meters])}
        if "final_obs" in info:
            reported["final_obs"] = info["final_obs"]
        return np.asarray(x, np.float32), reward, terminated, truncated, reported

    def ended(self) -> npt.NDArray[np.float64]:
        """(E, 3) return, cost and length of the episodes that have ended since last asked."""
        rows = [row for meter in self.meters for row in meter.ended]
        for meter in self.meters:
            meter.ended = []
        return np.array(rows).reshape(-1, 3)

    def snapshot(self) -> dict[str, Any]:
        """Nothing: a foreign environment cannot be frozen."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing either; who goes on begins new episodes."""


def seeds_from(seed: int, count: int, *, held_out: bool = False) -> list[int]:
    """`count` seeds in a row; those that are held out are met by no training, whatever its seed."""
    first = SEEDS + FOLD * held_out
    return [first + (seed + i) % FOLD for i in range(count)]


def probe(make: MakeEnv, cost: CostFunction | None, seed: int = 0) -> None:
    """Random steps with one copy: what is wrong with environment or cost shows at once.

    Raises:
        ValueError: as `metered`, or the cost is no finite number, or `info` lacks its key.
    """
    env, _ = metered(make, cost)
    env.reset(seed=SEEDS + seed)
    env.action_space.seed(seed)
    for _ in range(PROBED):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    env.close()


def means(rows: Sequence[Any] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(3,) mean return, cost and length of episodes (E, 3); NaN without any."""
    table = np.asarray(rows, np.float64).reshape(-1, 3)
    return table.mean(axis=0) if len(table) else np.full(3, np.nan)
