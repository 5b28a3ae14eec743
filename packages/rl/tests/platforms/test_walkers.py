"""Explicit candidates: packets that pick their next hop on a small network."""

import gymnasium
import networkx as nx
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rapo import theory
from rapo.platforms.tabular import TabularReplayEnv
from rapo.platforms.walkers import CandidateReplayEnv, mask_of
from rapo.rsd import evaluate
from rapo.rsd.adapters import ReplayEnv

HUBS = [12, 13, 17]
TARGETS = (24, 20, 4)
"""Where the packets of each stimulus go."""
STARTS = np.zeros((3, 25))
STARTS[[0, 0, 1, 1, 2], [0, 1, 4, 3, 20]] = [0.5, 0.5, 0.7, 0.3, 1.0]


class Routing(CandidateReplayEnv):
    """Packets on a grid; the action is how strongly a hop towards the target is preferred.

    A packet's state is (node, target): more than its place. Its next hop is a softmax over its
    neighbours, of which there are two to four.
    """

    def __init__(self, **options):
        self.graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5))
        self.hops = dict(nx.all_pairs_shortest_path_length(self.graph))
        super().__init__(**{"actions": 3, "harmful": HUBS, "starts": STARTS, **options})

    def begin(self, stimulus, place):
        return place, TARGETS[stimulus - 1]

    def candidates(self, state, action):
        node, target = state.tolist()
        neighbours = sorted(self.graph[node])
        weights = np.exp(-action * np.array([self.hops[v][target] for v in neighbours], float))
        return neighbours, weights / weights.sum()

    def transition(self, state, action, choice):
        target = int(state[1])
        return (choice, target), float(choice == target), choice == target


def run(env, count):
    rows = [env.step((t // 3) % 3) for t in range(count)]
    return np.array([x for x, *_ in rows]), np.array([r for _, r, *_ in rows]), rows


def rsd(env, *, off_at_replay=False):
    env.set_deformation(True)
    env.reset(seed=0)
    env.activate(1)
    env.reset_observable(3)
    exposure = run(env, 150)
    env.deactivate()
    run(env, 60)
    env.set_deformation(not off_at_replay)
    env.activate(1)
    env.reset_observable(3)
    return exposure, run(env, 150)


@pytest.mark.parametrize("observe", ["x", "xGH"])
def test_protocol_and_gymnasium_checker(observe):
    env = Routing(observe=observe)
    assert isinstance(env, ReplayEnv)
    check_env(env, skip_render_check=True)


def test_packets_arrive_where_their_stimulus_sends_them():
    env = Routing(leave=0)
    env.reset(seed=0, options={"stimulus": 2})
    for _ in range(40):
        env.step(2)
        state = {name: array[0] for name, array in env.engine.state.items()}
        assert np.array_equal(state["states"][:, 0], state["at"])
        assert np.all(state["states"][:, 1] == TARGETS[1])
        assert np.array_equal(state["done"], state["at"] == TARGETS[1])
    assert state["done"].any()
    assert run(env, 60)[1].max() > 0


def test_stationary_coupled_replay_is_exposure_bit_for_bit():
    exposure, replay = rsd(Routing(deformation="off", delay=10))
    assert np.array_equal(exposure[0], replay[0]) and np.array_equal(exposure[1], replay[1])


def test_deformation_spares_the_hubs_and_off_at_replay_brings_them_back():
    def told(rows, name):
        return np.mean([row[-1][name] for row in rows[2] if name in row[-1]])

    stationary = rsd(Routing(deformation="off", delay=10))[1]
    deformed = rsd(Routing(delay=10))[1]
    undone = rsd(Routing(delay=10), off_at_replay=True)[1]
    assert told(deformed, "odds_ratio") < 0.6
    assert told(deformed, "sensitive_mass") < 0.7 * told(stationary, "sensitive_mass")
    assert told(undone, "odds_ratio") == 1
    assert np.array_equal(undone[0], stationary[0]) and np.array_equal(undone[1], stationary[1])


def test_rows_of_different_length_contract_by_the_scar():
    env = Routing()
    env.reset(seed=0)
    state = env.snapshot()
    state["engine.memory.H"] = np.where(env.harmful, 0.4, 0.0)[None]
    env.restore(state)
    states = np.array([[v, 24] for v in range(25)])
    places, p0 = env._rows(states, 1)
    _, p = env._deformed(places, p0)
    assert places.shape == (25, 4) and p.sum(axis=1) == pytest.approx(1)
    assert np.all(p[p0 == 0] == 0) and (p0 == 0).any()
    split = 0
    for ids, nominal, law in zip(places, p0, p, strict=True):
        real = nominal > 0
        harmful = env.harmful[ids[real]]
        if harmful.any() and not harmful.all():
            factor = theory.entry_odds(law[real], harmful) / theory.entry_odds(
                nominal[real], harmful
            )
            assert factor == pytest.approx(np.exp(-0.8))
            split += 1
    assert split > 5


def test_platform_drains_while_the_stimulus_is_off():
    env = Routing()
    env.reset(seed=0)
    full = run(env, 50)[0][:, 1]
    env.deactivate()
    present = run(env, 400)[0][:, 1]
    assert np.all(full == 1) and np.all(np.diff(present) <= 0) and present[-1] == 0
    _, reward, _, _, info = env.step(0)
    assert reward == 0 and info["reach"] == 0 and info["entry_nominal"] == 0
    assert "odds_ratio" not in info and "gating_rate" not in info


def test_coarse_regions_share_their_fields():
    env = Routing(regions=np.arange(25) // 5, delay=5)
    env.reset(seed=0)
    run(env, 60)
    assert env.harm_memory.G.shape == (5,) and env.harm_memory.G.max() > 0


def test_snapshot_round_trip():
    env, other = Routing(delay=5), Routing(delay=5)
    env.reset(seed=1)
    run(env, 30)
    state = env.snapshot()
    ahead = run(env, 30)[0]
    for again in (env, other):
        again.restore(state)
        assert np.array_equal(run(again, 30)[0], ahead)


@pytest.mark.parametrize(
    ("candidates", "match"),
    [
        (([25], [1.0]), r"candidates\(.*places 0..24"),
        (([1, 2], [1.0]), "k probabilities"),
        (([], []), "k >= 1"),
        (([1, 2], [0.5, 0.6]), "P0 must sum to 1"),
        (([1, 2], [1.5, -0.5]), "P0 must be >= 0"),
    ],
)
def test_bad_candidates_are_named_and_change_nothing(candidates, match):
    env = Routing(delay=5)
    env.reset(seed=0)
    run(env, 20)
    before = env.snapshot()
    env.candidates = lambda state, action: candidates
    with pytest.raises(ValueError, match=match):
        env.step(0)
    assert all(np.array_equal(v, before[k]) for k, v in env.snapshot().items())


@pytest.mark.parametrize("state", [3, (1, 2, 3), (0.5, 1), ("a", "b")])
def test_a_transition_must_keep_the_form_of_a_state(state):
    env = Routing()
    env.reset(seed=0)
    before = env.snapshot()
    env.transition = lambda *_: (state, 0.0, False)
    with pytest.raises(ValueError, match="transition turned a state"):
        env.step(0)
    assert all(np.array_equal(v, before[k]) for k, v in env.snapshot().items())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"actions": 0}, "actions must be a whole number >= 1, got 0"),
        ({"starts": [1.0]}, r"starts must have shape \(stimuli, places\)"),
        ({"observe": "xH"}, "observe must be 'x' or 'xGH', got 'xH'"),
        ({"regions": [0, 1]}, "regions must name a region"),
        ({"delay": -1}, "delay must be a whole number >= 0, got -1"),
        ({"saturation": 0}, r"saturation must be in \(0, 1\].*got saturation=0"),
        ({"leave": 2}, r"leave in \[0, 1\].*leave=2"),
        ({"horizon": 0}, "horizon must be a whole number"),
    ],
)
def test_bad_options_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        Routing(**options)


def test_a_class_that_is_no_adapter_is_refused():
    class Named(Routing):
        def begin(self, stimulus, place):
            return f"node {place}"

    with pytest.raises(ValueError, match="a state must be a number"):
        Named()
    with pytest.raises(TypeError, match="abstract"):
        CandidateReplayEnv(actions=1, harmful=[0], starts=np.eye(2))


def test_mask_of_takes_numbers_or_a_mask():
    assert mask_of([1], 3).tolist() == [False, True, False]
    assert mask_of(np.array([True, False]), 2).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"0..2 or be a mask, got \[-1\]"):
        mask_of([-1], 3)


def test_bad_calls_are_named_and_change_nothing():
    env = Routing(delay=5)
    with pytest.raises(ValueError, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    run(env, 20)
    before = env.snapshot()
    waiting, at, H = "engine.memory.waiting", "engine.state.at", "engine.memory.H"
    short = {**before, waiting: before[waiting][1:]}
    for call, match in (
        (lambda: env.activate(4), r"stimulus must be in 1\.\.3, .*got 4"),
        (lambda: env.activate(0), "got 0"),
        (lambda: env.activate(True), "got True"),
        (lambda: env.reset(options={"stimulus": 99}), "got 99"),
        (lambda: env.reset(options={"stimulsu": 1}), "stimulsu"),
        (lambda: env.reset_observable(-1), "seed must be a whole number"),
        (lambda: env.step(3), r"actions must be in 0\.\.2, got"),
        (lambda: env.step(0.5), "action"),
        (lambda: env.restore({}), "a snapshot has"),
        (lambda: env.restore(short), "waiting must have shape"),
        (lambda: env.restore({**before, at: before[at] + 25}), "at must be in -1..24"),
        (lambda: env.restore({**before, "engine.stimulus": np.array([30])}), "stimulus"),
        (lambda: env.restore({**before, H: before[H] - 1}), "H must be finite"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
        assert all(np.array_equal(v, before[k]) for k, v in env.snapshot().items())


def stage_of(env):
    how = {"horizons": (30, 10, 30), "coupled": True, "deformed": (True, True, True)}
    return env.stage(3, seed=0, stimuli=None, **how)


def test_hooks_that_look_at_the_environment_see_the_episode_that_runs():
    """So walkers of others run an episode at a time; a table that nobody changed at once."""
    seen = []

    class Looking(Routing):
        def candidates(self, state, action):
            seen.append(self.harm_memory.G.sum())
            return super().candidates(state, action)

    env = Looking(delay=3)
    assert stage_of(env).episodes == 1
    evaluate(env, lambda x: 1, 2, 0, horizons=(30, 10, 30))
    assert max(seen) > 0

    lake = gymnasium.make("FrozenLake-v1", map_name="8x8")
    assert stage_of(TabularReplayEnv(lake)).episodes == 3

    class Stepping(TabularReplayEnv):
        def step(self, action):
            return super().step(action)

    class Rows(TabularReplayEnv):
        def transition(self, state, action, choice):
            return super().transition(state, action, choice)

    assert [stage_of(made(lake)).episodes for made in (Stepping, Rows)] == [1, 1]


def test_a_table_at_once_is_its_episodes_one_by_one():
    lake = gymnasium.make("FrozenLake-v1", map_name="8x8")
    found = [
        evaluate(
            TabularReplayEnv(lake, delay=5), lambda x: 2, n, seed, horizons=(40, 20, 40)
        ).traces["reach"]
        for n, seed in ((3, 7), (1, 7), (1, 8), (1, 9))
    ]
    assert np.array_equal(found[0], np.concatenate(found[1:]))
