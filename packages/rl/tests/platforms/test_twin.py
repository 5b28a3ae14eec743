"""The twin: its plane, replay, scars by every field, the trip, checkers, bad input."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from platform_reference import Reference
from twin_reference import cell_of, feed_of, offered, started

from rapo import FieldParams
from rapo.platforms import PlatformEnv, PlatformVectorEnv
from rapo.platforms.twin import FIELDS, Setting, Twin
from rapo.platforms.twin.plane import Plane
from rapo.platforms.twin.plant import plant_of
from rapo.rsd import check, evaluate

ID = "rapo/Twin-v0"
HORIZONS = (150, 120, 150)
HOT = 4


class ByHeat:
    """Cools more where units are hotter; sees x alone."""

    batched = True

    def __call__(self, x):
        return np.clip(4 - 4 * x[:, 1], 1, 4).astype(int)


class Hottest:
    batched = True

    def __call__(self, x):
        return np.full(len(x), HOT)


def env_of(**options):
    return PlatformVectorEnv(1, platform=Twin, **{"seed": 1001, "delay": 20, **options})


def run(policy=Hottest, how=None, **options):
    return evaluate(env_of(**options), policy(), 4, 3, True, horizons=HORIZONS, **(how or {}))


def test_candidates_are_those_of_the_slow_reference():
    twin = started()
    for _ in range(7):
        twin.step(np.array([0, 2, 4]))
    action = np.array([4, 1, 2])
    found = twin.checked_candidates(twin.state, action)
    for e, w in ((0, 0), (1, 7), (2, 15)):
        c, T = twin.state["c"][e, w], twin.state["T"][e, w]
        P0, places, cells = offered(twin, c, T, e + 1, twin.clock[e], action[e], w)
        np.testing.assert_allclose(found.P0[e, w], P0)
        np.testing.assert_allclose(found.items[1][e, w], places, atol=2e-3)
        assert found.where[e, w].tolist() == cells
        assert found.harmful[e, w].tolist() == (places[:, 1] > 394).tolist()


def test_steps_are_those_of_the_slow_reference():
    """Choices, harm and deformed laws, unit by unit, by the core's own functions."""
    twin = started(1, delay=5)
    slow = Reference(twin, 22 * 36, saturation=twin.setting.saturation)
    for _ in range(60):
        slow.platform = twin
        _, told = slow.step(HOT)
        c = slow.state["c"].copy()
        step = twin.step([HOT])
        assert np.array_equal(twin.state["c"], c)
        assert step.info["harm"][0] == pytest.approx(told["harm"])
        assert step.info["served"][0] == pytest.approx(told["served"])
    assert twin.H.max() > 0 and told["served"] < 16


def test_reward_reach_and_sensitive_mass():
    twin = started()
    step = twin.step(np.full(3, HOT))
    while not 2 <= step.info["sensitive_mass"].sum() < step.info["reach"].sum():
        step = twin.step(np.full(3, HOT))
        assert twin.clock[0] < 300
    c, T = twin.state["c"], twin.state["T"]
    assert step.reward == pytest.approx((1 - c).mean(axis=1))
    assert step.info["reach"].tolist() == (T > 388).sum(axis=1).tolist()
    assert step.info["sensitive_mass"].tolist() == (T > 394).sum(axis=1).tolist()


def test_x_tells_temperatures_feed_and_clock_and_nothing_of_harm():
    told = []
    for damage in (394.0, 380.0):
        twin = started(deformation="off", setting={"damage": damage})
        for _ in range(9):
            x = twin.step(np.full(3, HOT)).x
        told.append(x)
    assert np.array_equal(*told)
    c, T, t = twin.state["c"][1], twin.state["T"][1], 9 * twin.setting.minutes
    feed = np.mean([feed_of(twin.plant, 2, t, w) for w in range(16)], axis=0)
    expected = [
        (T.mean() - 380) / 20, (T.max() - 380) / 20, T.std() / 20, c.mean(), c.max(),
        10 * (feed[0] - 1), (feed[1] - 350) / 10, 9 / 500,
    ]  # fmt: skip
    np.testing.assert_allclose(x[1], expected, rtol=1e-4, atol=1e-5)


def test_without_a_stimulus_the_feed_is_nominal_and_units_stay_at_rest():
    calm = {"spread": 1e-3}
    twin = started(setting=calm)
    rest = twin.rest(3)
    twin.enter(1)
    for _ in range(50):
        step = twin.step(np.full(3, 2))
    np.testing.assert_allclose(twin.state["T"], rest["T"], atol=0.01)
    assert (step.x[:, 5:7] == 0).all() and (rest["T"] > 375).all()
    twin.enter(2)
    assert np.array_equal(twin.state["T"], rest["T"])


def test_seeds_draw_units_and_disturbances():
    first, again, other = (plant_of.__wrapped__(s, Setting.of()) for s in (7, 7, 8))
    for one, same, different in zip(first, again, other, strict=True):
        assert np.array_equal(one, same) and not np.array_equal(one, different)
    assert len(np.unique(first.period)) == 12 and len(np.unique(first.rest[:, 1])) == 16


def test_the_plant_is_drawn_as_the_setting_says():
    drawn = {"units": 500, "stimuli": 200, "activity": 0.02, "fouling": 0.01}
    plant = plant_of(1001, Setting.of(drawn))
    np.testing.assert_allclose(np.log(plant.unit).std(axis=0), [0.02, 0.01], rtol=0.1)
    np.testing.assert_allclose(np.log(plant.unit).mean(axis=0), 0, atol=0.003)
    for drawn, (low, high) in ((plant.lag, (0, 0.3)), (plant.period, (1, 3))):
        ends = drawn.min(), drawn.max()
        np.testing.assert_allclose(ends, (low, high), atol=0.03 * (high - low))
        assert low <= ends[0] and ends[1] <= high
    part = plant.swing[:, 0] / 0.05  # mol/L of the feed alone; the rest is of its temperature
    np.testing.assert_allclose(plant.swing[:, 1], 5 * (1 - part))
    assert part.min() < 0.05 and part.max() > 0.95


def test_a_kernel_field_has_the_centres_of_the_setting():
    assert Twin(seed=1001, field="kernel").memory.field.centres == Setting.of().centres == 256


def test_cells_are_those_of_the_slow_reference_to_the_edges_of_the_box():
    s = Setting.of()
    plane, rng = Plane(s), np.random.default_rng(0)
    (c0, c1), (T0, T1) = s.box
    points = rng.uniform((c0, T0), (c1, T1), (500, 2))
    points[:4] = (c0, T0), (c1, T1), (s.window[0][0], s.window[1][1]), (0.1, 394.0)
    assert plane.cells(points).tolist() == [cell_of(*p, s) for p in points]
    low, high = plane.cells(np.array([[0.065, 393.4], [0.065, 394.6]]))
    assert low == high  # cells are not drawn along the temperature that does damage
    assert plane.count == 22 * 36


@pytest.mark.parametrize("field", ["cells", "kernel"])
@pytest.mark.parametrize("point", [(0.1, 290.0), (-0.1, 380.0), (0.1, np.nan)])
def test_a_point_outside_the_box_has_no_psi(field, point):
    with pytest.raises(ValueError, match="box"):
        started(field=field).psi_at(np.array([point]), 0)


def test_units_that_leave_the_box_are_an_error_not_a_cell():
    twin = started(setting={"box": ((0.0, 1.2), (300.0, 390.0))})
    with pytest.raises(ValueError, match="outside the declared box"):
        all(twin.step(np.full(3, HOT)) for _ in range(50))


@pytest.mark.parametrize("policy", [ByHeat, Hottest])
@pytest.mark.parametrize("field", ["cells", "kernel"])
def test_coupled_under_P0_replays_bit_for_bit(policy, field):
    found = run(policy, deformation="off", field=field)
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    assert found.traces["sensitive_mass"].max() > 0


@pytest.mark.parametrize("field", ["cells", "kernel"])
def test_scars_suppress_the_trace_alone_replays_and_off_at_replay_restores(field):
    scars = run(how={"against_P0": True}, field=field).pooled()
    assert scars["SM_R"]["ratio"] < 0.9 and scars["SM_vs_P0"]["ratio"] < 0.8
    trace = run(how={"against_P0": True}, params=FieldParams(eta=0), field=field).pooled()
    slack = 0.05 if field == "cells" else 0.1  # a kernel field keeps its centres: sharper borders
    assert abs(trace["SM_R"]["ratio"] - 1) < slack and trace["SM_vs_P0"]["ratio"] < 1
    off = run(ByHeat, how={"against_P0": True, "off_at_replay": True}, field=field).frame
    assert (off[["SM_vs_P0", "Reach_vs_P0", "ReturnKept"]] == 1).all(axis=None)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_remembers_where_harm_was(field):
    if field == "network":
        pytest.importorskip("torch")
    twin = started(2, field=field, delay=5)
    harmed = []
    for _ in range(80):
        twin.step(np.full(2, HOT))
        hot = twin.state["T"][0] > 394
        harmed += list(np.stack([twin.state["c"][0], twin.state["T"][0]], axis=1)[hot])
    psi = twin.psi_at(np.array(harmed), 0)
    assert psi.min() < 0.6 and (psi <= 1).all()
    assert twin.psi_at(np.array([[0.3, 360.0]]), 0) == 1
    before = twin.snapshot()
    then = twin.step(np.full(2, HOT)).x
    twin.restore(before)
    assert np.array_equal(twin.step(np.full(2, HOT)).x, then)


def test_the_rule_for_the_width_is_the_spread_of_a_step_under_P0():
    twin = Twin(seed=1001, setting={"spreads": 1.0})
    s, found = twin.setting, []
    for w in range(16):
        P0, places, _ = offered(twin, *twin.plant.rest[w], 0, 0, 2, w)
        sides = [high - low for low, high in s.box]
        shares = places / sides
        found.append((P0 * ((shares - P0 @ shares) ** 2).sum(axis=1)).sum())
    assert twin.rule() == pytest.approx(np.sqrt(np.mean(found)), rel=1e-4)
    half = Twin(seed=1001, field="kernel", setting={"spreads": 0.5})
    assert half.memory.field.width == half.width == pytest.approx(twin.rule() / 2)
    assert Twin(seed=1001, field="kernel", width=0.03).memory.field.width == 0.03


def test_the_trip_gives_its_coolant_above_its_temperature_and_P0_below():
    tried = {"trip_above": 388.0, "trip_to": 2}
    twin, plain = started(kernel="trip", setting=tried), started(deformation="off", setting=tried)
    tripped = 0
    for _ in range(40):
        state = twin.snapshot()
        names = set(plain.snapshot())
        plain.restore({name: state[name] for name in names})
        hot = twin.state["T"] > 388
        found = twin.checked_candidates(twin.state, np.full(3, HOT))
        twin.step(np.full(3, HOT))
        plain.step(np.full(3, HOT))
        assert np.array_equal(twin.state["T"][hot], found.items[1][hot][:, 2, 1])
        assert np.array_equal(twin.state["T"][~hot], plain.state["T"][~hot])
        tripped += hot.sum()
    assert 0 < tripped < 40 * 48


def test_the_trip_remembers_nothing_and_is_off_at_replay():
    found = run(kernel="trip", how={"against_P0": True}).pooled()
    assert found["SM_R"]["ratio"] == 1 and found["SM_vs_P0"]["ratio"] < 0.9
    off = run(kernel="trip", how={"against_P0": True, "off_at_replay": True}).frame
    assert (off["SM_vs_P0"] == 1).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("field", ["cells", "kernel"])
def test_ids_and_checkers(field):
    options = {"seed": 1001, "field": field}
    single = gymnasium.make(ID, **options, render_mode="rgb_array")
    check_env(single.unwrapped)
    many = gymnasium.make_vec(ID, num_envs=2, **options)
    many.reset(seed=4)
    single.reset(seed=5)
    for _ in range(5):
        seen, alone = many.step([2, 2])[0], single.step(2)[0]
    assert np.array_equal(seen[1], alone)
    frame = single.render()
    assert frame.dtype == np.uint8 and frame.shape[2] == 3 and frame.std() > 5
    report = check(PlatformEnv(platform=Twin, schedule="external", **options), lambda x: 1)
    assert report.ok, report


def test_the_picture_shows_paths_and_scars():
    twin = started(1, delay=5)
    blank = twin.frame(0)
    for _ in range(60):
        twin.step([HOT])
    scarred = twin.frame(0)
    twin.step([HOT])
    assert (scarred != blank).mean() > 0.005 and (twin.frame(0) != scarred).any()
    described = twin.describe()
    assert described["seed"] == 1001 and described["field"] == "cells"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "else"}, "kernel must be"),
        ({"field": "else"}, "field must be"),
        ({"width": 0.1}, "width"),
        ({"kernel": "trip", "field": "kernel"}, "trip"),
        ({"field": "kernel", "width": 7}, "width"),
        ({"setting": {"unit": 3}}, "unknown values"),
        ({"setting": {"units": 0}}, "units"),
        ({"setting": {"units": 2.5}}, "units"),
        ({"setting": {"candidates": 1}}, "candidates"),
        ({"setting": {"period": (3.0, 1.0)}}, "period"),
        ({"setting": {"box": ((0.0, 1.0), (500.0, 300.0))}}, "box"),
        ({"setting": {"cells": (22,)}}, "cells"),
        ({"setting": {"trip_to": 9}}, "trip_to"),
        ({"setting": {"set_points": (280.0,)}}, "no hot steady state"),
        ({"seed": -1}, "seed"),
        ({"saturation": 0}, "saturation"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Twin(**{"seed": 1001, **options})


def test_a_policy_of_another_action_space_is_refused():
    with pytest.raises(ValueError, match="action"):
        run(lambda: lambda x: 9)
    report = check(PlatformEnv(platform=Twin, schedule="external", seed=1001), lambda x: 9)
    assert not report.ok
