"""`Shield`: actions blocked by what Monte-Carlo rollouts under `P0` say about them."""

from __future__ import annotations

from math import isfinite
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.setting import ACTIONS, DECAY
from rapo.cascade.stats import SENSITIVE
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.action_probs import checked_law, sample
from rapo_core.checks import UserError, whole_number

Float = npt.NDArray[np.floating[Any]]

ROLLOUTS = 0xFFFFFFFD
"""Counter, beyond any clock, that turns a phase's key into the key of its rollouts: a shield that
shared the environment's own draws would know the future instead of estimating it."""


class Base(Protocol):
    """What a shield asks of the policy it guards: frozen, and telling its law."""

    def reset(self, episodes: int, seed: int) -> None:
        """Forget everything."""
        ...

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        """Actions (E,) and their law (E, 3) from observations (E, d) and draws (E,) in [0, 1)."""
        ...


class Shield:
    """Reachability-based action blocking over a base policy.

    At every step each action is tried in `rollouts` simulations of `horizon` steps under `P0`, from
    the present active set, the action held and the stimulus on or off as it is now. An action is
    blocked if its expected sensitive mass, relative to `reference`, exceeds `threshold`; the base
    policy's law is renormalised over the others. The least harmful action is never blocked, and
    is taken if the policy gives no probability to any that is left. Between equally harmful ones,
    as all are while the stimulus is off, the base policy decides.

    The shield remembers nothing: what it does follows from the present active sets, phases and
    clocks and the keys of the episodes, so a coupled Replay repeats Exposure under `P0`.

    Args:
        policy: a frozen agent that tells its action law.
        threshold: largest relative mass allowed, > 0; infinite blocks nothing.
        reference: sensitive mass in nodes that counts as 1, > 0; the constant-aggressive policy's
            under `P0` makes thresholds comparable between graphs.
        rollouts: simulations per episode and action, >= 1.
        horizon: steps of each, >= 1.
    """

    def __init__(
        self,
        policy: Base,
        threshold: float,
        *,
        reference: float,
        rollouts: int = 16,
        horizon: int = 100,
    ) -> None:
        if isinstance(policy, type) or not (hasattr(policy, "act") and hasattr(policy, "reset")):
            raise UserError(
                f"policy must be an agent with reset(episodes, seed) and act(x, draws), got "
                f"{policy!r}"
            )
        self.policy = policy
        self.threshold = _positive("threshold", threshold, infinite=True)
        self.reference = _positive("reference", reference)
        self.rollouts = whole_number("rollouts", rollouts, 1)
        self.horizon = whole_number("horizon", horizon, 1)
        self.transitions = 0
        """Transitions simulated since `watch`."""
        self.steps = 0
        """Steps guarded since `watch`, summed over the episodes."""
        self._env: GraphDiffusionVectorEnv | None = None
        self._simulator: Cascade | None = None
        self._actions = np.zeros(0, np.int64)

    @property
    def transitions_per_step(self) -> float:
        """Simulated transitions per environment step since `watch`; 0 before the first step."""
        return self.transitions / self.steps if self.steps else 0.0

    def watch(self, env: GraphDiffusionVectorEnv) -> None:
        """Guard the episodes of `env` from now on; the counts of compute begin anew."""
        if not isinstance(env, GraphDiffusionVectorEnv):
            raise UserError(
                f"a shield watches a GraphDiffusionVectorEnv, got {type(env).__name__}; of a "
                "single environment give env.unwrapped.vector"
            )
        self._env = env
        tried = np.repeat(np.arange(len(ACTIONS)), self.rollouts)
        self._actions = np.tile(tried, env.num_envs)
        self._simulator = Cascade(
            env.graph,
            len(self._actions),
            setting=env.setting,
            regions=np.zeros(env.graph.n, np.int64),  # fields are not read: one region is cheapest
            deformation="off",
            scheduled=False,
            threads=env.engine.threads,
        )
        self.transitions = self.steps = 0

    def reset(self, episodes: int, seed: int) -> None:
        """Reset the base policy; the shield has nothing to forget."""
        env, _ = self._watched()
        if episodes != env.num_envs:
            raise UserError(
                f"the watched environment runs {env.num_envs} episodes, got {episodes}; watch the "
                "environment that is stepped"
            )
        self.policy.reset(episodes, seed)

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Actions (E,) and the shielded law (E, 3) that they follow.

        Args:
            x: observations (E, d), for the base policy.
            draws: (E,) uniform in [0, 1).
        """
        env, _ = self._watched()
        if len(x) != env.num_envs:
            raise UserError(
                f"the watched environment runs {env.num_envs} episodes, got {len(x)} "
                "observations; watch the environment that is stepped"
            )
        bare = self.policy.act(x, draws)[1]
        if bare is None:
            raise UserError(
                f"{type(self.policy).__name__} tells no action law, so nothing can be "
                "renormalised; give a policy whose act() returns (actions, law)"
            )
        law = checked_law(np.asarray(bare, np.float64), env.num_envs)
        if law.shape[1] != len(ACTIONS):
            raise UserError(
                f"the law must be over the {len(ACTIONS)} actions {ACTIONS}, got shape {law.shape}"
            )
        shielded = shield_law(law, self.estimate(), self.threshold)
        self.steps += env.num_envs
        return sample(shielded, draws), shielded

    def estimate(self) -> npt.NDArray[np.float64]:
        """(E, 3) expected sensitive mass of each action over the horizon, relative to `reference`.

        Rollout j has the same draws under every action, so their difference is that of the actions.
        """
        env, simulator = self._watched()
        engine = env.engine
        z = engine.stimulus
        if not z.all():
            raise UserError(
                f"episodes {np.flatnonzero(z == 0)[:5].tolist()} of the watched environment are "
                "not started; call reset() on it first"
            )
        tries = len(ACTIONS) * self.rollouts
        now = derive(derive(engine.keys, ROLLOUTS), engine.clock)
        keys = derive(now[:, None], np.arange(self.rollouts))
        simulator.start(np.tile(keys, (1, len(ACTIONS))).reshape(-1), np.repeat(z, tries))
        quiet = np.repeat(engine.phase == DECAY, tries)
        if quiet.any():
            simulator.enter(DECAY, quiet)
        simulator.place(np.repeat(engine.active, tries, axis=0))
        trace = simulator.run(self._actions, self.horizon)
        self.transitions += len(self._actions) * self.horizon
        # counts are whole numbers: their sum is exact, whatever its order
        total = trace[:, SENSITIVE].sum(axis=0, dtype=np.float64)
        total = total.reshape(env.num_envs, len(ACTIONS), self.rollouts).sum(axis=2)
        return np.asarray(total / (self.rollouts * self.horizon * self.reference))

    def _watched(self) -> tuple[GraphDiffusionVectorEnv, Cascade]:
        if self._env is None or self._simulator is None:
            raise UserError(
                "the shield watches no environment yet; call watch(env) with the vector "
                "environment that is stepped"
            )
        return self._env, self._simulator


def shield_law(law: Float, harm: Float, threshold: float) -> npt.NDArray[np.float64]:
    """The law (E, A) without the actions whose `harm` (E, A) exceeds `threshold`.

    The least harmful action always stays; it gets all the mass where the law gives none to what is
    left (the last of several, as later actions inject less).

    >>> shield_law(np.array([[0.5, 0.25, 0.25]]), np.array([[3.0, 1.0, 0.5]]), 2.0)
    array([[0. , 0.5, 0.5]])
    >>> shield_law(np.array([[1.0, 0.0, 0.0]]), np.array([[3.0, 1.0, 0.5]]), 0.1)
    array([[0., 0., 1.]])
    """
    least = harm.min(axis=1, keepdims=True)
    allowed = harm <= np.maximum(threshold, least)
    kept = np.where(allowed, law, 0.0)
    mass = kept.sum(axis=1, keepdims=True)
    last = harm.shape[1] - 1 - harm[:, ::-1].argmin(axis=1)
    safest = np.eye(harm.shape[1])[last]
    renormalised = np.where(mass > 0, kept / np.where(mass > 0, mass, 1), safest)
    # rows without a block keep the bits of the base policy's law
    return np.where(allowed.all(axis=1, keepdims=True), law, renormalised)


def _positive(name: str, value: Any, *, infinite: bool = False) -> float:
    """`value` as a float if it is a number > 0."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if is_number and not isinstance(value, bool) and value > 0 and (infinite or isfinite(value)):
        return float(value)
    also = ", perhaps infinite" if infinite else " and finite"
    raise UserError(f"{name} must be a number > 0{also}, got {value!r}")
