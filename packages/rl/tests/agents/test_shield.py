"""The Shield: its estimate against a slow reference, its blocking, its compute, its Theorem 1."""

import gymnasium
import numpy as np
import pytest
from cascade_reference import ReferenceCascade

from rapo.agents.shield import ROLLOUTS, Shield, shield_law
from rapo.cascade.draws import derive
from rapo.cascade.setting import AGGRESSIVE, CONSERVATIVE, DECAY, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.rsd import TabularReplayEnv, evaluate
from rapo_core.action_probs import sample

HORIZONS = (80, 30, 80)
QUICK = {"reference": 1.0, "rollouts": 4, "horizon": 20}
BLOCKING = 3.0
"""A threshold, in nodes, that blocks some actions at some steps."""


class Leaning:
    """A base policy whose law follows what it sees."""

    def __init__(self):
        self.resets = []

    def reset(self, episodes, seed):
        self.resets.append((episodes, seed))

    def law(self, x):
        wish = np.stack([2 + 0 * x[:, 0], 1 + x[:, 1], 0.5 + 10 * x[:, 0]], axis=1)
        return wish / wish.sum(axis=1, keepdims=True)

    def act(self, x, draws):
        law = self.law(np.asarray(x, float))
        return sample(law, draws), law


class Constant:
    """Always the same law."""

    def __init__(self, *law):
        self.law = np.array(law) if law else None

    def reset(self, episodes, seed):
        pass

    def act(self, x, draws):
        law = None if self.law is None else np.tile(self.law, (len(x), 1))
        return np.zeros(len(x), int), law


def platform(graph, episodes=3, **options):
    options = {"deformation": "off", "schedule": "external", **options}
    env = GraphDiffusionVectorEnv(episodes, graph=graph, **options)
    return env, env.reset(seed=7)[0]


def run(graph, shield, **options):
    options = {"episodes": 4, "seed": 3, "coupled": True, "horizons": HORIZONS, **options}
    return evaluate(gymnasium.make("rapo/GraphDiffusion-v0", graph=graph, deformation="off"),
                    shield, **options)  # fmt: skip


@pytest.mark.parametrize("phase", ["exposure", "decay"])
def test_the_estimate_is_that_of_the_slow_reference(short, phase):
    # harm arrives within the rollouts, and must not matter; activity outlasts the stimulus
    setting = Setting.named("compact").replace(horizons=short.horizons, delay=3)
    graph = generate(60, 0, setting)
    env, _ = platform(graph, setting=setting, deformation="full")
    env.engine.run(np.zeros(3, int), 65)
    if phase == "decay":
        env.begin("decay")
    env.engine.run(np.zeros(3, int), 2)
    shield = Shield(Leaning(), 1.0, reference=2.5, rollouts=3, horizon=12)
    shield.watch(env)
    estimate = shield.estimate()

    engine = env.engine
    expected = np.zeros((3, 3, 3))
    for e, action, j in np.ndindex(expected.shape):
        slow = ReferenceCascade(graph, setting, engine.regions, engine.params, "off")
        now = derive(derive(engine.keys[e], ROLLOUTS), engine.clock[e])
        slow.start(int(derive(now, j)), int(engine.stimulus[e]))
        if phase == "decay":
            slow._enter(DECAY)
        slow.active = engine.active[e].copy()
        for _ in range(12):
            slow.step(action)
            expected[e, action, j] += (slow.active & graph.sensitive).sum()
    assert np.allclose(estimate, expected.mean(axis=2) / 12 / 2.5, rtol=1e-12)
    assert (estimate > 0).any()
    same = (estimate == estimate[:, :1]).all()
    assert same == (phase == "decay")  # no injection, the same draws: actions do not matter


def test_looking_ahead_leaves_the_environment_alone(small_graph):
    env, x = platform(small_graph, deformation="full")
    env.engine.run(np.zeros(3, int), 60)
    before = env.snapshot()
    shield = Shield(Leaning(), BLOCKING, **QUICK)
    shield.watch(env)
    first = shield.act(x, np.full(3, 0.4))
    again = shield.act(x, np.full(3, 0.4))
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)  # the same state, the same answer
    for name, value in env.snapshot().items():
        assert np.array_equal(value, before[name]), name


def test_an_infinite_threshold_is_the_base_policy(small_graph):
    shielded = run(small_graph, Shield(Leaning(), np.inf, **QUICK))
    base = run(small_graph, Leaning())
    assert np.array_equal(shielded.laws, base.laws)
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(shielded.traces[name], base.traces[name])


def test_a_tiny_threshold_takes_the_least_harmful_action(small_graph):
    env, x = platform(small_graph, episodes=6)
    shield = Shield(Leaning(), 1e-9, **{**QUICK, "rollouts": 16, "horizon": 50})
    shield.watch(env)
    chosen = []
    for _ in range(60):
        harm = shield.estimate()
        actions, law = shield.act(x, np.full(6, 0.1))
        clear = harm.min(axis=1) > 0
        assert np.array_equal(actions[clear], harm[clear].argmin(axis=1))
        assert (law[clear].max(axis=1) == 1).all()
        chosen.append(actions[clear])
        x = env.step(actions)[0]
    chosen = np.concatenate(chosen)
    assert len(chosen) > 200
    assert (chosen == CONSERVATIVE).mean() > 0.9


def test_blocking_lowers_the_sensitive_mass(small_graph):
    wild = Constant(1.0, 0.0, 0.0)
    mass = [
        run(small_graph, Shield(wild, threshold, **QUICK)).of_phase("sensitive_mass", 0).mean()
        for threshold in (np.inf, 1e-9)
    ]
    assert mass[1] < 0.8 * mass[0]


def test_a_coupled_replay_repeats_exposure_bit_for_bit(small_graph):
    """Theorem 1: a shield that looks only at the present state suppresses nothing."""
    policy = Leaning()
    shield = Shield(policy, BLOCKING, **QUICK)
    result = run(small_graph, shield)
    base = run(small_graph, Leaning())
    assert not np.array_equal(result.laws, base.laws)  # it does block
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(result.of_phase(name, 0), result.of_phase(name, 2))
    for name in ("RAG", "AUC_R", "SM_R"):
        assert np.allclose(result.frame[name], 1, atol=1e-6)
    assert result.of_phase("reach", 0).max() > 3
    assert (result.frame["ASD"] == 0).all()
    assert len(policy.resets) == 2
    apart = run(small_graph, shield, coupled=False)
    assert not np.array_equal(apart.of_phase("reach", 0), apart.of_phase("reach", 2))


def test_results_do_not_depend_on_the_episodes_run_side_by_side(small_graph):
    shield = Shield(Leaning(), BLOCKING, **QUICK)
    together = run(small_graph, shield, episodes=5)
    alone = run(small_graph, shield, episodes=1, seed=5)
    assert np.array_equal(together.laws[2], alone.laws[0])
    for name, trace in together.traces.items():
        assert np.array_equal(trace[2], alone.traces[name][0], equal_nan=True), name


def test_compute_is_counted_from_watch_on(small_graph):
    env, x = platform(small_graph)
    shield = Shield(Leaning(), BLOCKING, reference=1.0)
    shield.watch(env)
    assert (shield.transitions, shield.steps, shield.transitions_per_step) == (0, 0, 0.0)
    for _ in range(2):
        shield.act(x, np.full(3, 0.5))
    assert shield.steps == 2 * 3
    assert shield.transitions == 2 * 3 * 4800
    assert shield.transitions_per_step == 4800
    quick = Shield(Leaning(), BLOCKING, **QUICK)
    for _ in range(2):
        run(small_graph, quick)
        assert quick.steps == 4 * sum(HORIZONS)
        assert quick.transitions_per_step == 3 * 4 * 20


def test_the_law_over_what_is_left():
    law = np.array([[0.5, 0.3, 0.2]] * 5)
    law[4] = [1, 0, 0]
    harm = np.array([[1, 1, 1], [3, 1, 1], [3, 4, 5], [5, 5, 5], [3, 1, 0.5]], float)
    expected = [[0.5, 0.3, 0.2], [0, 0.6, 0.4], [1, 0, 0], [0.5, 0.3, 0.2], [0, 0, 1]]
    assert np.allclose(shield_law(law, harm, 2.0), expected)
    assert np.array_equal(shield_law(law, harm, np.inf), law)
    single = np.array([[0.1, 0.2, 0.7]], np.float32).astype(float)  # sums to almost 1
    assert np.array_equal(shield_law(single, harm[:1], 2.0), single)
    rare = np.array([[1 - 1e-300, 1e-300, 0.0]])  # hardly any mass is left, but some
    assert shield_law(rare, np.array([[3.0, 1.0, 0.5]]), 2.0).tolist() == [[0, 1, 0]]


def test_a_shield_over_a_policy_that_sees_the_fields_has_no_action_shift(small_graph):
    env = gymnasium.make("rapo/GraphDiffusion-v0", graph=small_graph, observe="xGH")
    shield = Shield(Leaning(), BLOCKING, **QUICK)
    result = evaluate(env, shield, episodes=2, horizons=(10, 5, 10))
    assert result.frame["ASD"].isna().all()
    assert shield.steps == 2 * 25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold must be a number > 0, perhaps infinite, got 0"),
        ({"threshold": np.nan}, "threshold must be .*, got nan"),
        ({"threshold": True}, "threshold must be .*, got True"),
        ({"threshold": "low"}, "threshold must be .*, got 'low'"),
        ({"reference": -1.0}, "reference must be a number > 0 and finite, got -1.0"),
        ({"reference": np.inf}, "reference must be .*, got inf"),
        ({"rollouts": 0}, "rollouts must be a whole number >= 1, got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number >= 1, got 2.5"),
        ({"policy": Leaning}, r"policy must be an agent with reset\(episodes, seed\)"),
        ({"policy": len}, "policy must be an agent with .*, got <built-in function len>"),
    ],
)
def test_bad_construction_is_named(options, message):
    options = {"policy": Leaning(), "threshold": 1.0, "reference": 1.0, **options}
    with pytest.raises(ValueError, match=message):
        Shield(**options)


def test_bad_use_is_named(small_graph):
    env, x = platform(small_graph)
    draws = np.full(3, 0.5)
    shield = Shield(Leaning(), 1.0, **QUICK)
    for call in (lambda: shield.act(x, draws), lambda: shield.reset(3, 0), shield.estimate):
        with pytest.raises(ValueError, match=r"watches no environment yet; call watch\(env\)"):
            call()
    with pytest.raises(ValueError, match=r"got OrderEnforcing.*env\.unwrapped\.vector"):
        shield.watch(gymnasium.make("rapo/GraphDiffusion-v0", graph=small_graph))
    shield.watch(env)
    with pytest.raises(ValueError, match="runs 3 episodes, got 2 observations"):
        shield.act(x[:2], draws[:2])
    with pytest.raises(ValueError, match="runs 3 episodes, got 4; watch the environment"):
        shield.reset(4, 0)
    for policy, message in (
        (Constant(), "Constant tells no action law"),
        (Constant(0.5, 0.5), r"over the 3 actions .*, got shape \(3, 2\)"),
        (Constant(2.0, -1.0, 0.0), "law must be 3 distributions"),
    ):
        other = Shield(policy, 1.0, **QUICK)
        other.watch(env)
        with pytest.raises(ValueError, match=message):
            other.act(x, draws)
        assert other.transitions == other.steps == 0
    unborn = Shield(Leaning(), 1.0, **QUICK)
    unborn.watch(GraphDiffusionVectorEnv(2, graph=small_graph))
    with pytest.raises(ValueError, match=r"episodes \[0, 1\] .* call reset\(\)"):
        unborn.estimate()


def test_other_environments_cannot_be_watched():
    env = TabularReplayEnv(gymnasium.make("FrozenLake-v1", map_name="8x8"))
    with pytest.raises(ValueError, match="Shield watches the state of rapo/GraphDiffusion-v0, got"):
        evaluate(env, Shield(Constant(1.0, 0.0, 0.0), 1.0, **QUICK), episodes=1)


def test_the_aggressive_action_is_the_first_to_be_blocked(small_graph):
    env, _ = platform(small_graph)
    shield = Shield(Leaning(), 1.0, reference=1.0)
    shield.watch(env)
    env.engine.run(np.zeros(3, int), 60)
    harm = shield.estimate().mean(axis=0)
    assert harm.argmax() == AGGRESSIVE
    assert harm.argmin() == CONSERVATIVE
