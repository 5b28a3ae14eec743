"""The clipped objective's gradient, against autograd of the loss as one would write it in torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.agents.loss import CLIPPED, ENTROPY, KL, log_probability, policy_gradient


def readable_loss(logits, actions, before, advantage, clip, bonus):
    """The loss, and its parts, in float64."""
    law = torch.distributions.Categorical(logits=logits)
    gap = law.log_prob(actions) - before
    ratio = gap.exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    loss = -gain.mean() - bonus * law.entropy().mean()
    kl = (ratio - 1 - gap).mean()
    clipped = ((ratio - 1).abs() > clip).double().mean()
    return loss, law.entropy().mean(), kl, clipped, ratio


def case(seed, batch, actions, spread=1.5, move=0.4):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (batch, actions)).astype(np.float32)
    chosen = rng.integers(0, actions, batch)
    log_p = torch.log_softmax(torch.from_numpy(logits).double(), dim=1).numpy()
    before = (log_p[np.arange(batch), chosen] + rng.normal(0, move, batch)).astype(np.float32)
    return logits, chosen, before, rng.normal(0, 1, batch).astype(np.float32)


def both(logits, chosen, before, advantage, clip, bonus):
    gradient = np.full_like(logits, np.nan)
    told = policy_gradient(logits, chosen, before, advantage, clip, bonus, gradient)
    leaf = torch.from_numpy(logits).double().requires_grad_()
    loss, *means, ratio = readable_loss(
        leaf, torch.from_numpy(chosen), torch.from_numpy(before).double(),
        torch.from_numpy(advantage).double(), clip, bonus,
    )  # fmt: skip
    loss.backward()
    return (
        gradient,
        leaf.grad.numpy(),
        told,
        [float(m.detach()) for m in means],
        ratio.detach().numpy(),
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    batch=st.integers(1, 40),
    actions=st.integers(2, 6),
    clip=st.sampled_from([0.05, 0.2, 0.5]),
    bonus=st.sampled_from([0.0, 0.003, 0.5]),
    spread=st.sampled_from([0.0, 0.3, 3.0, 20.0]),
)
def test_gradient_and_means_equal_autograd(seed, batch, actions, clip, bonus, spread):
    gradient, expected, told, means, _ = both(*case(seed, batch, actions, spread), clip, bonus)
    assert np.allclose(gradient, expected, rtol=1e-5, atol=1e-7)
    assert np.allclose(told, means, rtol=1e-9, atol=1e-12)


def test_random_cases_hold_every_kind_of_step():
    """What the property above compares: held and free, for gains of both signs."""
    logits, chosen, before, advantage = case(0, 400, 3)
    *_, ratio = both(logits, chosen, before, advantage, 0.2, 0.0)
    for sign in (advantage > 0, advantage < 0):
        for part in (ratio > 1.2, ratio < 0.8, abs(ratio - 1) < 0.2):
            assert (sign & part).sum() >= 20


@pytest.mark.parametrize(
    ("ratio", "advantage", "held"),
    [
        (1.5, 1.0, True), (1.5, -1.0, False), (0.5, 1.0, False), (0.5, -1.0, True),
        (1.1, 1.0, False), (1.1, -1.0, False), (0.9, 1.0, False), (0.9, -1.0, False),
    ],
)  # fmt: skip
def test_the_clip_stops_only_moves_that_gain(ratio, advantage, held):
    logits = np.array([[0.3, -0.2, 0.1]], np.float32)
    log_p = torch.log_softmax(torch.from_numpy(logits).double(), dim=1).numpy()
    before = (log_p[:, 1] - np.log(ratio)).astype(np.float32)
    gradient, expected, told, _, _ = both(
        logits, np.array([1]), before, np.array([advantage], np.float32), 0.2, 0.0
    )
    assert (not gradient.any()) == held
    assert np.allclose(gradient, expected, atol=1e-7)
    assert told[CLIPPED] == (abs(ratio - 1) > 0.2)
    if not held:  # the chosen action's logit moves with the gain (descent: against the gradient)
        assert np.sign(-gradient[0, 1]) == np.sign(advantage)


def test_entropy_bonus_pulls_towards_uniform_even_where_the_clip_holds():
    logits = np.array([[2.0, 0.0]], np.float32)
    before = np.array([-5.0], np.float32)  # ratio far above 1 + clip
    gradient, expected, told, _, _ = both(
        logits, np.array([0]), before, np.ones(1, np.float32), 0.2, 0.1
    )
    assert gradient[0, 0] > 0 > gradient[0, 1]
    assert np.allclose(gradient, expected, atol=1e-8)
    p = 1 / (1 + np.exp(-2.0))
    assert told[ENTROPY] == pytest.approx(-p * np.log(p) - (1 - p) * np.log(1 - p))


def test_an_unmoved_policy_has_no_divergence_and_nothing_clipped():
    logits, chosen, _, advantage = case(3, 50, 4)
    before = np.empty(50, np.float32)
    log_probability(logits, chosen, before)
    *_, told, _, ratio = both(logits, chosen, before, advantage, 0.2, 0.0)
    assert np.allclose(ratio, 1, atol=1e-6)
    assert told[KL] == pytest.approx(0, abs=1e-12) and told[CLIPPED] == 0


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    batch=st.integers(1, 30),
    actions=st.integers(1, 6),
    spread=st.sampled_from([0.0, 1.0, 50.0, 500.0]),
)
def test_log_probability_equals_log_softmax(seed, batch, actions, spread):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (batch, actions)).astype(np.float32)
    chosen = rng.integers(0, actions, batch)
    out = np.full(batch, np.nan, np.float32)
    log_probability(logits, chosen, out)
    expected = torch.log_softmax(torch.from_numpy(logits).double(), dim=1).numpy()
    assert np.allclose(out, expected[np.arange(batch), chosen], rtol=1e-6, atol=1e-6)
