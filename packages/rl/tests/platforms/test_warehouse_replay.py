"""Warehouse over the phases: replay, scars, lock-out, what is seen and reported, and bad input."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rapo import FieldParams
from rapo.platforms import PlatformEnv, PlatformVectorEnv
from rapo.platforms.data import missing_data
from rapo.platforms.warehouse import Setting, Warehouse
from rapo.platforms.warehouse.entry import WAREHOUSE
from rapo.platforms.warehouse.floor import floor_of
from rapo.rsd import check, evaluate

ID = "rapo/Warehouse-v0"
STAND_IN = {"data": "stand-in", "seed": 1001}
HORIZONS = (250, 200, 250)


class ByStops:
    """Sends fewer where more are stopped; sees x alone."""

    batched = True

    def __call__(self, x):
        return np.clip(3 - 20 * x[:, 4], 0, 3).astype(int)


def run(policy=ByStops, how=None, **options):
    env = PlatformVectorEnv(1, platform=Warehouse, **{**STAND_IN, "delay": 30, **options})
    return evaluate(env, policy(), 6, 3, True, horizons=HORIZONS, **(how or {}))


def started(episodes=3, **options):
    platform = Warehouse(episodes, **{**STAND_IN, "scheduled": False, **options})
    platform.start(np.arange(episodes, dtype=np.uint64), np.arange(episodes) % 6 + 1)
    return platform


def test_the_floor_is_idle_after_the_washout_and_all_was_delivered():
    platform = started()
    sent = delivered = 0
    for _ in range(100):
        docked = platform.state["row"] < 0
        delivered += platform.step([2, 2, 3]).reward.sum()
        sent += (docked & (platform.state["row"] >= 0)).sum()
    platform.enter(1)
    for _ in range(200):
        step = platform.step([2, 2, 3])
        delivered += step.reward.sum()
    assert sent == delivered > 50
    idle = np.zeros(10)
    idle[0] = 1
    assert np.array_equal(np.delete(step.x[0], 6), np.delete(idle, 6)) and (step.x[:, 0] == 1).all()
    assert (step.info["reach"] == 0).all()


def test_x_says_who_does_what_and_where():
    platform = started(1)
    o, s = platform.orders, platform.setting
    for _ in range(70):
        step = platform.step([3])
    row, route, at, waited = (platform.state[n][0] for n in ("row", "route", "at", "waited"))
    out, picking = at >= 0, (row % 2 == 0) & (at == o.last[row, route]) & (at >= 0)
    back = out & (row % 2 == 1)
    y, x = np.divmod(o.cells[row, route, at][out], o.floor.free.shape[1])
    spread = np.sqrt(y.var() + x.var())
    shares = [~out, out & ~picking & ~back, picking, back, waited > 0]
    wanted = [share.mean() for share in shares] + [waited.mean(), 70 / 500]
    side = max(o.floor.free.shape)
    wanted += [y.mean() / side, x.mean() / side, spread / side]
    np.testing.assert_allclose(step.x[0], wanted, rtol=1e-5)
    assert step.info["reach"][0] == (waited > 0).sum() > 0 and picking.any() and back.any()
    assert s.robots == len(row)


def test_neither_x_nor_motion_tells_hazards_unless_they_hold_up():
    found = []
    for stall, hazards in ((0.0, True), (0.0, False), (0.9, True)):
        platform = started(setting={"stall": stall}, deformation="off")
        platform.orders = platform.orders._replace(hazard=platform.orders.hazard & hazards)
        found.append([platform.step(np.full(3, 2)) for _ in range(120)])
    for one, other in zip(found[0], found[1], strict=True):
        assert np.array_equal(one.x, other.x) and np.array_equal(one.reward, other.reward)
    inside = [sum(step.info["sensitive_mass"].sum() for step in steps) for steps in found]
    assert inside[1] == 0 < inside[0] < 0.5 * inside[2]


def test_robots_in_hazards_are_harmed_and_some_are_reported_by_mistake():
    platform = started(setting={"stray": 0.05}, delay=0, params=FieldParams(alpha=0.5))
    o, strays = platform.orders, 0
    for _ in range(80):
        before = platform.state
        step = platform.step(np.full(3, 2))
        row, route, at = (platform.state[n] for n in ("row", "route", "at"))
        zone = np.where(at >= 0, o.zone_of[o.cells[row, route, at]], -1)
        inside = (zone >= 0) & o.hazard[zone]
        assert np.array_equal(step.info["sensitive_mass"], inside.sum(axis=1))
        weight, where = platform.harmed(platform.state)
        stray = platform.state["stray"]
        assert np.array_equal(weight, inside | stray) and not (stray & (at < 0)).any()
        assert np.array_equal(where, zone)
        reported = np.asarray(platform.harmed(before).weight).sum(axis=1)
        share = reported / (platform.setting.saturation * platform.walkers)
        np.testing.assert_allclose(step.info["harm"], np.minimum(share, 1))
        strays += stray.sum() / max((at >= 0).sum(), 1)
    assert 0.03 < strays / 80 < 0.07


def test_coupled_under_P0_replays_bit_for_bit():
    found = run(deformation="off")
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    assert found.traces["sensitive_mass"].max() > 0


def test_scars_suppress_the_trace_alone_replays_and_off_at_replay_restores():
    scars = run(how={"against_P0": True}).pooled()
    assert scars["SM_R"]["ratio"] < 0.9 and scars["SM_vs_P0"]["ratio"] < 0.6
    trace = run(how={"against_P0": True}, params=FieldParams(eta=0)).pooled()
    assert abs(trace["SM_R"]["ratio"] - 1) < 0.05 and trace["SM_vs_P0"]["ratio"] < 1
    off = run(how={"against_P0": True, "off_at_replay": True}).frame
    assert (off[["SM_vs_P0", "Reach_vs_P0", "ReturnKept"]] == 1).all(axis=None)


def test_a_report_closes_its_zone_for_the_time_of_the_timer():
    platform = started(2, kernel="lockout", setting={"timer": 7}, delay=0)
    closed = np.zeros(platform.H.shape)
    for _ in range(90):
        weight, where = (np.array(part) for part in platform.harmed(platform.state))
        platform.step([2, 3])
        closed = np.maximum(closed - 1, 0)
        for e, w in np.argwhere(weight):
            closed[e, where[e, w]] = 7
        assert np.array_equal(platform.G, closed) and np.array_equal(platform.H, closed > 0)
    assert closed.any() and platform.H.max() == 1
    platform.enter(1)
    for _ in range(200):
        platform.step([2, 3])
    assert not platform.H.any()


def test_closed_zones_are_avoided_by_all_who_have_another_way():
    platform = started(3, kernel="lockout", setting={"timer": 1000, "stray": 0.0})
    hazard = np.tile(platform.orders.hazard.astype(float), (3, 1))
    platform.memory.restore({**platform.memory.snapshot(), "G": 1000 * hazard, "H": hazard})
    inside = sent = 0
    for _ in range(150):
        step = platform.step(np.full(3, 2))
        inside += step.info["sensitive_mass"].sum()
        sent += step.reward.sum()
    assert inside <= 10 < sent  # a way over closed zones alone keeps a chance of .001


def test_of_closed_routes_the_one_with_fewest_closed_zones_is_taken():
    platform = started(1, kernel="lockout", setting={"timer": 1000, "stray": 0.0}, delay=60)
    o = platform.orders
    shut = np.random.default_rng(0).random(len(o.hazard)) < 0.5
    closed = shut[None].astype(float)
    platform.memory.restore({**platform.memory.snapshot(), "G": 1000 * closed, "H": closed})
    count = ((o.zones >= 0) & shut[o.zones]).sum(axis=2)
    count[o.last == 0] = 1000
    for _ in range(20):
        platform.step([3])
    row, route = platform.state["row"][0], platform.state["route"][0]
    least = count[row].min(axis=1)
    judged = (row >= 0) & (least > 0) & (least < 9)  # of ten and more none is preferred
    assert judged.sum() > 15 and (count[row, route] == least)[judged].mean() > 0.95


@pytest.mark.filterwarnings("error")
def test_ids_and_checkers():
    single = gymnasium.make(ID, **STAND_IN, render_mode="rgb_array")
    check_env(single.unwrapped)
    many = gymnasium.make_vec(ID, num_envs=2, **STAND_IN)
    many.reset(seed=4)
    single.reset(seed=5)
    for _ in range(15):
        seen, alone = many.step([2, 2])[0], single.step(2)[0]
    assert np.array_equal(seen[1], alone) and alone[1] > 0
    frame = single.render()
    assert frame.dtype == np.uint8 and frame.shape[2] == 3 and frame.std() > 5
    assert not np.array_equal(frame, (single.step(2), single.render())[1])
    report = check(PlatformEnv(platform=Warehouse, schedule="external", **STAND_IN), lambda x: 1)
    assert report.ok, report


def test_without_data_a_stand_in_is_used_with_a_warning_and_said(monkeypatch, tmp_path):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    for _ in range(2):  # every time, not only before the tables are made
        with pytest.warns(UserWarning, match="RAPO_DATA"):
            env = PlatformVectorEnv(1, platform=Warehouse, seed=1001)
    env.reset(seed=0)
    assert env.describe()["data"] == "stand-in" and env.step([0])[4]["stand_in"] == 1
    with pytest.raises(ValueError, match="RAPO_DATA"):
        Warehouse(data="real", seed=1234)
    (tmp_path / WAREHOUSE.files[0]).parent.mkdir()
    for content in (b"nothing", __import__("gzip").compress(b"2\n2\n0 0 0 0\n")):
        (tmp_path / WAREHOUSE.files[0]).write_bytes(content)
        with pytest.raises(ValueError, match="does not hold"):
            Warehouse(data="real", seed=1234)


@pytest.mark.skipif(bool(missing_data(*WAREHOUSE.files)), reason="needs the MovingAI maps")
def test_the_real_floor():
    floor = floor_of("real")
    assert floor.free.shape == (63, 161) and floor.free.sum() == 5699 and floor.real
    assert not floor.free[2:4, 26:36].any() and floor.free[:, 36][1:-1].all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": "else"}, "data must be"),
        ({"kernel": "else"}, "kernel must be"),
        ({"setting": {"robot": 3}}, "unknown values"),
        ({"setting": {"routes": 0}}, "routes"),
        ({"setting": {"routes": 40}}, "routes"),
        ({"setting": {"stray": 1.5}}, "stray"),
        ({"setting": {"timer": 2.5}}, "timer"),
        ({"setting": {"trip": (9000, 9001)}}, "trip"),
        ({"setting": {"trip": (90, 80)}}, "trip"),
        ({"setting": {"detour": 0.9}}, "detour"),
        ({"setting": {"longest": 0.5}}, "longest"),
        ({"setting": {"radius": 1, "picks": 30, "errands": 8}}, "radius"),
        ({"setting": {"gates": 9}}, "gates"),
        ({"setting": {"errands": 99}}, "errands"),
        ({"setting": {"zone": (4,)}}, "zone"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Warehouse(**{**STAND_IN, **options})


def test_a_policy_of_another_action_space_is_refused():
    with pytest.raises(ValueError, match="action"):
        run(lambda: lambda x: 9)
    report = check(PlatformEnv(platform=Warehouse, schedule="external", **STAND_IN), lambda x: 9)
    assert not report.ok
    assert Setting.of(Setting.of()) is not None
