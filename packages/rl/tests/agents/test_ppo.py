"""PPO: it learns what it should, bootstraps what it should, and follows its seed."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from toys import Counting, Toy, collected, linear_critic

from rapo.agents.agent import Agent
from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint
from rapo.agents.ppo import PPO
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo.envs.vector import GraphDiffusionVectorEnv

SMALL = {"rollout": 64, "minibatch": 32, "epochs": 2, "hidden": 8}


def expected_advantages(rewards, values, nexts, ends, config):
    """(T, N) by the recursion."""
    out, carried = np.zeros_like(rewards), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + config.gamma * nexts[t] - values[t]
        carried = delta + np.where(ends[t], 0, config.gamma * config.gae_lambda * carried)
        out[t] = carried
    return out


def test_truncated_episodes_are_bootstrapped_and_terminated_ones_are_not():
    """Values known: x counts 1, 2, 3, and a truncated episode's last observation says 4."""

    class Mixed(Counting):
        terminates = [True, False]  # noqa: RUF012

    config = PPOConfig(**{**SMALL, "envs": 2, "rollout": 16, "minibatch": 16}, gamma=0.9)
    learner = PPO(Mixed(2), config)
    linear_critic(learner)
    rollout = collected(learner)
    values = np.tile(1.0 + np.arange(8) % 3, (2, 1)).T
    assert np.allclose(rollout.values[..., 0], values, atol=1e-4)
    nexts = values + 1
    ends = values == 3
    nexts[ends[:, 0], 0] = 0  # terminal; the truncated ones see 4, not the next episode's 1
    expected = expected_advantages(rollout.signals[..., 0], values, nexts, ends, config)
    assert np.allclose(rollout.advantages[..., 0], expected, atol=1e-4)


def test_the_rollouts_own_end_is_bootstrapped():
    class Long(Counting):
        length = 10**6

    config = PPOConfig(**{**SMALL, "envs": 1, "rollout": 4, "minibatch": 4}, gamma=0.9)
    learner = PPO(Long(1), config)
    linear_critic(learner)
    for first in (1, 5):  # the second rollout goes on where the first stopped
        rollout = collected(learner)
        last = rollout.signals[-1, 0, 0] + 0.9 * (first + 4) - (first + 3)
        assert rollout.advantages[-1, 0, 0] == pytest.approx(last, abs=1e-4)


@pytest.mark.parametrize("most", [1e-3, 1e3])
def test_gradients_are_scaled_down_to_the_largest_norm_and_no_further(most, monkeypatch):
    config = PPOConfig(**{**SMALL, "envs": 2}, max_grad_norm=most)
    learner = PPO(Counting(2), config)
    norms, step = [], learner.adam.step

    def noted():
        norms.append(float(torch.linalg.vector_norm(learner.buffer.gradient)))
        step()

    monkeypatch.setattr(learner.adam, "step", noted)
    learner.iterate()
    if most < 1:
        assert norms == pytest.approx([most] * 4, rel=1e-4)
    else:
        assert len(norms) == 4 and all(0.01 < norm < most for norm in norms)


@pytest.mark.parametrize(("terminates", "value"), [(True, 1.0), (False, 5.0)])
def test_learned_values_of_a_constant_reward(terminates, value):
    """Episodes of one step with reward 1, gamma 0.8: 1 if it is the end, 1 / (1 - gamma) if not."""

    class Constant(Toy):
        def seen(self):
            return np.ones((self.num_envs, 2), np.float32)

        def act(self, actions):
            return np.ones(self.num_envs)

    Constant.terminates = terminates
    config = PPOConfig(**{**SMALL, "hidden": 16}, envs=16, gamma=0.8, lr=3e-3)
    learner = PPO(Constant(16), config)
    for _ in range(150):
        learner.iterate()
    assert collected(learner).values.mean() == pytest.approx(value, rel=0.05)


@torch.no_grad()
def test_a_recurrent_critic_sees_the_memory_of_its_own_episode():
    """Every episode of a rollout followed by hand, its truncated end included."""

    class Cut(Counting):
        terminates = False

    config = PPOConfig(**{**SMALL, "envs": 3, "rollout": 24, "minibatch": 24}, gamma=0.9)
    learner = PPO(Cut(3), config, network="gru", seed=1)
    draws = torch.Generator().manual_seed(0)
    learner.buffer.values.copy_(0.5 * torch.randn(learner.buffer.values.shape, generator=draws))
    rollout = collected(learner)
    model, state, told = learner.model, learner.model.start(1), []
    for count in (1, 2, 3, 4):
        _, state, seen = model.act(torch.tensor([[float(count), 0.0]]), state)
        told.append(float(model.critic.forward(seen)) / (1 - 0.9))
    assert len(set(np.round(told, 3))) == 4
    values = np.array(told)[np.tile(np.arange(8) % 3, (3, 1)).T]
    assert np.allclose(rollout.values[..., 0], values, atol=1e-4)
    nexts = np.array(told)[np.tile(1 + np.arange(8) % 3, (3, 1)).T]
    ends = np.tile(np.arange(8) % 3 == 2, (3, 1)).T
    expected = expected_advantages(rollout.signals[..., 0], values, nexts, ends, config)
    assert np.allclose(rollout.advantages[..., 0], expected, atol=1e-3)


class Staggered(Counting):
    length = 8
    terminates = False


def test_first_episodes_are_cut_at_different_steps_and_bootstrapped_there():
    config = PPOConfig(**{**SMALL, "envs": 4, "rollout": 80, "minibatch": 80}, gamma=0.9)
    learner = PPO(Staggered(4), config, episode=8)
    linear_critic(learner)
    rollout = collected(learner)
    t = np.arange(20)[:, None]
    after = t - np.array([2, 4, 6, 8])  # the cut
    counts = np.where(after < 0, 1 + t, 1 + after % 8)
    assert np.allclose(rollout.values[..., 0], counts, atol=1e-4)
    ends = (after == -1) | ((after >= 0) & (after % 8 == 7))
    expected = expected_advantages(rollout.signals[..., 0], counts, counts + 1, ends, config)
    assert np.allclose(rollout.advantages[..., 0], expected, atol=1e-3)


def test_episodes_are_cut_once_and_not_again_in_later_rollouts():
    config = PPOConfig(**{**SMALL, "envs": 4, "rollout": 44})  # 11 steps, no multiple of 8
    learner = PPO(Staggered(4), config, episode=8)
    for _ in range(3):
        learner.iterate()
    assert [lengths[0] for lengths in learner.env.lengths] == [2, 4, 6, 8]
    assert {length for lengths in learner.env.lengths for length in lengths[1:]} == {8}


@pytest.fixture
def watched(small_graph, short):
    class Watched(GraphDiffusionVectorEnv):
        """Notes phase and clock before every step."""

        def step(self, actions):
            self.notes = getattr(self, "notes", [])
            self.notes.append((self.phase.copy(), self.engine.clock.copy()))
            return super().step(actions)

    return Watched(
        4, graph=small_graph, setting=short.replace(horizons=(18, 7, 11)), deformation="off",
        autoreset_mode="SameStep",
    )  # fmt: skip


def test_memory_is_forgotten_where_exposure_and_replay_begin_and_only_there(watched):
    config = PPOConfig(**{**SMALL, "envs": 4, "rollout": 4 * 50})
    learner = PPO(watched, config, network="gru", episode=36)
    rollouts = []
    for _ in range(3):
        rollouts.append(collected(learner))
        learner.updates += 1
    keep = torch.cat([rollout.seen.keep for rollout in rollouts]).numpy()
    states = torch.cat([rollout.seen.states for rollout in rollouts]).numpy()
    phase, clock = (np.stack(part) for part in zip(*watched.notes, strict=True))
    begins = (clock == 0) & (phase != DECAY)
    assert np.array_equal(keep == 0, begins)
    for which in (EXPOSURE, REPLAY):
        assert (begins & (phase == which)).sum() >= 8
    assert ((clock == 0) & (phase == DECAY)).sum() >= 8
    assert not states[begins].any()
    assert states[~begins].any(axis=-1).all()


def test_the_critic_alone_is_told_the_phase(small_graph, short):
    env = GraphDiffusionVectorEnv(
        4, graph=small_graph, setting=short, deformation="off", autoreset_mode="SameStep"
    )
    steps = 2 * sum(short.horizons)  # an end inside the rollout, where the phase is still Replay
    learner = PPO(env, PPOConfig(envs=4, rollout=4 * steps, minibatch=64, hidden=16))
    assert learner.model.inputs == 5 and learner.model.extra == 3
    seen = []
    step = env.step

    def watching(actions):
        seen.append(env.phase.copy())
        return step(actions)

    env.step = watching
    features = collected(learner).features
    assert features.shape == (4 * steps, 5 + 3)
    shown = features[:, 5:].reshape(steps, 4, 3)
    assert np.array_equal(shown.argmax(-1), np.array(seen)) and (shown.sum(-1) == 1).all()
    assert set(np.unique(seen)) == {EXPOSURE, DECAY, REPLAY}


@pytest.mark.parametrize(("network", "bptt"), [("mlp", 5), ("gru", 5), ("gru", 16), ("gru", 40)])
@torch.no_grad()
def test_pieces_of_a_rollout_tell_every_step_once_with_the_law_it_was_taken_by(network, bptt):
    """Before the first step of the optimiser: memory, resets and padding are those of the run."""
    learner = PPO(Counting(4), PPOConfig(**SMALL, envs=4, bptt=bptt), network=network)
    draws = torch.Generator().manual_seed(0)
    learner.buffer.values.copy_(0.5 * torch.randn(learner.buffer.values.shape, generator=draws))
    collected(learner)
    rollout = collected(learner)  # one that begins within episodes
    pieces, size = learner.model.pieces(16, 4, 32, bptt)
    rows, laws = [], []
    for start in range(0, pieces, size):
        order = np.random.default_rng(1).permutation(pieces)[start : start + size]
        found, logits = learner.model.forward(rollout.seen, order, bptt)
        rows.append(found)
        laws.append(torch.log_softmax(logits, dim=1).numpy())
    rows, laws = np.concatenate(rows), np.concatenate(laws)
    assert np.array_equal(np.sort(rows), np.arange(64))
    assert np.allclose(laws[np.arange(64), rollout.actions[rows]], rollout.log_p[rows], atol=1e-5)
    assert np.ptp(rollout.log_p) > 0.1


@torch.no_grad()
def test_a_padded_piece_adds_nothing_to_the_gradient():
    """16 steps in pieces of 5: the last has one, and its gradient is that of this one alone."""
    learner = PPO(Counting(4), PPOConfig(**SMALL, envs=4, bptt=5), network="gru")
    rollout, model = collected(learner), learner.model
    seen, x = rollout.seen, rollout.seen.x.view(16, 4, -1)
    picks = np.array([2, 3 * 4 + 1])  # the first piece of copy 2, the last of copy 1
    rows, logits = model.forward(seen, picks, 5)
    slope = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    model.backward(slope)
    found = [part.clone() for part in model.policy.gradient]
    expected = [torch.zeros_like(part) for part in found]
    for steps, n in ((range(5), 2), (range(15, 16), 1)):
        t = list(steps)
        mine = torch.stack([slope[list(rows).index(4 * step + n)] for step in t])
        keep = seen.keep[t, n].view(-1, 1, 1)
        model.policy.forward(x[t, n][:, None], seen.states[t[0], n][None], keep)
        model.policy.backward(mine[:, None])
        for total, part in zip(expected, model.policy.gradient, strict=True):
            total += part
    assert len(rows) == 6
    for one, two in zip(found, expected, strict=True):
        assert torch.allclose(one, two, atol=1e-5)


@pytest.mark.parametrize(
    ("steps", "envs", "minibatch", "bptt"),
    [(128, 16, 256, 50), (76, 16, 256, 50), (128, 16, 256, 128), (64, 4, 64, 5), (16, 4, 32, 40),
     (10, 3, 7, 4), (128, 2, 8, 64)],
)  # fmt: skip
def test_a_policy_with_memory_gets_as_many_minibatches(steps, envs, minibatch, bptt):
    """As near as whole sequences allow: no other size of a minibatch comes nearer."""

    def batches(network):
        learner = PPO(Counting(4), PPOConfig(**SMALL, envs=4), network=network)
        pieces, size = learner.model.pieces(steps, envs, minibatch, bptt)
        return pieces, -(-pieces // size)

    _, wanted = batches("mlp")
    pieces, got = batches("gru")
    others = [-(-pieces // size) for size in range(1, pieces + 1)]
    assert abs(got - wanted) == min(abs(other - wanted) for other in others)
    if (steps, bptt) == (128, 50):
        assert wanted == got == 8


def test_every_rollout_has_draws_of_its_own():
    learner = PPO(Counting(4), PPOConfig(**SMALL, envs=4, lr=1e-12))
    seen, collect = [], learner.collect
    learner.collect = lambda rng: seen.append(collect(rng)) or seen[-1]
    learner.iterate()
    learner.iterate()
    assert not np.array_equal(seen[0][1].actions, seen[1][1].actions)


@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_weights_follow_the_seed(network):
    def weights(seed, updates=3):
        learner = PPO(Counting(4), PPOConfig(**SMALL, envs=4), network=network, seed=seed)
        start = learner.buffer.values.clone()
        for _ in range(updates):
            learner.iterate()
        assert not torch.equal(start, learner.buffer.values)
        return start, learner.buffer.values

    (start, end), (start_again, end_again), (other_start, other_end) = map(weights, (5, 5, 6))
    assert torch.equal(start, start_again) and torch.equal(end, end_again)
    assert not torch.equal(start, other_start) and not torch.equal(end, other_end)


def test_a_wrong_number_of_copies_is_named():
    with pytest.raises(ValueError, match="must run 8 copies, got 4"):
        PPO(Counting(4), PPOConfig(**SMALL, envs=8))


def test_gradients_are_scaled_down_to_their_largest_norm():
    config = PPOConfig(**SMALL, envs=4, max_grad_norm=1e-3)
    learner = PPO(Counting(4), config)
    learner.iterate()
    assert float(torch.linalg.vector_norm(learner.buffer.gradient)) <= 1e-3 * (1 + 1e-5)


def test_values_enter_the_gradient_with_their_weight():
    def critic_gradient(value_coef):
        config = PPOConfig(**{**SMALL, "epochs": 1, "minibatch": 64}, envs=4,
                           value_coef=value_coef, max_grad_norm=1e9)  # fmt: skip
        learner = PPO(Counting(4), config)
        learner.iterate()
        return torch.cat([part.reshape(-1) for part in learner.model.critic.gradient])

    assert not critic_gradient(0.0).any()
    assert torch.allclose(critic_gradient(1.0), 4 * critic_gradient(0.25), rtol=1e-4, atol=1e-7)


class Recall(Toy):
    """A cue at the first step, blank steps, and a reward for repeating the cue at the last."""

    length = 5

    def begin(self, rows):
        super().begin(rows)
        if not hasattr(self, "cue"):
            self.cue = np.zeros(self.num_envs, int)
        self.cue[rows] = self.rng.integers(0, 2, len(rows))

    def seen(self):
        cue = np.where(self.clock == 0, 2 * self.cue - 1, 0)
        return np.stack([cue, self.clock / self.length], axis=1).astype(np.float32)

    def act(self, actions):
        return (self.clock == self.length - 1) & (actions == self.cue)


def recalled(network, updates):
    """Share of episodes at the end of training whose cue was repeated."""
    config = PPOConfig(
        envs=32, rollout=32 * 20, minibatch=160, epochs=4, hidden=32, lr=3e-3, gamma=0.9, bptt=10
    )
    learner = PPO(Recall(32), config, network=network)
    rewards = [learner.iterate()["reward"] for _ in range(updates)]
    return Recall.length * np.mean(rewards[-10:])


def test_only_a_policy_with_memory_recalls_a_cue():
    assert recalled("gru", 60) > 0.95
    assert recalled("mlp", 60) == pytest.approx(0.5, abs=0.06)


def test_cartpole_is_solved():
    config = PPOConfig(
        envs=8, rollout=1024, minibatch=128, epochs=6, hidden=64, lr=1e-3, gamma=0.99
    )
    vector = {"autoreset_mode": AutoresetMode.SAME_STEP}
    env = gymnasium.make_vec("CartPole-v1", 8, vectorization_mode="sync", vector_kwargs=vector)
    learner = PPO(env, config, seed=0)
    for _ in range(80):
        learner.iterate()
    agent = Agent(learner.model, learner.normaliser)
    test = gymnasium.make_vec("CartPole-v1", 20, vectorization_mode="sync", vector_kwargs=vector)
    x, _ = test.reset(seed=1000)
    agent.reset(20)
    running, returns = np.ones(20, bool), np.zeros(20)
    for _ in range(500):
        x, reward, terminated, truncated, _ = test.step(agent.law(x).argmax(axis=1))
        returns += running * reward
        running &= ~(terminated | truncated)
    assert not running.any()
    assert returns.mean() >= 475


class Drifting(Counting):
    """Shows larger and larger numbers, an entry that never moves and one that begins to late."""

    size = 3
    steps = 0

    def seen(self):
        self.steps += 1
        rows = [self.clock, 0 * self.clock, (self.steps > 150) * 5.0 * self.clock]
        return np.stack(rows, axis=1).astype(np.float32) * (1 + self.steps / 50)


@torch.no_grad()
@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_a_steady_policy_stays_the_same_when_its_statistics_move(network):
    config = PPOConfig(**{**SMALL, "lr": 1e-12}, envs=4, steady=True)
    learner = PPO(Drifting(4), config, network=network)
    learner.iterate()
    draws = torch.Generator().manual_seed(0)
    learner.buffer.values.copy_(0.5 * torch.randn(learner.buffer.values.shape, generator=draws))
    x = np.random.default_rng(0).normal(3, 3, (50, 3)).astype(np.float32)
    x[:, 1:] = 0  # as they were so far

    def said():
        seen = torch.from_numpy(learner.normaliser(x))
        logits, _, shown = learner.model.act(seen, learner.model.start(50))
        return logits.numpy(), learner.model.critic.forward(shown).numpy()

    before, scale = said(), learner.normaliser(x)
    weights = learner.model.policy.values[0][2].clone()
    for _ in range(4):
        learner.iterate()
    assert np.abs(learner.normaliser(x) - scale).max() > 0.5
    for one, two in zip(before, said(), strict=True):
        assert np.allclose(one, two, atol=2e-3)
    assert learner.normaliser(np.ones((1, 3)))[0, 2] < 1  # it moves by now
    # no one had learned how much it matters: it does not begin with a weight 100 times its own
    assert (learner.model.policy.values[0][2] / weights).abs().max() < 10


def test_a_steady_policy_learns_from_normalised_observations_from_the_first_rollout_on():
    learner = PPO(Drifting(4), PPOConfig(**SMALL, envs=4, steady=True))
    seen, update = [], learner.update
    learner.update = lambda rollout, rng: seen.append(rollout) or update(rollout, rng)
    learner.iterate()
    for shown in (seen[0].seen.x, seen[0].features):
        assert np.allclose(shown[:, 0].mean(), 0, atol=1e-4)
        assert np.allclose(shown[:, 0].std(correction=0), 1, atol=1e-3)


class Paying(Drifting):
    """The same, at a cost of 1 a step."""

    def step(self, actions):
        *told, info = super().step(actions)
        return *told, {**info, "cost": np.ones(self.num_envs)}


def test_steps_that_wait_are_seen_as_the_statistics_stand():
    late = Constraint("late", "cost", reference=1.0, budget=1.0, decay=0.9, lag=5)
    learner = PPO(Paying(4), PPOConfig(**SMALL, envs=4, steady=True), constraints=[late])
    raws, collect = [], learner.collect

    def watched(rng):
        raw, rollout = collect(rng)
        raws.append(raw)
        return raw, rollout

    learner.collect = watched
    for _ in range(4):
        learner.iterate()
        shown = learner.normaliser(raws[-1].reshape(-1, 4, 3)[-5:])
        assert len(learner.incomplete) == 5
        assert np.allclose(learner.incomplete.x[..., 0], shown[..., 0], atol=1e-4)
        assert np.allclose(learner.incomplete.features[..., 0], shown[..., 0], atol=1e-4)
    assert np.abs(learner.normaliser(raws[-1])[:, 0]).max() > 1
