"""Policies of all kinds behind one small interface: callables, torch modules, SB3, agents."""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt

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

    def fork(self) -> Actor:
        """A copy with a memory of its own, of the same frozen parameters."""
        ...


def sample(law: Float, draws: Float) -> npt.NDArray[np.int64]:
    """Actions by inverting the law's distribution function; law (E, A), draws (E,) in [0, 1)."""
    edges = np.cumsum(np.asarray(law, np.float64), axis=1)
    chosen = (draws[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return np.asarray(np.minimum(chosen, law.shape[1] - 1))


def as_actor(
    policy: Any,
    space: gymnasium.Space[Any],
    *,
    deterministic: bool = False,
    batched: bool | None = None,
) -> Actor:
    """Wrap a policy of any known kind.

    Args:
        policy: an `Actor`; a torch module that maps observations (E, d) to logits (E, A); a
            Stable-Baselines3 model; or a callable from one observation to an action. A callable
            may have `reset()` to clear its memory, `law(x)` for its action law (A,), and
            `batched = True` if it takes (E, d) and returns (E,).
        space: the action space of the environment.
        deterministic: take the most probable action where the policy has a law, and SB3's
            deterministic action.
        batched: overrides the policy's own `batched`.
    """
    if all(hasattr(policy, name) for name in ("act", "reset", "fork")):
        return policy  # type: ignore[no-any-return]  # structurally an Actor
    if hasattr(policy, "predict"):
        _same_space(getattr(policy, "action_space", space), space)
        return _ModelActor(policy, space, deterministic)
    if hasattr(policy, "forward") and hasattr(policy, "parameters"):
        return _ModuleActor(policy, space, deterministic)
    if callable(policy):
        own = bool(getattr(policy, "batched", False)) if batched is None else batched
        return _CallableActor(policy, own)
    raise ValueError(
        f"policy must be a callable, a torch module, a Stable-Baselines3 model or an agent, got "
        f"{type(policy).__name__}"
    )


def _same_space(own: Any, space: gymnasium.Space[Any]) -> None:
    if own != space:
        raise ValueError(f"the policy acts in {own}, the environment in {space}")


class _CallableActor:
    """A plain function of one observation, or of a batch."""

    def __init__(self, policy: Any, batched: bool) -> None:
        self.policy, self.batched = policy, batched

    def reset(self, episodes: int, seed: int) -> None:
        if hasattr(self.policy, "reset"):
            self.policy.reset()

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        actions = self.policy(x) if self.batched else [self.policy(row) for row in x]
        return np.asarray(actions), self._law(x)

    def fork(self) -> _CallableActor:
        return _CallableActor(copy(self.policy), self.batched)

    def _law(self, x: Float) -> Float | None:
        law = getattr(self.policy, "law", None)
        if law is None:
            return None
        return np.asarray(law(x) if self.batched else [law(row) for row in x])


class _ModuleActor:
    """A torch module that gives logits."""

    def __init__(self, module: Any, space: gymnasium.Space[Any], deterministic: bool) -> None:
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise ValueError(f"a module's logits need a Discrete action space, got {space}")
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
            raise ValueError(
                f"the module must give logits of shape {(len(x), self.actions)}, got {law.shape}"
            )
        return (law.argmax(axis=1) if self.deterministic else sample(law, draws)), law

    def fork(self) -> _ModuleActor:
        return copy(self)


class _ModelActor:
    """A Stable-Baselines3 model: its law where it has one, else its own `predict`."""

    def __init__(self, model: Any, space: gymnasium.Space[Any], deterministic: bool) -> None:
        self.model, self.space, self.deterministic = model, space, deterministic
        self.recurrent = hasattr(getattr(model, "policy", None), "lstm_actor")
        self.state: Any = None
        self.start = np.ones(0, np.bool_)

    def reset(self, episodes: int, seed: int) -> None:
        self.state, self.start = None, np.ones(episodes, np.bool_)
        if hasattr(self.model, "set_random_seed"):
            self.model.set_random_seed(seed % 2**32)

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[Any], Float | None]:
        law = None if self.recurrent else self._law(x)
        if law is not None and not self.deterministic:
            return sample(law, draws), law
        actions, self.state = self.model.predict(
            x, state=self.state, episode_start=self.start, deterministic=self.deterministic
        )
        self.start = np.zeros(len(x), np.bool_)
        return np.asarray(actions), law

    def fork(self) -> _ModelActor:
        return copy(self)

    def _law(self, x: Float) -> Float | None:
        policy: Any = getattr(self.model, "policy", None)
        if not hasattr(policy, "get_distribution") or not isinstance(
            self.space, gymnasium.spaces.Discrete
        ):
            return None
        import torch

        policy.set_training_mode(False)
        with torch.no_grad():
            tensor, _ = policy.obs_to_tensor(x)
            distribution = policy.get_distribution(tensor).distribution
        return np.asarray(distribution.probs.cpu().numpy(), np.float64)
