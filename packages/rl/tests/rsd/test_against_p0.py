"""Replay against the Replay of a P0 twin: the same policy, seeds and draws, no deformation."""

import gymnasium
import numpy as np
import pandas as pd
import pytest

import rapo
from rapo.rsd import RSDResult, evaluate
from rapo.rsd.frame import against
from rapo.rsd.metrics import discounted

torch = pytest.importorskip("torch")
HORIZONS = (150, 60, 100)
COLUMNS = ["SM_vs_P0", "Reach_vs_P0", "ReturnKept"]


class Net(torch.nn.Module):
    """A law that depends on everything it sees."""

    def __init__(self, size):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Linear(size, 3)

    def forward(self, x):
        return 3 * self.layers(x)


def make(graph, **options):
    return rapo.GraphDiffusionVectorEnv(1, graph=graph, fit=False, **options)


def lake(**options):
    env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    return rapo.rsd.TabularReplayEnv(env, delay=10, **options)


def run(env, policy, **options):
    return evaluate(env, policy, episodes=6, seed=3, horizons=HORIZONS, **options)


@pytest.fixture(scope="module")
def pair(small_graph):
    """RAPO with its twin, and P0 by itself."""
    return run(make(small_graph), Net(5), against_P0=True), run(
        make(small_graph, deformation="off"), Net(5)
    )


def test_the_twin_is_the_run_under_P0(pair):
    rapo_run, nominal = pair
    after = nominal.phase == 2
    for trace, column, total in (
        ("sensitive_mass", "SM_vs_P0", "P0SensitiveMass"), ("reach", "Reach_vs_P0", "P0Reach"),
    ):  # fmt: skip
        expected = nominal.traces[trace][:, after].astype(float).sum(axis=1)
        assert np.array_equal(rapo_run.frame[total], expected)
        mine = rapo_run.traces[trace][:, after].astype(float).sum(axis=1)
        assert np.allclose(rapo_run.frame[column], mine / expected)
    kept = rapo_run.frame["ReplayReturn"] / nominal.frame["ReplayReturn"]
    assert np.allclose(rapo_run.frame["ReturnKept"], kept)
    assert np.array_equal(
        rapo_run.frame["P0Return"], discounted(nominal.traces["reward"][:, after], 0.99)
    )
    assert (rapo_run.frame["SM_vs_P0"] < 0.7).all()


def test_a_twin_that_is_known_already_tells_the_same(pair, small_graph):
    whole, nominal = pair
    alone = run(make(small_graph), Net(5))
    found = against(alone, nominal)
    pd.testing.assert_frame_equal(found.frame, whole.frame, check_exact=True)
    assert found.manifest["against_P0"] and np.isnan(alone.frame["SM_vs_P0"]).all()
    assert (against(nominal, nominal).frame[COLUMNS] == 1).all(axis=None)


@pytest.mark.parametrize("other", [{"seed": 4}, {"stimuli": 2}, {"horizons": (150, 50, 110)}])
def test_a_twin_of_other_episodes_is_refused(pair, small_graph, other):
    options = {"episodes": 6, "seed": 3, "horizons": HORIZONS, **other}
    stranger = evaluate(make(small_graph, deformation="off"), Net(5), **options)
    with pytest.raises(ValueError, match="episodes of the result"):
        against(pair[0], stranger)


def test_the_run_itself_is_not_disturbed_and_without_a_twin_nothing_is_told(pair, small_graph):
    alone = run(make(small_graph), Net(5))
    for name, trace in alone.traces.items():
        assert np.array_equal(trace, pair[0].traces[name], equal_nan=True)
    assert alone.frame[COLUMNS].isna().all(axis=None)
    told = [name for name in alone.frame if name not in COLUMNS]
    assert alone.frame[told].equals(pair[0].frame[told])
    assert np.isnan(alone.pooled()["SM_vs_P0"]["ratio"])


@pytest.mark.parametrize("observe", ["x", "xGH"])
@pytest.mark.parametrize("coupled", [False, True])
def test_a_run_that_is_P0_keeps_everything(small_graph, observe, coupled):
    env = make(small_graph, deformation="off", observe=observe)
    policy = Net(env.single_observation_space.shape[0])
    result = run(env, policy, coupled=coupled, against_P0=True)
    assert (result.frame[COLUMNS] == 1).all(axis=None)
    for name in COLUMNS:
        assert result.pooled()[name]["ci95"] == [1.0, 1.0]


def test_replay_without_deformation_is_P0s_for_a_policy_that_sees_x(small_graph):
    result = run(make(small_graph), Net(5), off_at_replay=True, against_P0=True)
    assert (result.frame[COLUMNS] == 1).all(axis=None)
    assert (result.frame["SM_R"] > 1.05).any()  # its own Exposure was held down


def test_pooled_is_sum_over_sum(pair):
    frame = pair[0].frame
    pooled = pair[0].pooled()
    after = pair[0].phase == 2
    inside = pair[0].traces["sensitive_mass"][:, after].sum(dtype=float)
    assert pooled["SM_vs_P0"]["ratio"] == pytest.approx(inside / frame["P0SensitiveMass"].sum())
    kept = frame["ReplayReturn"].sum() / frame["P0Return"].sum()
    assert pooled["ReturnKept"]["ratio"] == pytest.approx(kept)
    for name in COLUMNS:
        low, high = pooled[name]["ci95"]
        assert low < pooled[name]["ratio"] < high and pooled[name]["n"] == 6


def test_it_survives_saving(pair, tmp_path):
    again = RSDResult.load(pair[0].save(tmp_path / "run"))
    assert again.pooled() == pair[0].pooled() and again.summary() == pair[0].summary()
    assert again.manifest["against_P0"] is True


def test_an_environment_of_someone_else_is_switched_off_for_the_twin():
    found = evaluate(lake(), lambda x: 2, 2, 0, horizons=(120, 40, 80), against_P0=True)
    twin = evaluate(
        lake(deformation="off"), lambda x: 2, 2, 0, horizons=(120, 40, 80), against_P0=True
    )
    assert (twin.frame[COLUMNS] == 1).all(axis=None)
    assert (found.frame["SM_vs_P0"] < 0.9).all()
    assert np.array_equal(found.frame["P0SensitiveMass"], twin.frame["P0SensitiveMass"])
    odds = evaluate(lake(), lambda x: 2, 2, 0, horizons=(120, 40, 80)).frame["OddsRatio"]
    assert found.frame["OddsRatio"].equals(odds)


def test_the_deformation_is_on_again_after_the_twin():
    env = lake()
    first, second = (
        evaluate(env, lambda x: 2, 1, 0, horizons=(120, 40, 80), against_P0=True) for _ in range(2)
    )
    assert first.frame.equals(second.frame) and first.frame["OddsRatio"][0] < 0.95


def test_an_environment_that_cannot_is_refused():
    class Fixed(gymnasium.Wrapper):
        stimuli = 1

        def activate(self, stimulus): ...

        def deactivate(self): ...

        def reset_observable(self, seed=None):
            return self.env.reset(seed=seed)[0]

    with pytest.raises(ValueError, match=r"against_P0 needs Fixed.set_deformation"):
        evaluate(Fixed(gymnasium.make("CartPole-v1").unwrapped), lambda x: 0, against_P0=True)
    with pytest.raises(ValueError, match="against_P0 must be True or False"):
        evaluate(lake(), lambda x: 2, against_P0="yes")


def test_a_watching_policy_watches_the_twin_and_counts_the_run_alone(small_graph):
    from rapo.agents.shield import Shield

    class Base:
        def reset(self, episodes, seed): ...

        def act(self, x, draws):
            law = np.tile([0.6, 0.2, 0.2], (len(x), 1))
            return np.zeros(len(x), int), law

    counts = []
    for extra in ({}, {"selectivity": True}, {"against_P0": True, "selectivity": True}):
        shield = Shield(Base(), 0.8, reference=5.0, rollouts=2, horizon=5)
        result = evaluate(make(small_graph), shield, 3, 0, horizons=(60, 70, 30), **extra)
        counts.append((shield.transitions, shield.steps))
    assert counts[0] == counts[1] == counts[2]
    assert result.frame[[*COLUMNS, "Selectivity"]].notna().all(axis=None)
