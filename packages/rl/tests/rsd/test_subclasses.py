"""Subclasses of our environments are run as they are, or refused; never passed over."""

import gymnasium
import numpy as np
import pytest

import rapo
from rapo.envs.single import GraphDiffusionEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.paper.noisy_harm import NoisyReportsEnv
from rapo.rsd import evaluate
from rapo_core.checks import UserError

HORIZONS = (100, 60, 80)
OPTIONS = {"fit": False}


class Doubled:
    """Every step reports twice the reach, and pays twice."""

    def step(self, action):
        x, reward, over, cut, info = super().step(action)
        return x, 2 * reward, over, cut, {**info, "reach": 2 * info["reach"]}


class Same(GraphDiffusionEnv):
    """It overrides a method, and changes nothing by it."""

    def step(self, action):
        return super().step(action)


class DoubledVector(Doubled, GraphDiffusionVectorEnv):
    pass


class DoubledSingle(Doubled, GraphDiffusionEnv):
    pass


class Scaled(GraphDiffusionVectorEnv):
    """One with an argument of its own."""

    def __init__(self, num_envs=1, *, factor, **options):
        super().__init__(num_envs, **options)
        self.factor = factor

    def step(self, action):
        x, reward, over, cut, info = super().step(action)
        return x, reward, over, cut, {**info, "reach": self.factor * info["reach"]}


def always(x):
    return 0


def run(env, policy=always, **options):
    return evaluate(env, policy, episodes=4, seed=3, horizons=HORIZONS, **options)


def stage_of(env):
    return env.stage(
        4, seed=3, stimuli=None, horizons=HORIZONS, coupled=False, deformed=(True, True, True)
    )


@pytest.fixture(scope="module")
def plain(small_graph):
    return run(rapo.GraphDiffusionVectorEnv(1, graph=small_graph, **OPTIONS))


@pytest.fixture(scope="module")
def by_protocol(small_graph):
    return run(Same(graph=small_graph, **OPTIONS))


def doubles(found, plain):
    assert np.array_equal(found.traces["reach"], 2 * plain.traces["reach"])
    assert np.allclose(found.frame["ReplayReturn"], 2 * plain.frame["ReplayReturn"])
    same = ["stimulus", "OddsRatio", "R_c", "GatingRate", "ScarMass"]
    assert found.frame[same].equals(plain.frame[same])
    assert np.allclose(found.frame["RAG"], plain.frame["RAG"])


@pytest.mark.parametrize("kind", [DoubledVector, DoubledSingle])
@pytest.mark.parametrize("schedule", ["rsd", "external"])
def test_what_a_subclass_reports_and_pays_is_what_is_measured(
    plain, by_protocol, small_graph, kind, schedule
):
    base = plain if kind is DoubledVector else by_protocol
    doubles(run(kind(graph=small_graph, schedule=schedule, **OPTIONS)), base)


def test_a_step_put_on_the_instance_is_refused(small_graph):
    """RSD runs a copy of it, whose step would still be that of the original."""
    env = GraphDiffusionEnv(graph=small_graph, **OPTIONS)
    env.step = env.step
    with pytest.raises(UserError, match=r"\['step'\] were put on this GraphDiffusionEnv"):
        run(env)


@pytest.mark.parametrize("make", [GraphDiffusionVectorEnv, GraphDiffusionEnv])
def test_a_step_put_on_the_vector_environment_is_refused(small_graph, make):
    """RSD runs copies of it, which would not have the step."""
    env = make(graph=small_graph, **OPTIONS)
    vector = getattr(env, "vector", env)
    vector.step = lambda actions: 1 / 0
    with pytest.raises(ValueError, match=r"\['step'\] were put on this GraphDiffusionVectorEnv"):
        run(env)


def test_an_environment_chooses_its_own_stage(plain, small_graph):
    """Ours in disguise: no class of ours, and all episodes at once all the same."""
    inner = GraphDiffusionVectorEnv(1, graph=small_graph, **OPTIONS)
    asked = []

    class Foreign:
        stimuli, horizons = inner.stimuli, HORIZONS
        single_action_space = inner.single_action_space

        def stage(self, episodes, **how):
            asked.append(episodes)
            return inner.stage(episodes, **how)

    assert run(Foreign()).frame.equals(plain.frame) and asked == [4]


def test_a_stage_of_fewer_episodes_is_asked_again(plain, small_graph):
    class Pairs(GraphDiffusionVectorEnv):
        def stage(self, episodes, *, stimuli, **how):
            some = None if stimuli is None else stimuli[:3]
            return super().stage(min(episodes, 3), stimuli=some, **how)

    found = run(Pairs(graph=small_graph, **OPTIONS)).frame
    assert found.equals(plain.frame)


def test_a_proxy_that_overrides_is_not_passed_over(small_graph):
    """What it does not have it takes from the environment behind it, but it has its own step."""
    inner = GraphDiffusionEnv(graph=small_graph, schedule="external", **OPTIONS)

    class Proxy:
        def __getattr__(self, name):
            return getattr(inner, name)

        def step(self, action):
            x, reward, over, cut, info = inner.step(action)
            return x, reward, over, cut, {**info, "reach": 7}

    assert (run(Proxy()).traces["reach"] == 7).all()


def test_a_thing_of_ones_own_that_is_called_stage_is_left_alone():
    class Curriculum(gymnasium.Env):
        stimuli, stage = 1, 3
        action_space = gymnasium.spaces.Discrete(2)
        observation_space = gymnasium.spaces.Box(0, 1, (1,))

        def reset(self, *, seed=None, options=None):
            return np.zeros(1), {}

        def activate(self, stimulus): ...

        def deactivate(self): ...

        def reset_observable(self, seed=None):
            return np.zeros(1)

        def step(self, action):
            return np.zeros(1), 1.0, False, False, {"reach": 1, "sensitive_mass": 1}

    class Theatre(Curriculum):
        def stage(self, play):
            raise AssertionError(play)

    for env in (Curriculum(), Theatre()):
        assert evaluate(env, always, 1, horizons=(20, 5, 20)).frame["RAG"][0] == pytest.approx(1)


def test_a_subclass_that_changes_nothing_stays_on_the_fast_path(plain, small_graph):
    class Named(GraphDiffusionEnv):
        title = "mine"

        def hello(self): ...

    env = Named(graph=small_graph, **OPTIONS)
    assert stage_of(env).episodes == 4
    assert stage_of(DoubledSingle(graph=small_graph, **OPTIONS)).episodes == 1
    assert run(env).frame.equals(plain.frame)


@pytest.mark.parametrize("kind", [DoubledVector, DoubledSingle])
def test_the_twin_and_the_other_stimulus_are_the_subclasss_too(small_graph, kind):
    options = {"against_P0": True, "selectivity": True}
    found = run(kind(graph=small_graph, **OPTIONS), **options).frame
    plain = GraphDiffusionVectorEnv if kind is DoubledVector else Same
    base = run(plain(graph=small_graph, **OPTIONS), **options).frame
    assert np.allclose(found["P0Reach"], 2 * base["P0Reach"])
    for name in ("Reach_vs_P0", "ReturnKept", "OddsSame", "OddsOther"):
        assert np.allclose(found[name], base[name])


def test_a_single_environment_is_left_as_it_was(small_graph):
    env = DoubledSingle(graph=small_graph, **OPTIONS)
    env.reset(seed=9)
    env.step(0)
    vector, before = env.vector, env.snapshot()
    run(env, off_at_replay=True)
    assert env.vector is vector and vector.schedule == "rsd"
    for name, value in env.snapshot().items():
        assert np.array_equal(value, before[name])


@pytest.mark.parametrize("kind", [DoubledVector, DoubledSingle])
def test_off_at_replay_and_phases_reach_a_subclass(small_graph, kind):
    off = run(kind(graph=small_graph, **OPTIONS), off_at_replay=True).frame
    phases = run(kind(graph=small_graph, deform_phases=(True, True, False), **OPTIONS)).frame
    assert (off["OddsRatio"] == 1).all() and off.equals(phases)


def test_arguments_of_its_own_are_kept(plain, small_graph):
    env = Scaled(1, factor=3, graph=small_graph, **OPTIONS)
    assert np.array_equal(run(env).traces["reach"], 3 * plain.traces["reach"])
    twin = env.like(2, deformation="off")
    assert type(twin) is Scaled and twin.factor == 3 and twin.num_envs == 2
    with pytest.raises(UserError, match=r"no option is called \['factor'\]"):
        env.like(1, factor=5)


def test_noise_is_kept(small_graph):
    env = NoisyReportsEnv(1, lost=0.25, spread=0.5, graph=small_graph, **OPTIONS)
    twin = env.like(3, coupled=True)
    assert (type(twin), twin.lost, twin.spread, twin.num_envs) == (NoisyReportsEnv, 0.25, 0.5, 3)
    assert twin.engine.coupled


def test_a_subclass_is_copied_whatever_its_constructor_takes(plain, small_graph):
    class Hidden(Scaled):
        def __init__(self, num_envs=1, *, gain, **options):
            super().__init__(num_envs, factor=2 * gain, **options)

    class Closed(DoubledVector):
        def __init__(self, graph):
            super().__init__(1, graph=graph, **OPTIONS)

    assert np.array_equal(
        run(Hidden(gain=2, graph=small_graph, **OPTIONS)).traces["reach"],
        4 * plain.traces["reach"],
    )
    doubles(run(Closed(small_graph)), plain)


def test_the_protocol_of_a_subclass_is_called(small_graph):
    calls = []

    class Protocol(GraphDiffusionEnv):
        def reset_observable(self, seed=None):
            calls.append("reset_observable")
            return super().reset_observable(seed)

    found = run(Protocol(graph=small_graph, **OPTIONS), off_at_replay=True)
    assert calls == 4 * ["reset_observable"] * 2
    assert (found.frame["OddsRatio"] == 1).all()
    assert np.nanmean(found.of_phase("odds_ratio", 0)) < 1


def test_an_overridden_begin_is_refused_because_nobody_would_call_it(small_graph):
    class Begins(GraphDiffusionEnv):
        def begin(self, phase, stimulus=None):
            return super().begin(phase, stimulus)

    with pytest.raises(UserError, match="overrides begin, which RSD does not call"):
        run(Begins(graph=small_graph, **OPTIONS))


def test_phases_without_deformation_hold_on_the_protocols_way(small_graph):
    class Protocol(GraphDiffusionEnv):
        def reset_observable(self, seed=None):
            return super().reset_observable(seed)

    env = Protocol(graph=small_graph, deform_phases=(True, True, False), **OPTIONS)
    assert (run(env).frame["OddsRatio"] == 1).all()
    assert (run(env, against_P0=True).frame["P0Reach"] > 0).all()
    nominal = Protocol(graph=small_graph, deformation="off", **OPTIONS)
    assert (run(nominal, against_P0=True).frame["SM_vs_P0"] == 1).all()


def test_a_subclasss_own_observation_reaches_the_policy(small_graph):
    seen = []

    class Blind(GraphDiffusionEnv):
        def step(self, action):
            x, *rest = super().step(action)
            return 0 * x, *rest

    def policy(x):
        seen.append(x.copy())
        return 0

    run(Blind(graph=small_graph, **OPTIONS), policy)
    assert all((x == 0).all() for x in seen if x[4] > 0)
    assert sum((x == 0).all() for x in seen) > 4 * 200


def test_activity_is_that_of_all_episodes_of_a_subclass_too(by_protocol, small_graph):
    each = [
        evaluate(Same(graph=small_graph, **OPTIONS), always, 1, seed, horizons=HORIZONS)
        for seed in range(3, 7)
    ]
    shares = np.mean([result.activity for result in each], axis=0)
    assert np.allclose(by_protocol.activity, shares, atol=1e-6)
    assert not np.allclose(by_protocol.activity, each[0].activity, atol=1e-3)
    assert np.array_equal(by_protocol.cascade, each[0].cascade)  # of the first episode alone
    assert by_protocol.frame["R_c"].notna().all()


def test_a_subclass_that_changes_nothing_has_the_activity_of_all_episodes(plain, small_graph):
    class Named(GraphDiffusionEnv):
        title = "mine"

    found = run(Named(graph=small_graph, **OPTIONS))
    assert np.array_equal(found.activity, plain.activity)
