"""Transition tables as platforms: the protocol, the kernel against the theory, bad input."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo import FieldParams, theory
from rapo.platforms.tabular import TabularReplayEnv, read_table
from rapo.rsd.adapters import ReplayEnv

TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"


def lake(**options):
    return TabularReplayEnv(gymnasium.make("FrozenLake-v1", map_name="8x8"), **options)


def cliff(**options):
    beside = np.arange(25, 35)  # one step above the cliff
    table = gymnasium.make("CliffWalking-v1", is_slippery=True)
    return TabularReplayEnv(table, harmful=beside, **options)


def taxi(**options):
    table = gymnasium.make(TAXI, is_rainy=True)
    return TabularReplayEnv(table, harmful=np.arange(500) // 100 == 2, **options)


ALL = pytest.mark.parametrize("make", [lake, cliff, taxi])


def steps(env, count, start=0):
    """Observations, rewards and infos of a policy that depends on the step alone."""
    rows = [env.step((7 * t + t // 5) % env.actions) for t in range(start, start + count)]
    return np.array([x for x, *_ in rows]), [r for _, r, *_ in rows], [row[-1] for row in rows]


def series(infos, name):
    return np.array([info.get(name, np.nan) for info in infos])


def rsd(env, *, off_at_replay=False, seeds=(3, 3), horizons=(150, 60, 150)):
    env.set_deformation(True)
    env.reset(seed=0)
    env.activate(2)
    env.reset_observable(seeds[0])
    exposure = steps(env, horizons[0])
    env.deactivate()
    decay = steps(env, horizons[1])
    env.set_deformation(not off_at_replay)
    env.activate(2)
    env.reset_observable(seeds[1])
    return exposure, decay, steps(env, horizons[2])


def same(one, other):
    x_size = min(one[0].shape[1], other[0].shape[1])
    equal = np.array_equal(one[0][:, :x_size], other[0][:, :x_size]) and one[1] == other[1]
    names = ("reach", "sensitive_mass", "entry_nominal")
    return equal and all(np.array_equal(series(one[2], n), series(other[2], n)) for n in names)


def with_fields(env, G=None, H=None):
    """Put fields into the memory of an environment."""
    state = env.snapshot()
    for name, field in (("engine.memory.G", G), ("engine.memory.H", H)):
        if field is not None:
            state[name] = np.asarray(field)[None]
    env.restore(state)
    return env


def split_rows(env):
    """Rows of the table with harmful and other next states: `kernel` and the harmful flags."""
    for s, a in np.ndindex(env.places, env.actions):
        row = env.kernel(s, a)
        harmful = env.harmful[row[0]]
        if harmful.any() and not harmful.all():
            yield row, harmful


@ALL
@pytest.mark.parametrize("observe", ["x", "xGH"])
def test_protocol_and_gymnasium_checker(make, observe):
    env = make(observe=observe, walkers=10)
    assert isinstance(env, ReplayEnv)
    check_env(env, skip_render_check=True)


def test_memory_mask_marks_the_fields():
    assert lake().memory_mask is None
    env = lake(observe="xGH", delay=5)
    env.reset(seed=0)
    x = steps(env, 40)[0][-1]
    shown = np.concatenate([env.harm_memory.G, env.harm_memory.H]).astype(np.float32)
    assert np.array_equal(x[env.memory_mask], shown) and shown.max() > 0


@ALL
def test_one_seed_one_trajectory(make):
    one, other = make(), make()
    x, _ = one.reset(seed=5)
    y, _ = other.reset(seed=5)
    assert np.array_equal(x, y)
    assert same(steps(one, 100), steps(other, 100))
    one.reset(seed=6)
    other.reset(seed=5)
    assert not same(steps(one, 100), steps(other, 100))


def test_resets_without_a_seed_go_on_to_other_episodes():
    env = lake()
    env.reset(seed=5, options={"stimulus": 1})
    first = steps(env, 30)
    env.reset(options={"stimulus": 1})
    assert not same(first, steps(env, 30))


@ALL
def test_stationary_coupled_replay_is_exposure_bit_for_bit(make):
    exposure, _, replay = rsd(make(deformation="off", delay=20))
    assert same(exposure, replay)
    assert not same(exposure, rsd(make(deformation="off", delay=20), seeds=(3, 4))[2])


def test_reset_observable_keeps_the_memory():
    env = lake(delay=5)
    env.reset(seed=0)
    steps(env, 60)
    before = env.harm_memory.snapshot()
    x = env.reset_observable(1)
    assert not x.any()
    assert all(np.array_equal(v, before[k]) for k, v in env.harm_memory.snapshot().items())
    assert before["G"].max() > 0 and before["waiting"].max() > 0
    env.reset(seed=0)
    assert not env.harm_memory.G.any() and not env.harm_memory.snapshot()["waiting"].any()


@ALL
def test_off_at_replay_is_the_stationary_replay_bit_for_bit(make):
    _, _, undone = rsd(make(delay=20), off_at_replay=True)
    stationary = rsd(make(deformation="off", delay=20))[2]
    assert same(undone, stationary)
    ratio = series(undone[2], "odds_ratio")
    assert np.all(ratio[~np.isnan(ratio)] == 1) and not series(undone[2], "gating_rate").any()
    deformed = rsd(make(delay=20))[2]
    assert np.nanmean(series(deformed[2], "odds_ratio")) < 0.8
    assert series(deformed[2], "entry_deformed").sum() < series(deformed[2], "entry_nominal").sum()


@pytest.mark.parametrize("phase", [0, 30])
def test_snapshot_round_trip(phase):
    env, other = lake(delay=7), lake(delay=7)
    env.reset(seed=0)
    steps(env, 30)
    if phase:
        env.deactivate()
        steps(env, 5)
    state = env.snapshot()
    went_on = steps(env, 40), env.snapshot()
    assert np.array_equal(other.restore(state)[0], env.restore(state)[0])
    for again in (env, other):
        assert same(went_on[0], steps(again, 40))
        assert all(np.array_equal(v, went_on[1][k]) for k, v in again.snapshot().items())
    env.restore(went_on[1])  # the first snapshot has not been written to
    assert all(np.array_equal(other.restore(state)[0], env.restore(state)[0]) for _ in range(2))


@pytest.mark.parametrize(("walkers", "per_walker"), [(50, 0.1), (100, 0.05), (1, 1.0)])
def test_harm_arrives_after_the_delay_in_proportion_to_the_walkers(walkers, per_walker):
    env = lake(walkers=walkers, delay=6)
    env.reset(seed=0)
    infos = steps(env, 80)[2]
    # A_t is what step t - 1 told about: harm of step t is that of A_{t-6}
    due = np.concatenate([np.zeros(7), series(infos, "sensitive_mass")[:-7]])
    assert series(infos, "harm") == pytest.approx(np.minimum(per_walker * due, 1))
    assert series(infos, "harm").max() > 0


def test_scars_only_where_walkers_were_harmed():
    env = lake(delay=5, leave=0.05)
    env.reset(seed=0)
    steps(env, 500)
    assert env.harm_memory.H.max() > 0 and not env.harm_memory.H[~env.harmful].any()


@given(scar=st.floats(0.01, 1.1), trace=st.floats(0, 2))
@settings(max_examples=10, deadline=None)
def test_constant_scar_contracts_the_odds_of_every_row_exactly(scar, trace):
    env = lake()
    H = np.where(env.harmful, scar, 0.0)
    with_fields(env, G=np.zeros(64), H=H)
    count = 0
    for (places, p0, psi, p), harmful in split_rows(env):
        lemma = theory.paper_odds_bound(
            env.harm_memory.G[places], H[places], harmful, FieldParams()
        )
        assert lemma.applies, lemma.why
        contraction = theory.entry_odds(p, harmful) / theory.entry_odds(p0, harmful)
        assert contraction == pytest.approx(lemma.value, rel=1e-12)
        assert lemma.value == pytest.approx(np.exp(-2 * scar))
        assert theory.odds_bound(psi, harmful).value == pytest.approx(lemma.value)
        count += 1
    assert count > 50
    with_fields(env, G=np.where(env.harmful, trace, 0.0))  # a trace that is not common
    for (_, p0, _, p), harmful in split_rows(env):
        contraction = theory.entry_odds(p, harmful) / theory.entry_odds(p0, harmful)
        assert contraction == pytest.approx(max(np.exp(-2 * scar - trace), 0.1))


def test_every_row_obeys_the_general_bound_and_off_brings_it_back():
    env = lake(delay=20)
    rsd(env)
    lowered = 0
    for (_, p0, psi, p), harmful in split_rows(env):
        contraction = theory.entry_odds(p, harmful) / theory.entry_odds(p0, harmful)
        assert contraction <= theory.odds_bound(psi, harmful).value * (1 + 1e-12)
        assert p.sum() == pytest.approx(1)
        lowered += contraction < 0.9
    assert lowered > 20
    env.set_deformation(False)
    for (_, p0, psi, p), _ in split_rows(env):
        assert np.all(psi == 1) and p == pytest.approx(p0, rel=1e-15)


def test_told_odds_ratio_is_the_mean_contraction_over_the_walkers():
    env = lake(delay=5)
    env.reset(seed=0)
    steps(env, 120)
    env.deactivate()  # so that all who move are in the snapshot
    state = env.engine.state
    rows = [env.kernel(s, 1) for s in state["at"][~state["done"]]]
    info = env.step(1)[-1]
    nominal, deformed, weighted, odds_mass, gated = 0.0, 0.0, 0.0, 0.0, []
    for places, p0, psi, p in rows:
        harmful = env.harmful[places]
        nominal, deformed = nominal + p0[harmful].sum(), deformed + p[harmful].sum()
        gated.append((psi < 1).any())
        if harmful.any() and not harmful.all():
            factor = theory.entry_odds(p, harmful) / theory.entry_odds(p0, harmful)
            weighted, odds_mass = (
                weighted + p0[harmful].sum() * factor,
                odds_mass + p0[harmful].sum(),
            )
    assert info["odds_ratio"] == pytest.approx(weighted / odds_mass) and info["odds_ratio"] < 0.9
    assert info["entry_nominal"] == pytest.approx(nominal)
    assert info["entry_deformed"] == pytest.approx(deformed)
    assert info["gating_rate"] == np.mean(gated)


@pytest.mark.parametrize(
    ("deformation", "scarred"),
    [("full", [18, 27, 34]), ("off", []), ("topk:1", [34]), ("local:0.5", [27, 34])],
)
def test_walkers_follow_the_kernel(deformation, scarred):
    env = lake(walkers=40_000, stimuli=np.eye(64)[[26]], deformation=deformation)
    env.reset(seed=0)
    with_fields(env, H=np.where(env.harmful, np.linspace(0.1, 1, 64), 0.0))
    places, _, psi, p = env.kernel(26, 2)
    assert sorted(places[psi < 1]) == scarred
    env.step(2)
    seen = np.array([(env.engine.state["at"] == place).mean() for place in places])
    assert seen == pytest.approx(p, abs=0.01) and seen.sum() == 1


def test_local_covers_a_share_of_the_harmful_regions():
    env = with_fields(lake(deformation="local:0.25"), H=np.full(64, 0.5))
    covered = {int(s) for row in split_rows(env) for s in row[0][0][row[0][2] < 1]}
    assert len(covered) <= np.ceil(0.25 * env.harmful.sum()) and env.harmful[list(covered)].all()


def test_default_harm_is_beside_the_holes():
    env = lake()
    holes = env.env.unwrapped.desc.ravel() == b"H"
    beside = {s + d for s in np.flatnonzero(holes) for d in (-1, 1, -8, 8)}
    assert set(np.flatnonzero(env.harmful)) <= beside and not (env.harmful & holes).any()
    assert env.harmful[18] and env.harmful[20] and not env.harmful[0]


@ALL
def test_start_laws_are_safe_distinct_and_deterministic(make):
    env = make()
    assert env.stimuli == 20 and env.starts.sum(axis=1) == pytest.approx(1)
    assert not env.starts[:, env.harmful].any()
    assert np.array_equal(env.starts, make().starts)
    assert not np.array_equal(env.starts, make(stimulus_seed=1).starts)
    assert len(np.unique(env.starts, axis=0)) == 20 and (env.starts > 0).sum(axis=1).max() == 4


def test_duplicate_next_states_are_merged():
    next_, p0, reward, ends = read_table(gymnasium.make("CliffWalking-v1", is_slippery=True))
    assert p0.sum(axis=2) == pytest.approx(1)
    # left of the start: into the cliff (-100), off the board (-1), up; the first two lead to 36
    row = dict(zip(next_[0, 36], zip(p0[0, 36], reward[0, 36], strict=True), strict=True))
    assert row[36] == (pytest.approx(2 / 3), pytest.approx(-50.5))
    assert not ends[0, 36].any()


@pytest.mark.parametrize(
    ("name", "options"),
    [("CliffWalking-v1", {}), (TAXI, {}), ("FrozenLake-v1", {"is_slippery": False})],
)
def test_deterministic_table_is_refused(name, options):
    with pytest.raises(ValueError, match=r"deterministic.*nothing to deform"):
        TabularReplayEnv(gymnasium.make(name, **options), harmful=[1])


def test_environments_without_a_usable_table_are_refused():
    with pytest.raises(ValueError, match="no transition table"):
        TabularReplayEnv(gymnasium.make("CartPole-v1"), harmful=[1])
    with pytest.raises(ValueError, match="give `harmful`"):
        TabularReplayEnv(gymnasium.make("CliffWalking-v1", is_slippery=True))
    broken = gymnasium.make("FrozenLake-v1")
    for row, what in (
        ([(0.5, 1, 0, False), (0.4, 2, 0, False)], "sum to 0.9"),
        ([(1.0, 99, 0, False)], "next state 99"),
        ([(0.5, 1, 0, False), (0.5, 1, 0, True)], "both terminated and not"),
    ):
        broken.unwrapped.P[3][2] = row
        with pytest.raises(ValueError, match=rf"P\[3\]\[2\].*{what}"):
            TabularReplayEnv(broken)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"walkers": 0}, "walkers must be a whole number >= 1, got 0"),
        ({"harmful": [64]}, r"harmful must name places 0..63"),
        ({"harmful": [0.5]}, "harmful must name"),
        ({"harmful": np.ones(64, bool)}, "harmful must name some of 64 places, got 64"),
        ({"harmful": []}, "harmful must name"),
        ({"deformation": "some"}, "deformation must be full, off"),
        ({"stimuli": 0}, "stimuli must be a whole number >= 1"),
        ({"stimuli": np.eye(3)}, r"stimuli must be \(stimuli, 64\)"),
        ({"stimuli": np.ones((2, 64))}, "sum to 1"),
    ],
)
def test_bad_options_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        lake(**options)
