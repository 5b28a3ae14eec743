"""PPO of Stable-Baselines3, with the network and the numbers of our own `PPOConfig`."""

from __future__ import annotations

from typing import Any

import numpy as np


class Sb3PPO:
    """Its PPO as it comes: Adam and the order of operations are its own.

    Args:
        env: an SB3 `VecEnv`.
        config: our `PPOConfig`; every number that SB3 knows too is taken over.
    """

    def __init__(self, env: Any, config: Any) -> None:
        import torch
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import Logger

        self.config = config
        width = [config.hidden, config.hidden]
        self.model = PPO(
            "MlpPolicy", env, n_steps=config.length, batch_size=config.minibatch,
            n_epochs=config.epochs, learning_rate=config.lr, clip_range=config.clip,
            gamma=config.gamma, gae_lambda=config.gae_lambda, ent_coef=config.entropy,
            vf_coef=config.value_coef, max_grad_norm=config.max_grad_norm, seed=0, device="cpu",
            policy_kwargs={
                "net_arch": {"pi": width, "vf": width}, "activation_fn": torch.nn.ReLU,
            },
        )  # fmt: skip
        self.model.set_logger(Logger(None, []))  # else every call opens a folder for its log

    @property
    def weights(self) -> int:
        """Parameters of both networks."""
        return sum(p.numel() for p in self.model.policy.parameters())

    def run(self, rollouts: int) -> None:
        """Collect and learn."""
        steps = rollouts * self.config.rollout
        self.model.learn(steps, log_interval=None, reset_num_timesteps=False)


def canned_env(canned: Any, observation: Any, action: Any) -> Any:
    """An SB3 `VecEnv` whose `canned.step()` gives observations and which episodes are over."""
    from stable_baselines3.common.vec_env import VecEnv

    class CannedVecEnv(VecEnv):
        def reset(self) -> Any:
            return canned.first

        def step_async(self, actions: Any) -> None:
            pass

        def step_wait(self) -> Any:
            x, over = canned.step()
            infos = nothing
            if over.any():
                infos = [
                    {"terminal_observation": x[n], "TimeLimit.truncated": True} if over[n] else {}
                    for n in range(self.num_envs)
                ]
            # the reward is fresh: SB3 adds the value of the last observation to it, in place
            return x, np.ones(self.num_envs, np.float32), over, infos

        def close(self) -> None:
            pass

        def get_attr(self, name: str, indices: Any = None) -> list[Any]:
            return [None] * self.num_envs

        def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
            pass

        def env_method(self, name: str, *args: Any, **kwargs: Any) -> list[Any]:
            return [None] * self.num_envs

        def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

    nothing: list[dict[str, Any]] = [{} for _ in range(canned.envs)]
    return CannedVecEnv(canned.envs, observation, action)


def single_envs(count: int, **options: Any) -> Any:
    """An SB3 `DummyVecEnv` of the registered environment, one copy after the other."""
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv

    import rapo  # noqa: F401  # registers the environment

    def make() -> Any:
        return gymnasium.make("rapo/GraphDiffusion-v0", disable_env_checker=True, **options)

    return DummyVecEnv([make] * count)
