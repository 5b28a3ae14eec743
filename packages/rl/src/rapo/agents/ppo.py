"""PPO with Lagrangian duals: collect, estimate, update. To be read from top to bottom.

We wrote PPO ourselves because neither Stable-Baselines3 nor TorchRL has constrained recurrent PPO.
The policy acts alone; the critic sees a whole rollout at once. Steps whose costs have not all
arrived yet are learned from in the next rollout. Every rollout has a generator of its own, seeded
by the seed of the run and the number of the rollout, so that no generator has to be saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rapo.agents.advantage import advantages
from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint, Duals
from rapo.agents.loss import CLIPPED, ENTROPY, KL, log_probability, policy_gradient
from rapo.agents.model import Model, Seen
from rapo.agents.normaliser import Normaliser
from rapo.agents.rollout import Rollout, Steps, phases_of
from rapo.cascade.setting import DECAY
from rapo_core.checks import UserError

Float = npt.NDArray[np.float32]

TRAINING_SEEDS = 2**40
"""Environments are seeded from here on; evaluations, with small seeds, meet other episodes."""

_SAVED = (
    "updates", "weights", "adam", "normaliser", "duals", "x", "memory", "forget", "phase", "costs",
    "incomplete", "env",
)  # fmt: skip
"""What `PPO.save` returns, by name."""


class PPO:
    """The optimiser of one policy on one vector environment.

    Args:
        env: a Gymnasium vector environment with autoreset `SameStep`, flat observations and
            discrete actions.
        config: numbers of the optimiser.
        constraints: costs in `info` and their budgets.
        network: `mlp` or `gru`.
        seed: of weights, actions, minibatches and the environment.
        episode: steps of an episode if all have the same; the first episodes are then cut at
            different lengths, so that a rollout always holds steps of every phase.
    """

    def __init__(
        self,
        env: Any,
        config: PPOConfig,
        *,
        constraints: Sequence[Constraint] = (),
        network: str = "mlp",
        seed: int = 0,
        episode: int | None = None,
    ) -> None:
        if env.num_envs != config.envs:
            raise UserError(f"the environment must run {config.envs} copies, got {env.num_envs}")
        self.env, self.config, self.constraints = env, config, tuple(constraints)
        size = int(env.single_observation_space.shape[0])
        actions = int(env.single_action_space.n)
        self.x, info = env.reset(seed=TRAINING_SEEDS + seed * config.envs)
        # x does not tell Exposure from Replay or the washout, whose values differ widely: without
        # the phase the critic's errors drown what an action earns. It is of no use to the policy.
        self.phase = phases_of(info, config.envs)
        signals, extra = 1 + len(self.constraints), self.phase.shape[1]
        self.model = Model(network, size, actions, signals, config.hidden, extra)
        self.model.initialise(seed)
        self.normaliser = Normaliser(size)
        self.duals = Duals(self.constraints, config.dual_lr, config.dual_start, config.dual_cap)
        self.buffer = self.model.buffer
        self.buffer.values.grad = self.buffer.gradient
        self.adam = torch.optim.Adam([self.buffer.values], config.lr, eps=1e-5, fused=True)
        self.seed, self.updates = seed, 0
        self.cuts = (
            np.zeros(config.envs, np.int64)
            if episode is None
            else (1 + np.arange(config.envs)) * episode // config.envs
        )
        self.state = self.model.start(config.envs)
        self.forget = np.ones(config.envs, np.bool_)
        # a cost that never occurs must not keep the steps at an episode's end from teaching
        self.lags = np.array([0, *(c.lag if c.reference > 0 else 0 for c in self.constraints)])
        self.costs = np.zeros((config.envs, signals - 1), np.float32)
        costs = [config.cost_gamma] * (signals - 1)
        self.discounts = np.array([config.gamma, *costs], np.float32)
        self.incomplete = Steps.none(
            config.envs, size, self.model.memory, size + self.model.memory + extra, signals
        )
        self.env_seconds = 0.0

    @property
    def steps(self) -> int:
        """Steps of all environments so far."""
        return self.updates * self.config.rollout

    @torch.no_grad()
    def iterate(self) -> dict[str, float]:
        """One rollout and its update; what happened, as means over the rollout."""
        rng = np.random.default_rng((self.seed, self.updates))
        raw, rollout = self.collect(rng)
        first = self.config.steady and self.updates == 0
        if first:  # the networks know nothing yet: let them begin with what they will see
            self.normaliser.update(raw)
            seen = torch.from_numpy(self.normaliser(raw))
            rollout.seen.x.copy_(seen[: len(rollout.actions)])
            rollout.features[:, : self.model.inputs] = rollout.seen.x
            self.incomplete.x.flatten(0, 1).copy_(seen[len(rollout.actions) :])
            self.incomplete.features[..., : self.model.inputs] = self.incomplete.x
            ends = self.incomplete.last[:, : self.model.inputs]
            ends.copy_(torch.from_numpy(self.normaliser(ends.numpy())))
        means = self.update(rollout, rng)
        if not first:
            moved = [torch.from_numpy(part) for part in self.normaliser.update(raw)]
            if self.config.steady:
                self.model.rewrite(*moved)
                self.incomplete.rewrite(*moved)
        means["reward"] = float(rollout.means[0])
        for constraint, cost in zip(self.constraints, rollout.means[1:], strict=True):
            means[f"cost_{constraint.name}"] = float(cost)
        self.duals.ascend(self.spent(rollout.means[1:]))
        for constraint, value in zip(self.constraints, self.duals.values, strict=True):
            means[f"dual_{constraint.name}"] = float(value)
        self.updates += 1
        return means

    def spent(self, costs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What the duals hold against the budgets: mean costs (K,) of a step of the rollout."""
        return costs

    def collect(self, rng: np.random.Generator) -> tuple[Float, Rollout]:
        """Play one rollout; return its observations (T * N, d) and the steps to learn from.

        A cost arrives `lag` steps after the action that caused it, so the newest steps, as many as
        the largest lag, are not complete yet. They wait in `self.incomplete` and come first in the
        next rollout. At the start of training fewer steps are complete than were played, or none.
        """
        config, model = self.config, self.model
        raw, means, fresh = self._run(rng)
        steps = self.incomplete.joined(fresh)
        complete = max(0, len(steps) - int(self.lags.max()))
        self.incomplete = steps.since(complete)

        # values once per rollout, those after the last step and after truncations with them
        state = self.state * torch.from_numpy(~self.forget)[:, None]
        after = model.act(torch.from_numpy(self.normaliser(self.x)), state)[2]
        after = self._with_phase(after, self.phase)
        flat, shape = steps.features.flatten(0, 1), steps.signals.shape
        answers: Float = model.critic.forward(torch.cat([flat, after, steps.last])).numpy()
        answers = answers / (1 - self.discounts)
        values = answers[: len(flat)].reshape(shape)
        nexts = np.concatenate([values[1:], answers[None, len(flat) : len(flat) + config.envs]])
        nexts[steps.ends[:, 0], steps.ends[:, 1]] = answers[len(flat) + config.envs :]
        nexts[steps.terminated] = 0

        decay = [config.gamma * config.gae_lambda, *(c.decay for c in self.constraints)]
        gains, known = advantages(
            steps.signals, values, nexts, steps.terminated, steps.truncated, self.discounts,
            decay, self.lags,
        )  # fmt: skip
        window = slice(complete)
        seen = Seen(steps.x[window].flatten(0, 1), steps.keep[window], steps.states[window])
        return raw, Rollout(
            seen, steps.features[window].flatten(0, 1), steps.actions[window].reshape(-1),
            steps.log_p[window].reshape(-1), steps.signals[window], values[window], gains[window],
            known[window], means,
        )  # fmt: skip

    def _run(self, rng: np.random.Generator) -> tuple[Float, npt.NDArray[np.float64], Steps]:
        """T steps: raw observations (T * N, d), means of reward and costs (1 + K,), the steps."""
        config, model, K = self.config, self.model, len(self.constraints)
        T, N = config.length, config.envs
        noise = -np.log(rng.exponential(size=(T, N, model.actions))).astype(np.float32)  # Gumbel
        raw = np.empty((T, N, model.inputs), np.float32)
        x = np.empty((T, N, model.inputs), np.float32)
        keep, states = torch.ones(T, N), torch.empty(T, N, model.memory)
        features: list[Tensor] = []
        logits = np.empty((T, N, model.actions), np.float32)
        actions = np.empty((T, N), np.int64)
        signals = np.empty((T, N, 1 + K), np.float32)
        terminated, truncated = np.zeros((2, T, N), np.bool_)
        last: dict[tuple[int, int], Float] = {}  # what the critic sees of a truncated episode's end

        for t in range(T):
            raw[t], x[t] = self.x, self.normaliser(self.x)
            if model.memory and self.forget.any():
                keep[t] = torch.from_numpy(~self.forget)
                self.state = self.state * keep[t, :, None]
            states[t] = self.state
            scores, self.state, shown = model.act(torch.from_numpy(x[t]), self.state)
            features.append(self._with_phase(shown, self.phase))
            logits[t] = scores.numpy()
            actions[t] = (logits[t] + noise[t]).argmax(axis=1)
            before = perf_counter()
            self.x, reward, terminated[t], truncated[t], info = self.env.step(actions[t])
            self.env_seconds += perf_counter() - before
            signals[t, :, 0] = reward
            for k, constraint in enumerate(self.constraints):
                signals[t, :, 1 + k] = info[constraint.key] * constraint.scale
            for n in np.flatnonzero(truncated[t]).tolist():
                last[t, n] = self._features(info["final_obs"][n], self.phase[n], n)
            self.phase = phases_of(info, N)
            cut = (self.cuts == self.updates * T + t + 1) & ~(terminated[t] | truncated[t])
            if cut.any():
                for n in np.flatnonzero(cut).tolist():
                    last[t, n] = self._features(self.x[n], self.phase[n], n)
                self.x, info = self.env.reset(options={"reset_mask": cut})
                self.phase = phases_of(info, N)
                truncated[t] |= cut
            self.forget = terminated[t] | truncated[t]
            if "phase" in info:  # the memory of a policy starts anew with Exposure and with Replay
                self.forget = self.forget | ((info["clock"] == 0) & (info["phase"] != DECAY))

        log_p = np.empty(T * N, np.float32)
        log_probability(logits.reshape(T * N, -1), actions.reshape(-1), log_p)
        means = signals.mean(axis=(0, 1), dtype=np.float64)
        signals[..., 1:] = self._new(signals[..., 1:], terminated | truncated)
        shown = torch.stack(features)
        ends = np.array(list(last), np.int64).reshape(-1, 2)
        finals = torch.from_numpy(np.array(list(last.values()), np.float32))
        return raw.reshape(T * N, -1), means, Steps(
            torch.from_numpy(x), keep, states, shown, finals.view(len(ends), shown.shape[2]),
            actions, log_p.reshape(T, N), signals, terminated, truncated, ends,
        )  # fmt: skip

    def _new(self, costs: Float, ends: npt.NDArray[np.bool_]) -> Float:
        """The increases of costs (T, N, K): each cost without what it retains of the last step."""
        retained = np.array([c.retained for c in self.constraints], np.float32)
        before = np.concatenate([self.costs[None], np.where(ends[..., None], 0, costs)])
        self.costs = before[-1]
        new = (costs - retained * before[:-1]) / (1 - self.discounts[1:] * retained)
        return np.asarray(new, np.float32)

    def update(self, rollout: Rollout, rng: np.random.Generator) -> dict[str, float]:
        """Several passes of clipped policy gradients and value regression; means of the last.

        A step whose costs were never to arrive teaches the policy nothing, and the critic nothing
        of those.
        """
        config, model = self.config, self.model
        if not len(rollout.actions):
            return dict.fromkeys(("entropy", "kl", "clipped", "value_loss"), nan)
        gain = self.duals.weigh(rollout.advantages).reshape(-1)
        taught = rollout.known.all(axis=2).reshape(-1)
        if taught.any():
            gain = (gain - gain[taught].mean()) / (gain[taught].std() + 1e-8)
        gain[~taught] = 0
        known = None
        if not taught.all():
            known = torch.from_numpy(rollout.known.reshape(len(gain), -1).astype(np.float32))
        # the critic answers in reward per step, (1 - gamma) V: of order 1 whatever the horizon
        targets = torch.from_numpy(
            (rollout.advantages + rollout.values).reshape(len(gain), -1) * (1 - self.discounts)
        )
        T, N = rollout.known.shape[:2]
        pieces, size = model.pieces(T, N, config.minibatch, config.bptt)
        for _ in range(config.epochs):
            order = rng.permutation(pieces)
            sums, misfit, batches = np.zeros(3), 0.0, 0
            for start in range(0, pieces, size):
                rows, logits = model.forward(rollout.seen, order[start : start + size], config.bptt)
                slope = torch.empty_like(logits)
                sums += policy_gradient(
                    logits.numpy(), rollout.actions[rows], rollout.log_p[rows], gain[rows],
                    config.clip, config.entropy, slope.numpy(),
                )  # fmt: skip
                model.backward(slope)
                index = torch.from_numpy(rows)
                guess = model.critic.forward(rollout.features.index_select(0, index))
                error = guess - targets.index_select(0, index)
                if known is not None:
                    error *= known.index_select(0, index)
                misfit += float(error.square().mean())
                model.critic.backward(error * (2 * config.value_coef / len(rows)))
                norm = float(torch.linalg.vector_norm(self.buffer.gradient))
                if not isfinite(norm):
                    raise UserError(
                        f"training diverged after {self.steps:,} steps: the gradient is {norm}; "
                        f"lower lr (now {config.lr:g})"
                    )
                if norm > config.max_grad_norm:
                    self.buffer.gradient.mul_(config.max_grad_norm / norm)
                self.adam.step()
                batches += 1
        return {
            "entropy": sums[ENTROPY] / batches,
            "kl": sums[KL] / batches,
            "clipped": sums[CLIPPED] / batches,
            "value_loss": misfit / batches,
        }

    def _features(self, x: Float, phase: Float, n: int) -> Float:
        """What the critic sees of one more observation (d,) of environment n; memory unchanged."""
        seen = torch.from_numpy(self.normaliser(np.asarray(x, np.float32)[None]))
        shown = self.model.act(seen, self.state[n : n + 1])[2]
        return np.asarray(self._with_phase(shown, phase[None]).numpy()[0])

    def _with_phase(self, shown: Tensor, phase: Float) -> Tensor:
        """What the critic sees, (N, f + extra)."""
        if not self.model.extra:
            return shown
        return torch.cat((shown, torch.from_numpy(phase)), dim=1)

    def save(self) -> dict[str, Any]:
        """Everything that evolves, between two rollouts; the environment's snapshot included."""
        moments = self.adam.state[self.buffer.values]
        return {
            "updates": self.updates,
            "weights": self.buffer.values.clone(),
            "adam": {name: value.clone() for name, value in moments.items()},
            "normaliser": self.normaliser.state(),
            "duals": self.duals.values.copy(),
            "x": np.asarray(self.x).copy(),
            "memory": self.state.clone(),
            "forget": self.forget.copy(),
            "phase": self.phase.copy(),
            "costs": self.costs.copy(),
            "incomplete": Steps.of(self.incomplete.state()).state(),
            "env": self.env.snapshot(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `save` gave, in a PPO made alike."""
        lost = sorted(set(_SAVED) - set(state))
        if lost:
            raise UserError(f"the saved state lacks {lost}, so the run cannot go on")
        self.updates = int(state["updates"])
        self.buffer.values.copy_(torch.as_tensor(state["weights"]))
        moments = {k: torch.as_tensor(v).clone() for k, v in state["adam"].items()}
        self.adam.state[self.buffer.values] = moments
        self.normaliser.load(state["normaliser"])
        self.duals.values = np.asarray(state["duals"]).copy()
        self.env.restore(state["env"])
        self.x = np.asarray(state["x"]).copy()
        self.state = torch.as_tensor(state["memory"]).clone()
        self.forget = np.asarray(state["forget"]).copy()
        self.phase = np.asarray(state["phase"]).copy()
        self.costs = np.asarray(state["costs"]).copy()
        self.incomplete = Steps.of(state["incomplete"])
