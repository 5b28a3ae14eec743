"""Policies of all kinds behind one small interface: callables, torch modules, SB3, agents."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo_core.action_probs import checked_law, sample
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


class Actor(Protocol):
    """What RSD asks of a policy: frozen, with a memory that `reset` clears."""

    def reset(self, episodes: int, seed: int) -> None:
        """Forget everything; `seed` starts the draws of a policy that has its own generator."""
        ...

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        """Actions (E,) and, where the policy tells, their law (E, A).

        Args:
            x: observations (E, d).
            draws: (E,) uniform in [0, 1), to sample the law with: coupled runs share them.
        """
        ...


@runtime_checkable
class Watcher(Protocol):
    """An actor that also looks at the state of our environment, as a shield does."""

    def watch(self, env: Any) -> None:
        """Called once before the run with the environment whose episodes `act` is asked about."""
        ...


def as_actor(
    policy: Any,
    space: gymnasium.Space[Any],
    *,
    deterministic: bool = False,
    batched: bool | None = None,
) -> Actor:
    """Wrap a policy of any known kind.

    Args:
        policy: an `Actor`, perhaps a `Watcher` too; a torch module that maps observations (E, d)
            to logits (E, A); a Stable-Baselines3 model; or a callable from one observation to an
            action. A callable may have `reset()` to clear its memory, and `batched = True` if it
            takes (E, d). If it has `law(x)`, its action law (A,), that is asked instead and
            actions are drawn from it with keyed draws; a memory is then `law`'s to update.
        space: the action space of the environment.
        deterministic: take the most probable action where the policy has a law, and SB3's
            deterministic action.
        batched: overrides the policy's own `batched`.
    """
    if isinstance(policy, type):
        raise UserError(f"policy must be an instance, got the class {policy.__name__}")
    if hasattr(policy, "act") and hasattr(policy, "reset"):
        if not deterministic:
            return policy  # type: ignore[no-any-return]  # structurally an Actor
        return _GreedyWatcher(policy) if isinstance(policy, Watcher) else _Greedy(policy)
    if hasattr(policy, "predict"):
        _same_space(getattr(policy, "action_space", space), space)
        return _ModelActor(policy, space, deterministic)
    if hasattr(policy, "forward") and hasattr(policy, "parameters"):
        return _ModuleActor(policy, space, deterministic)
    if callable(policy):
        own = bool(getattr(policy, "batched", False)) if batched is None else batched
        return _CallableActor(policy, own, deterministic)
    raise UserError(
        f"policy must be a callable, a torch module, a Stable-Baselines3 model or an agent, got "
        f"{type(policy).__name__}"
    )


def _same_space(own: Any, space: gymnasium.Space[Any]) -> None:
    if own != space:
        raise UserError(f"the policy acts in {own}, the environment in {space}")


def choose(law: Float, draws: Float, deterministic: bool) -> tuple[npt.NDArray[np.int64], Float]:
    """Actions and the law they really follow: the given one, or all mass on its largest."""
    if not deterministic:
        return sample(law, draws), law
    actions = law.argmax(axis=1)
    return actions, np.eye(law.shape[1])[actions]


class _Greedy:
    """An agent's most probable action."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def reset(self, episodes: int, seed: int) -> None:
        self.actor.reset(episodes, seed)

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        law = self.actor.act(x, draws)[1]
        if law is None:
            raise UserError(
                f"{type(self.actor).__name__} tells no law, so its most probable action is not "
                "known; leave deterministic out"
            )
        return choose(checked_law(np.asarray(law), len(x)), draws, True)


class _GreedyWatcher(_Greedy):
    """The same of an agent that watches the environment."""

    def __copy__(self) -> _GreedyWatcher:
        return _GreedyWatcher(copy(self.actor))  # what it counts is inside

    def watch(self, env: Any) -> None:
        self.actor.watch(env)


class _CallableActor:
    """A plain function of one observation, or of a batch."""

    def __init__(self, policy: Any, batched: bool, deterministic: bool) -> None:
        self.policy, self.batched, self.deterministic = policy, batched, deterministic
        self.constant_action: int | None = getattr(policy, "constant_action", None)

    def reset(self, episodes: int, seed: int) -> None:
        if hasattr(self.policy, "reset"):
            self.policy.reset()

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        law = getattr(self.policy, "law", None)
        if law is not None:
            answer = np.asarray(law(x) if self.batched else [law(row) for row in x], float)
            return choose(checked_law(answer, len(x)), draws, self.deterministic)
        return np.asarray(self.policy(x) if self.batched else [self.policy(row) for row in x]), None


class _ModuleActor:
    """A torch module that gives logits."""

    def __init__(self, module: Any, space: gymnasium.Space[Any], deterministic: bool) -> None:
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise UserError(f"a module's logits need a Discrete action space, got {space}")
        self.module, self.actions, self.deterministic = module, int(space.n), deterministic

    def reset(self, episodes: int, seed: int) -> None:
        if hasattr(self.module, "reset"):
            self.module.reset()

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        import torch

        self.module.eval()  # frozen: no dropout, no running statistics
        with torch.no_grad():
            logits = self.module(torch.as_tensor(np.asarray(x, np.float32)))
            law = torch.softmax(logits.double(), dim=-1).numpy()
        if law.shape != (len(x), self.actions):
            raise UserError(
                f"the module must give logits of shape {(len(x), self.actions)}, got {law.shape}"
            )
        return choose(checked_law(law, len(x)), draws, self.deterministic)


class _ModelActor:
    """A Stable-Baselines3 model: its law where it has one, else its own `predict`."""

    def __init__(self, model: Any, space: gymnasium.Space[Any], deterministic: bool) -> None:
        self.model, self.deterministic = model, deterministic
        self.policy: Any = getattr(model, "policy", None)
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        self.tells = discrete and hasattr(self.policy, "get_distribution")
        self.recurrent = hasattr(self.policy, "lstm_actor")
        self.state: Any = None
        self.start = np.ones(0, np.bool_)

    def reset(self, episodes: int, seed: int) -> None:
        self.state, self.start = None, np.ones(episodes, np.bool_)
        if not self.tells and hasattr(self.model, "set_random_seed"):
            self.model.set_random_seed(seed)

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        if self.tells:
            return choose(checked_law(self._law(x), len(x)), draws, self.deterministic)
        actions, self.state = self.model.predict(
            x, state=self.state, episode_start=self.start, deterministic=self.deterministic
        )
        self.start = np.zeros(len(x), np.bool_)
        return np.asarray(actions), None

    def _law(self, x: Float) -> Float:
        import torch

        self.policy.set_training_mode(False)
        with torch.no_grad():
            seen, _ = self.policy.obs_to_tensor(x)
            if self.recurrent:
                if self.state is None:
                    layers, _, size = self.policy.lstm_hidden_state_shape
                    self.state = (torch.zeros(layers, len(x), size, device=seen.device),) * 2
                starts = torch.as_tensor(self.start, dtype=torch.float32, device=seen.device)
                law, self.state = self.policy.get_distribution(seen, self.state, starts)
                self.start = np.zeros(len(x), np.bool_)
            else:
                law = self.policy.get_distribution(seen)
        return np.asarray(law.distribution.probs.cpu().numpy(), np.float64)
