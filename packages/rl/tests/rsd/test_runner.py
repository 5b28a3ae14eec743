"""RSD on our environments and on others: Theorem 1 as an exact test, off@rep, bad input."""

import gymnasium
import numpy as np
import pytest

import rapo
from rapo.graphs.generate import generate
from rapo.rsd import RSDResult, evaluate
from rapo.rsd.statistics import mean_interval

torch = pytest.importorskip("torch")
ID = "rapo/GraphDiffusion-v0"
HORIZONS = (150, 60, 150)


def make(graph, **options):
    return gymnasium.make(ID, graph=graph, **options)


def threshold(x):
    return 0 if x[0] < 0.05 else 1


class Net(torch.nn.Module):
    """A small network whose law depends on everything it sees."""

    def __init__(self, size, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(size, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3)
        )

    def forward(self, x):
        return 3 * self.layers(x)


class Recurrent:
    """A policy with a memory: it injects less the more it has seen, until it is reset."""

    batched = True

    def __init__(self):
        self.reset()

    def reset(self):
        self.total = 0.0

    def __call__(self, x):
        raise AssertionError("a policy with a law is asked for that alone")

    def law(self, x):
        self.total = self.total + x[:, 0]
        high = np.exp(-np.broadcast_to(self.total, (len(x),)))
        return np.stack([high, 0.7 * (1 - high), 0.3 * (1 - high)], axis=1)


@pytest.mark.parametrize(
    "kind", ["callable", "torch", "recurrent", "sb3", "sb3-deterministic", "sb3-recurrent"]
)
def test_theorem_1_coupled_replay_repeats_exposure_bit_for_bit(small_graph, kind):
    env = make(small_graph, deformation="off")
    policy = {"callable": threshold, "torch": Net(5), "recurrent": Recurrent()}.get(kind)
    if kind == "sb3-recurrent":
        contrib = pytest.importorskip("sb3_contrib")
        policy = contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=64, batch_size=64, seed=0)
    elif policy is None:
        sb3 = pytest.importorskip("stable_baselines3")
        policy = sb3.PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    result = evaluate(
        env, policy, episodes=8, seed=3, coupled=True, horizons=HORIZONS,
        deterministic=kind == "sb3-deterministic",
    )  # fmt: skip
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(result.of_phase(name, 0), result.of_phase(name, 2))
    for name in ("RAG", "AUC_R", "SM_R"):  # undefined where Exposure does not touch V_sens
        known = result.frame[name].notna().to_numpy()
        assert known.sum() > len(known) / 2
        assert np.allclose(result.frame[name][known], 1, atol=1e-7)
    touched = (result.of_phase("sensitive_mass", 0) > 0).any(axis=1)
    np.testing.assert_array_equal(result.frame["SM_R"].notna(), touched)
    assert result.of_phase("reach", 0).max() > 3
    if kind != "callable":
        assert (result.frame["ASD"] == 0).all()
        assert np.array_equal(result.laws[:, :150], result.laws[:, -150:])
        assert np.allclose(result.laws.sum(axis=-1), 1, atol=1e-6)
    else:
        assert result.frame["ASD"].isna().all() and result.laws is None


def test_independent_replay_covers_one_under_the_stationary_kernel(graph250):
    result = evaluate(make(graph250, deformation="off"), Net(5), episodes=64, seed=0)
    assert not np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))
    for name in ("RAG", "AUC_R", "SM_R"):
        # of logarithms: which of the two is divided by the other makes no difference then
        found = mean_interval(np.log(result.frame[name].to_numpy()), 0.999)
        assert found.low < 0 < found.high
    assert (result.frame["ASD"] == 0).all()


@pytest.mark.parametrize(("reading", "most"), [("compact", 0.6), ("echo", 0.75)])
def test_deformation_suppresses_replay_and_off_at_replay_brings_back_the_stationary_one(
    reading, most
):
    policy, setting = Net(5), rapo.Setting.named(reading)
    graph = generate(250, 0, setting)
    runs = {
        name: evaluate(
            make(graph, setting=setting, deformation=kernel), policy, 32, 0, off_at_replay=off
        )
        for name, kernel, off in (
            ("P0", "off", False), ("RAPO", "full", False), ("off@rep", "full", True)
        )
    }  # fmt: skip
    rag = {name: run.frame["RAG"].mean() for name, run in runs.items()}
    assert rag["RAPO"] < most < 0.85 < rag["off@rep"]
    assert runs["RAPO"].frame["OddsRatio"].mean() < most
    assert (runs["off@rep"].frame["OddsRatio"] == 1).all()
    for name in ("reach", "sensitive_mass", "reward"):  # bit for bit, for a policy that sees x
        assert np.array_equal(runs["off@rep"].of_phase(name, 2), runs["P0"].of_phase(name, 2))
    assert runs["RAPO"].frame["GatingRate"].mean() > 0.3
    assert (runs["P0"].frame["GatingRate"] == 0).all()
    assert runs["RAPO"].frame["R_c"].mean() < runs["P0"].frame["R_c"].mean()


def test_action_shift_of_a_policy_that_sees_the_fields(small_graph):
    env = make(small_graph, observe="xGH", deformation="off")
    size = env.observation_space.shape[0]
    result = evaluate(env, Net(size), episodes=6, seed=0, coupled=True, horizons=HORIZONS)
    assert (result.frame["ASD"] > 0.001).all()
    blind = Net(size)
    with torch.no_grad():
        blind.layers[0].weight[:, 5:] = 0  # sees the fields, ignores them
    result = evaluate(env, blind, episodes=6, seed=0, coupled=True, horizons=HORIZONS)
    assert (result.frame["ASD"] == 0).all()


def test_episodes_do_not_depend_on_their_number_nor_on_the_kind_of_environment(small_graph):
    env = make(small_graph)
    many = evaluate(env, Net(5), episodes=8, seed=5, horizons=HORIZONS)
    one = evaluate(env, Net(5), episodes=1, seed=8, horizons=HORIZONS)
    assert np.array_equal(one.traces["reach"][0], many.traces["reach"][3])
    vector = rapo.GraphDiffusionVectorEnv(2, graph=small_graph)
    same = evaluate(vector, Net(5), episodes=8, seed=5, horizons=HORIZONS)
    assert same.frame.equals(many.frame)


def test_the_general_path_runs_our_environment_through_the_protocol(small_graph):
    """Hidden behind a plain object, the single environment is just anyone's ReplayEnv."""

    class Foreign:
        def __init__(self, env):
            self._env = env

        def __getattr__(self, name):
            return getattr(self._env, name)

    env = Foreign(make(small_graph, schedule="external", deformation="off").unwrapped)
    result = evaluate(env, threshold, episodes=3, seed=0, coupled=True, horizons=(80, 60, 80))
    assert np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))
    assert np.allclose(result.frame["RAG"], 1, atol=1e-7)
    assert result.frame["R_c"].isna().all() and result.graph_hash is None
    full = Foreign(make(small_graph, schedule="external").unwrapped)
    off = evaluate(full, threshold, 3, 0, horizons=(120, 60, 120), off_at_replay=True)
    assert (off.frame["OddsRatio"] == 1).all()
    assert np.nanmean(off.of_phase("odds_ratio", 0)) < 1


def test_somebody_is_told_how_far_it_is_and_may_end_it(small_graph):
    env = rapo.GraphDiffusionVectorEnv(1, graph=small_graph, fit=False)
    options = {"horizons": (30, 10, 60), "against_P0": True, "selectivity": True}
    told = []
    evaluate(env, lambda x: 0, 2, progress=lambda *share: told.append(share), **options)
    assert told == [(done, 250) for done in range(1, 251)]  # twice 100, and 50 for selectivity
    told.clear()
    evaluate(env, lambda x: 0, 2, progress=lambda *share: told.append(share), horizons=(30, 10, 60))
    assert told == [(done, 100) for done in range(1, 101)]

    class EndError(Exception):
        pass

    def end(done, steps):
        if done == 3:
            raise EndError

    with pytest.raises(EndError):
        evaluate(env, lambda x: 0, 2, progress=end, **options)


def test_an_empty_exposure_is_undefined():
    class Quiet(gymnasium.Env):
        stimuli = 1
        action_space = gymnasium.spaces.Discrete(2)
        observation_space = gymnasium.spaces.Box(0, 1, (1,))

        def reset(self, *, seed=None, options=None):
            return np.zeros(1), {}

        def activate(self, stimulus): ...

        def deactivate(self): ...

        def reset_observable(self, seed=None):
            return np.zeros(1)

        def step(self, action):
            return np.zeros(1), 0.0, False, False, {"reach": 0, "sensitive_mass": 0}

    result = evaluate(Quiet(), lambda x: 0, episodes=2, horizons=(5, 5, 5))
    for name in ("RAG", "AUC_R", "SM_R", "OddsRatio", "ScarMass", "GatingRate"):
        assert result.frame[name].isna().all()
    assert result.summary()["RAG"]["undefined"] == 2
    with pytest.raises(ValueError, match=r"off_at_replay needs Quiet.set_deformation"):
        evaluate(Quiet(), lambda x: 0, episodes=2, horizons=(5, 5, 5), off_at_replay=True)


def test_save_and_load(small_graph, tmp_path):
    env = make(small_graph)
    result = evaluate(env, Net(5), episodes=3, seed=1, horizons=HORIZONS)
    folder = result.save(tmp_path / "run")
    again = RSDResult.load(folder)
    assert again.summary() == result.summary()
    assert again.graph == small_graph and again.manifest["horizons"] == list(HORIZONS)
    for name, trace in result.traces.items():
        assert np.array_equal(trace, again.traces[name], equal_nan=True)
    assert np.array_equal(again.cascade, result.cascade)
    with pytest.raises(FileExistsError, match=r"episodes\.csv exists"):
        result.save(folder)
    result.save(folder, force=True)
    (folder / "traces.npz").write_bytes(b"junk")
    with pytest.raises(ValueError, match="is damaged"):
        RSDResult.load(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"manifest.json is missing"):
        RSDResult.load(folder)


def test_results_of_different_graphs_are_not_compared(small_graph, graph250):
    from rapo.rsd.result import same_graph

    runs = {
        str(graph.n): evaluate(make(graph), threshold, episodes=2, horizons=(5, 5, 5))
        for graph in (small_graph, graph250)
    }
    with pytest.raises(ValueError, match="different graphs"):
        same_graph(runs)
    same_graph({"a": runs["60"], "b": runs["60"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizons": (0, 1, 1)}, r"three whole numbers of steps >= 1, got \(0, 1, 1\)"),
        ({"horizons": (5, 5)}, "three whole numbers of steps >= 1"),
        ({"episodes": 0}, "episodes must be a whole number >= 1, got 0"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"stimuli": 21}, r"stimulus must be in 1..20"),
        ({"stimuli": [1]}, r"stimulus must be in 1..20"),
        ({"coupled": "yes"}, "coupled must be True or False"),
        ({"policy": 3}, "policy must be a callable"),
        ({"policy": Recurrent}, "policy must be an instance, got the class Recurrent"),
        ({"policy": torch.nn.Linear(9, 3)}, "the policy failed on its first observations"),
        ({"gamma": 5}, r"gamma must be in \(0, 1\], got 5"),
        ({"deterministic": "no"}, "deterministic must be True or False"),
        ({"policy": lambda x: 5}, r"must return actions 0..2, one per observation, got"),
        ({"policy": lambda x: 0.5}, r"must return actions 0..2"),
        ({"policy": torch.nn.Linear(5, 4)}, r"logits of shape \(2, 3\), got \(2, 4\)"),
    ],
)
def test_bad_input_is_named(small_graph, options, message):
    options = {"policy": threshold, "episodes": 2, "horizons": (5, 5, 5), **options}
    with pytest.raises(ValueError, match=message):
        evaluate(make(small_graph), **options)


def test_a_model_of_another_action_space_is_refused(small_graph):
    sb3 = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, device="cpu")
    with pytest.raises(ValueError, match=r"the policy acts in Discrete\(2\)"):
        evaluate(make(small_graph), model, episodes=2)


def test_an_environment_without_the_protocol_is_refused():
    with pytest.raises(ValueError, match=r"lacks .*'activate'.* of the ReplayEnv protocol"):
        evaluate(gymnasium.make("CartPole-v1"), lambda x: 0)


def test_a_recurrent_model_is_reset_at_every_phase_and_its_memory_matters(small_graph):
    contrib = pytest.importorskip("sb3_contrib")
    from rapo.rsd.policy import as_actor

    env = make(small_graph)
    model = contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=64, batch_size=64, seed=0)
    actor = as_actor(model, env.action_space)
    x = np.tile(np.array([0.2, 0.5, 0.5, 0.1, 0.3], np.float32), (3, 1))
    actor.reset(3, 0)
    first, second = actor.act(x, np.full(3, 0.5))[1], actor.act(x, np.full(3, 0.5))[1]
    assert not np.array_equal(first, second)
    actor.reset(3, 0)
    assert np.array_equal(actor.act(x, np.full(3, 0.5))[1], first)


def test_a_model_with_its_own_draws_is_seeded_per_phase(small_graph):
    """Coupled phases share the seed, independent ones do not."""

    class Dice:
        action_space = gymnasium.spaces.Discrete(3)

        def set_random_seed(self, seed):
            self.rng = np.random.default_rng(seed)

        def predict(self, x, state=None, episode_start=None, deterministic=False):
            return self.rng.integers(0, 3, len(x)), None

    env = make(small_graph, deformation="off")
    for coupled in (True, False):
        result = evaluate(env, Dice(), 4, 0, coupled, horizons=(60, 60, 60))
        same = np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))
        assert same is coupled
        assert result.frame["ASD"].isna().all()


def test_a_law_that_is_none_is_refused(small_graph):
    class Odd:
        def __call__(self, x):
            return 0

        def law(self, x):
            return [5, 5, 5, -1]

    broken = torch.nn.Linear(5, 3)
    with torch.no_grad():
        broken.bias[:] = float("nan")
    for policy in (Odd(), broken):
        with pytest.raises(ValueError, match="law must be 2 distributions over the actions"):
            evaluate(make(small_graph), policy, episodes=2, horizons=(5, 5, 5))


def test_stochastic_callables_with_a_law_replay_exactly(small_graph):
    class Coin:
        def law(self, x):
            return np.array([0.5, 0.3, 0.2])

        def __call__(self, x):
            return np.random.default_rng().integers(3)

    env = make(small_graph, deformation="off")
    result = evaluate(env, Coin(), 4, 0, coupled=True, horizons=(60, 60, 60))
    assert np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))
    assert (result.frame["ASD"] == 0).all()
    one = evaluate(env, Coin(), 4, 0, deterministic=True, horizons=(60, 60, 60))
    assert (one.laws[..., 0] == 1).all()


def test_the_action_shift_of_a_policy_with_memory_leaves_the_run_alone(small_graph):
    """Recurrent, shown the fields, ignoring them: no shift, and Replay repeats Exposure."""
    env = make(small_graph, observe="xGH", deformation="off")
    result = evaluate(env, Recurrent(), 4, 0, coupled=True, horizons=HORIZONS)
    assert (result.frame["ASD"] == 0).all()
    assert np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))


def test_off_at_replay_does_not_outlive_its_run():
    lake = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    env = rapo.rsd.TabularReplayEnv(lake, delay=10)

    def odds(**options):
        return evaluate(env, lambda x: 2, 1, 0, horizons=(150, 40, 60), **options).frame[
            "OddsRatio"
        ]

    first, off, again = odds(), odds(off_at_replay=True), odds()
    assert off[0] == 1 and first[0] < 0.95
    assert first[0] == again[0]


def test_theorem_1_on_a_transition_table():
    lake = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    env = rapo.rsd.TabularReplayEnv(lake, deformation="off", delay=10)
    policy = torch.nn.Linear(env.observation_space.shape[0], 4)
    result = evaluate(env, policy, 2, 0, coupled=True, horizons=(60, 100, 60))
    assert np.array_equal(result.of_phase("reach", 0), result.of_phase("reach", 2))
    assert (result.frame["ASD"] == 0).all()


def test_wrappers_are_looked_through_or_refused(small_graph):
    class Adapter(gymnasium.Wrapper):
        """The natural way to give someone else's environment the protocol."""

        stimuli = 1

        def activate(self, stimulus): ...

        def deactivate(self): ...

        def reset_observable(self, seed=None):
            return self.env.reset(seed=seed)[0]

        def step(self, action):
            x, reward, *_ = self.env.step(action)
            return x, reward, False, False, {"reach": 1.0 + abs(x[0]), "sensitive_mass": 0.0}

    cart = Adapter(gymnasium.make("CartPole-v1", max_episode_steps=10_000).unwrapped)
    result = evaluate(cart, lambda x: 0, 1, 0, coupled=True, horizons=(8, 2, 8))
    assert result.frame["RAG"][0] == pytest.approx(1)
    assert result.frame["ASD"].isna().all()  # nobody said which entries show the memory
    changed = gymnasium.wrappers.TransformObservation(make(small_graph), lambda x: -x, None)
    with pytest.raises(ValueError, match=r"wrappers \['TransformObservation'\] stand outside"):
        evaluate(changed, threshold, 2)


def test_gating_is_the_share_of_harmful_entry_held_back(graph250):
    result = evaluate(make(graph250), threshold, 4, 0)
    ratio = np.nanmean(result.of_phase("odds_ratio", 2), axis=1)
    assert ((result.frame["GatingRate"] > 0) & (result.frame["GatingRate"] < 1)).all()
    assert np.corrcoef(1 - ratio, result.frame["GatingRate"])[0, 1] > 0.5
