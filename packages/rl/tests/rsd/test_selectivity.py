"""Selectivity: the odds when Replay begins under another stimulus, with the memory of the first."""

import gymnasium
import numpy as np
import pytest

import rapo
from rapo.rsd import evaluate

HORIZONS = (150, 70, 90)
COLUMNS = ["OddsSame", "OddsOther", "Selectivity"]


def always(x):
    return 0


def make(graph, **options):
    return rapo.GraphDiffusionVectorEnv(1, graph=graph, fit=False, **options)


def run(env, policy=always, **options):
    return evaluate(env, policy, episodes=5, seed=2, horizons=HORIZONS, **options)


@pytest.fixture(scope="module")
def told(graph250):
    return run(make(graph250), selectivity=True)


def test_the_run_itself_is_not_disturbed(told, graph250):
    alone = run(make(graph250))
    for name, trace in alone.traces.items():
        assert np.array_equal(trace, told.traces[name], equal_nan=True)
    assert np.array_equal(alone.scars, told.scars) and np.array_equal(alone.cascade, told.cascade)
    rest = [name for name in alone.frame if name not in COLUMNS]
    assert alone.frame[rest].equals(told.frame[rest])
    assert alone.frame[COLUMNS].isna().all(axis=None)


def test_the_same_stimulus_is_the_runs_own_first_fifty_steps(told):
    odds = told.of_phase("odds_ratio", 2)[:, :50].astype(float)
    assert np.allclose(told.frame["OddsSame"], np.nanmean(odds, axis=1))
    gap = told.frame["OddsOther"] - told.frame["OddsSame"]
    assert np.allclose(told.frame["Selectivity"], gap)


def test_the_other_stimulus_is_the_next_one_with_the_same_memory(told, graph250):
    """By hand: the steps of the diagnostic up to Replay, then Replay of z mod Z + 1."""
    setting = rapo.Setting.default().replace(horizons=HORIZONS)
    env = rapo.GraphDiffusionVectorEnv(
        5, graph=graph250, fit=False, setting=setting, schedule="external"
    )
    env.reset(seed=2)
    z = env.stimulus
    assert np.array_equal(z, told.frame["stimulus"])
    for phase, steps in (("exposure", 150), ("decay", 70), ("replay", 50)):
        if phase == "decay":
            env.begin(phase)
        if phase == "replay":
            env.begin(phase, z % graph250.stimuli + 1)
        odds = [env.step(np.zeros(5, int))[-1]["odds_ratio"] for _ in range(steps)]
    assert np.allclose(told.frame["OddsOther"], np.nanmean(np.array(odds, float), axis=0))


def test_another_stimulus_is_held_back_less(graph250):
    found = evaluate(make(graph250), always, 20, 1000, selectivity=True).frame
    assert found["OddsSame"].mean() < found["OddsOther"].mean() <= 1
    under_P0 = run(make(graph250, deformation="off"), selectivity=True).frame
    assert (under_P0[["OddsSame", "OddsOther"]] == 1).all(axis=None)
    assert (under_P0["Selectivity"] == 0).all()


def test_a_short_replay_is_looked_at_whole(graph250):
    found = evaluate(make(graph250), always, 3, 0, horizons=(150, 60, 20), selectivity=True)
    odds = found.of_phase("odds_ratio", 2).astype(float)
    assert np.allclose(found.frame["OddsSame"], np.nanmean(odds, axis=1))
    assert found.frame["OddsOther"].notna().all()


class Bare:
    """Someone else's environment: the protocol alone, without the members named."""

    def __init__(self, env, *hidden, **changed):
        self._env, self._hidden = env, hidden
        vars(self).update(changed)

    def __getattr__(self, name):
        if name in self._hidden:
            raise AttributeError(name)
        return getattr(self._env, name)


def lake():
    env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    return rapo.rsd.TabularReplayEnv(env, delay=10)


def test_without_snapshots_the_way_to_replay_is_run_again():
    frames = [
        evaluate(env, lambda x: 2, 3, 0, horizons=(120, 30, 60), selectivity=True).frame
        for env in (Bare(lake()), Bare(lake(), "snapshot", "restore"))
    ]
    assert frames[0].equals(frames[1])
    assert frames[0]["Selectivity"].abs().max() > 0
    plain = evaluate(Bare(lake()), lambda x: 2, 3, 0, horizons=(120, 30, 60)).frame
    assert plain["OddsRatio"].equals(frames[0]["OddsRatio"])


def test_where_there_is_no_other_stimulus_or_no_odds_it_is_not_available():
    activated = []

    class Silent(Bare):
        def activate(self, stimulus):
            activated.append(stimulus)
            self._env.activate(stimulus)

        def step(self, action):
            *rest, info = self._env.step(action)
            return *rest, {name: info[name] for name in ("reach", "sensitive_mass")}

    for env in (Bare(lake(), stimuli=1), Silent(lake())):
        found = evaluate(env, lambda x: 2, 2, 0, horizons=(60, 20, 30), selectivity=True)
        assert found.frame[COLUMNS].isna().all(axis=None)
    assert len(activated) == 2 * 2  # and nothing is run in vain
    with pytest.raises(ValueError, match="selectivity must be True or False"):
        evaluate(lake(), lambda x: 2, selectivity=1)


def test_a_policy_with_a_memory_is_reset_for_the_second_replay(graph250):
    """It counts its steps: not reset, it would act otherwise under the other stimulus."""

    class Counter:
        batched = True

        def __init__(self, forgets):
            self.forgets, self.steps = forgets, 0

        def reset(self):
            if self.forgets:
                self.steps = 0

        def __call__(self, x):
            self.steps += 1
            return np.full(len(x), 0 if self.steps <= 150 else 2)

    frame = run(make(graph250), Counter(True), selectivity=True).frame
    aggressive = run(make(graph250), lambda x: 0, selectivity=True).frame
    late = run(make(graph250), Counter(False), selectivity=True).frame
    assert np.array_equal(frame["OddsOther"] == aggressive["OddsOther"], frame["OddsSame"] ==
                          aggressive["OddsSame"])  # fmt: skip
    assert not np.array_equal(late["OddsOther"], aggressive["OddsOther"])
