"""Routing: tables that are what they say, flows that are conserved, replay, damping, bad input."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rapo
from rapo import FieldParams
from rapo.platforms import PlatformEnv, PlatformVectorEnv
from rapo.platforms.data import missing_data
from rapo.platforms.routing import Routing, Setting
from rapo.platforms.routing.demand import _drawn, demand_of
from rapo.platforms.routing.entry import ROUTING
from rapo.platforms.routing.topology import topologies
from rapo.rsd import check, evaluate

ID = "rapo/Routing-v0"
STAND_IN = {"data": "stand-in", "seed": 1001}
HORIZONS = (150, 120, 150)


class ByLoad:
    """Spreads more where links are fuller; sees x alone."""

    batched = True

    def __call__(self, x):
        return np.clip(2 * x[:, 3], 0, 3).astype(int)


def env_of(**options):
    return PlatformVectorEnv(1, platform=Routing, **{**STAND_IN, "delay": 20, **options})


def run(policy=ByLoad, how=None, **options):
    return evaluate(env_of(**options), policy(), 4, 3, True, horizons=HORIZONS, **(how or {}))


def started(episodes=3, **options):
    platform = Routing(episodes, **{**STAND_IN, "scheduled": False, **options})
    platform.start(np.arange(episodes, dtype=np.uint64), np.arange(episodes) % 12 + 1)
    return platform


@pytest.fixture(scope="module")
def demand():
    return demand_of(1001, Setting.of(), "stand-in")


def test_paths_of_a_pair_differ_and_join_the_same_two_nodes(demand):
    ends = demand.topology.ends
    for row in demand.links:
        paths = [tuple(link for link in path if link >= 0) for path in row]
        real = [path for path in paths if path]
        assert len({frozenset(path) for path in real}) == len(real) >= 1
        odd = {
            frozenset(np.flatnonzero(np.bincount(ends[list(path)].ravel()) % 2).tolist())
            for path in real
        }
        assert len(odd) == 1 and len(next(iter(odd))) == 2


def test_law_falls_with_excess_length(demand):
    s = Setting.of()
    np.testing.assert_allclose(demand.law.sum(axis=2), 1)
    there = demand.links[:, :, 0] >= 0
    assert (demand.law[:, ~there] == 0).all() and (demand.stretch[there] >= 1).all()
    for law, temperature in zip(demand.law, s.temperatures, strict=True):
        both = there[:, 0] & there[:, 1]
        odds = np.log(law[both, 1] / law[both, 0])
        excess = demand.stretch[both, 1] - demand.stretch[both, 0]
        np.testing.assert_allclose(odds, -excess / temperature, atol=1e-9)


def test_every_pair_has_a_way_round_and_every_stimulus_touches_grey(demand):
    s = Setting.of()
    assert (
        ((demand.crossings == 0) & (demand.law[0] >= 0) & (demand.links[:, :, 0] >= 0)).any(1).all()
    )
    inside = (demand.law[1] * (demand.crossings > 0)).sum(axis=1).reshape(s.stimuli, s.pairs)
    share = np.diff(demand.arrivals, prepend=0, axis=1)
    touched = (inside * share).sum(axis=1)
    assert (touched >= s.touched[0] - 1e-9).all() and (touched <= s.touched[1] + 1e-9).all()


def test_blamed_links_are_the_grey_ones_of_the_path(demand):
    grey = np.flatnonzero(demand.grey)
    for row, k in np.argwhere(demand.crossings > 0):
        named = {r for r in demand.blamed[row, k] if r >= 0}
        assert named == set(demand.links[row, k]) & set(grey)
        assert len(named) == demand.crossings[row, k]


def test_seeds_choose_network_grey_links_and_stimuli():
    first, again, other = (demand_of.__wrapped__(s, Setting.of(), "stand-in") for s in (7, 7, 8))
    assert np.array_equal(first.links, again.links) and np.array_equal(first.grey, again.grey)
    assert first.topology.name != other.topology.name


def test_load_counts_every_flow_on_every_link_and_rates_follow_the_fullest():
    platform = started(setting={"capacity": 2.0})
    for _ in range(15):
        step = platform.step(np.full(3, 2))
    d, s, state = platform.demand, platform.setting, platform.state
    for e in range(3):
        load, rates = np.zeros(len(d.grey)), []
        flows = [(p, k) for p, k in zip(state["pair"][e], state["path"][e], strict=True) if p >= 0]
        for p, k in flows:
            load[[r for r in d.links[p, k] if r >= 0]] += 1
        assert np.array_equal(load, state["load"][e]) and load.max() > s.capacity
        for p, k in flows:
            fullest = max(s.capacity, load[[r for r in d.links[p, k] if r >= 0]].max())
            kept = (1 - s.loss) ** d.crossings[p, k]
            rates.append(s.capacity / fullest / d.stretch[p, k] * kept)
        assert step.reward[e] == pytest.approx(sum(rates) / s.flows)
        assert step.info["reach"][e] == len(flows)
        on_grey = sum(d.crossings[p, k] > 0 for p, k in flows)
        assert step.info["sensitive_mass"][e] == on_grey


def test_flows_keep_their_path_until_done_and_the_network_drains():
    platform = started()
    before = platform.state
    for _ in range(40):
        platform.step(np.ones(3, int))
        after = platform.state
        stays = (before["pair"] >= 0) & ~before["done"]
        assert np.array_equal(after["path"][stays], before["path"][stays])
        assert np.array_equal(after["pair"][stays], before["pair"][stays])
        before = after
    platform.enter(1)
    for _ in range(200):
        step = platform.step(np.ones(3, int))
    assert (step.info["reach"] == 0).all() and (step.x[:, [0, 1, 3, 4]] == 0).all()


def test_x_does_not_tell_grey_links():
    told = []
    for loss in (0.1, 0.1001):  # all but equal dynamics, so that only x could tell
        platform = started(setting={"loss": loss}, deformation="off")
        platform.demand = platform.demand._replace(
            crossings=platform.demand.crossings * (loss == 0.1)
        )
        told.append(platform.step(np.ones(3, int)).x)
    assert np.array_equal(*told)


def test_coupled_under_P0_replays_bit_for_bit():
    found = run(deformation="off")
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    assert found.traces["sensitive_mass"].max() > 0


def test_scars_suppress_the_trace_alone_replays_and_off_at_replay_restores():
    scars = run(how={"against_P0": True}).pooled()
    assert scars["SM_R"]["ratio"] < 0.95 and scars["SM_vs_P0"]["ratio"] < 0.8
    trace = run(how={"against_P0": True}, params=FieldParams(eta=0)).pooled()
    assert abs(trace["SM_R"]["ratio"] - 1) < 0.05 and trace["SM_vs_P0"]["ratio"] < 1
    off = run(how={"against_P0": True, "off_at_replay": True}).frame
    assert (off[["SM_vs_P0", "Reach_vs_P0", "ReturnKept"]] == 1).all(axis=None)


def test_damping_suppresses_after_the_delay_and_forgets():
    s = Setting.of()
    platform = started(1, kernel="damping", setting={"suppress": 1200.0})
    history = []
    for _ in range(s.delay + 60):
        platform.step([1])
        history.append(platform.H[0].copy())
    assert not np.any(history[: s.delay]) and np.any(history)
    assert (
        set(np.unique(history)) == {0, 1} and not np.array(history)[:, ~platform.demand.grey].any()
    )
    assert platform.G.max() <= s.reuse * 2 ** (s.longest / s.half_life)
    platform.enter(1)
    for _ in range(s.delay + int(s.longest) + 30):
        platform.step([1])
    assert not platform.H.any()


def test_suppressed_links_are_avoided_by_all_who_have_another_way():
    platform = started(1, kernel="damping")
    state = platform.memory.snapshot()
    grey = platform.demand.grey[None].astype(float)
    platform.memory.restore({**state, "G": 12_000 * grey, "H": grey})
    for _ in range(30):
        step = platform.step([1])
    assert platform.H.sum() == grey.sum() and step.info["reach"] > 0
    assert step.info["sensitive_mass"] == 0  # every pair has a way round


def test_blame_of_the_path_shares_harm_out():
    platform = started(1, setting={"blame": "path"})
    for _ in range(70):
        platform.step([1])
    assert (platform.G[0][~platform.demand.grey] > 0).any()


@pytest.mark.filterwarnings("error")
def test_ids_and_checkers():
    single = gymnasium.make(ID, **STAND_IN, render_mode="rgb_array")
    check_env(single.unwrapped)
    many = gymnasium.make_vec(ID, num_envs=2, **STAND_IN)
    many.reset(seed=4)
    single.reset(seed=5)
    for _ in range(5):
        seen, alone = many.step([2, 2])[0], single.step(2)[0]
    assert np.array_equal(seen[1], alone) and alone[0] > 0
    frame = single.render()
    assert frame.dtype == np.uint8 and frame.shape[2] == 3 and frame.std() > 5
    report = check(PlatformEnv(platform=Routing, schedule="external", **STAND_IN), lambda x: 1)
    assert report.ok, report


def test_without_data_a_stand_in_is_used_with_a_warning_and_said(monkeypatch, tmp_path):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    for _ in range(2):  # every time, not only before the tables are made
        with pytest.warns(UserWarning, match="RAPO_DATA"):
            env = PlatformVectorEnv(1, platform=Routing, seed=4321)
    env.reset(seed=0)
    assert env.describe()["data"] == "stand-in" and env.step([0])[4]["stand_in"] == 1
    with pytest.raises(ValueError, match="RAPO_DATA"):
        Routing(data="real", seed=1234)
    (tmp_path / ROUTING.files[0]).parent.mkdir()
    (tmp_path / ROUTING.files[0]).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="does not hold"):
        Routing(data="real", seed=1234)


@pytest.mark.skipif(bool(missing_data(*ROUTING.files)), reason="needs the Topology Zoo")
def test_real_networks_one_of_each_operator():
    found = topologies("real", (20, 80), 1.3)
    names = [t.name.rstrip("0123456789") for t in found]
    assert len(names) == len(set(names)) > 15 and all(t.real for t in found)
    geant = next(t for t in found if t.name.startswith("Geant"))
    assert geant.name == "Geant2012" and len(geant.place) == 37 and len(geant.ends) == 58


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": "else"}, "data must be"),
        ({"kernel": "else"}, "kernel must be"),
        ({"setting": {"path": 3}}, "unknown values"),
        ({"setting": {"paths": 0}}, "paths"),
        ({"setting": {"nodes": (500, 600)}}, "none of"),
        ({"setting": {"touched": (0.98, 0.99)}}, "stimuli"),
        ({"setting": {"loss": 1.5}}, "loss"),
        ({"setting": {"blame": "node"}}, "blame"),
        ({"setting": {"suppress": 10.0}}, "suppress"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Routing(**{**STAND_IN, **options})


def test_an_impossible_demand_is_given_up_after_40_draws_of_grey_links_with_300_stimuli_each():
    """Three pairs, each with a path over a link of its own and one that crosses nothing."""
    crossed = np.zeros((3, 2, 3), np.bool_)
    crossed[range(3), 0, range(3)] = True
    wanted = SimpleNamespace(grey=0.5, touched=(0.9, 1.0), pairs=1, stimuli=2)
    rng, sizes = np.random.default_rng(0), []

    class Counted:
        def choice(self, among, size, **options):
            sizes.append(size)
            return rng.choice(among, size, **options)

    with pytest.raises(ValueError, match="tiny: found no 2 stimuli"):
        _drawn(np.full((3, 2), 0.5), crossed, np.ones(3), wanted, Counted(),
                      SimpleNamespace(name="tiny"))  # fmt: skip
    assert (sizes.count(2), sizes.count(1)) == (40, 40 * 300)


def test_a_policy_of_another_action_space_is_refused():
    with pytest.raises(ValueError, match="action"):
        run(lambda: lambda x: 9)
    report = check(PlatformEnv(platform=Routing, schedule="external", **STAND_IN), lambda x: 9)
    assert not report.ok
    assert rapo.rsd.check is check
