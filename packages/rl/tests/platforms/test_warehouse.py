"""Warehouse: tables that are what they say, and robots that move as a plain reference does."""

from itertools import pairwise

import numpy as np
import pytest
from warehouse_reference import drive_slowly

from rapo.platforms.warehouse import Setting, Warehouse
from rapo.platforms.warehouse.floor import doors_of, floor_of
from rapo.platforms.warehouse.kernel import drive
from rapo.platforms.warehouse.orders import _dear, orders_of
from rapo.platforms.warehouse.platform import SENT

STAND_IN = {"data": "stand-in", "seed": 1001}
NAMES = ("row", "route", "at", "wait", "waited")


def started(episodes=3, **options):
    platform = Warehouse(episodes, **{**STAND_IN, "scheduled": False, **options})
    platform.start(np.arange(episodes, dtype=np.uint64), np.arange(episodes) % 6 + 1)
    return platform


def places(platform):
    """Cell of every robot (E, m), -1 in the dock."""
    row, route, at = (platform.state[name] for name in NAMES[:3])
    cells = platform.orders.cells[row, route, at]
    return np.where(at >= 0, cells, -1)


@pytest.fixture(scope="module")
def orders():
    return orders_of(1001, Setting.of().layout(), "stand-in")


@pytest.fixture(scope="module")
def floor():
    return floor_of("stand-in")


def test_streets_are_one_way_and_lead_everywhere(floor):
    columns = floor.free.shape[1]
    pairs = {(a, b) for a in np.flatnonzero(floor.free) for b in floor.exits[a] if b >= 0}
    assert all((b, a) not in pairs for a, b in pairs)
    assert all(abs(a - b) in (1, columns) and floor.free.flat[b] for a, b in pairs)
    y, x = np.divmod(np.array(sorted(pairs)), columns)
    along = y[:, 0] == y[:, 1]  # rows and columns beside each other lead opposite ways
    assert np.array_equal(x[along, 1] - x[along, 0], np.where(y[along, 0] % 2, 1, -1))
    assert np.array_equal(y[~along, 1] - y[~along, 0], np.where(x[~along, 0] % 2, -1, 1))
    assert pairs == {(a, b) for b in np.flatnonzero(floor.free) for a in floor.entries[b] if a >= 0}
    for table in (floor.exits, floor.entries):  # from one cell to all, and back
        found, todo = set(), [int(doors_of(floor, 4)[0])]
        while todo:
            at = todo.pop()
            if at not in found:
                found.add(at)
                todo += [int(b) for b in table[at] if b >= 0 and floor.used[b]]
        assert len(found) == floor.used.sum() > 0.99 * floor.free.sum()


def test_shelves_close_to_a_wall_leave_no_room_for_doors(floor):
    free = np.ones((20, 40), np.bool_)
    free[5, [3, 20, 36]] = False
    floor = floor._replace(free=free, used=free.ravel())
    assert set(doors_of(floor, 2) % 40) == {1, 38}
    for near in (2, 37):
        closer = free.copy()
        closer[5, near] = False
        with pytest.raises(ValueError, match="no open room"):
            doors_of(floor._replace(free=closer), 2)


def test_routes_follow_the_streets_once_and_keep_apart(orders):
    s = Setting.of()
    for ways, last in zip(orders.cells, orders.last, strict=True):
        real = [way[: n + 1].tolist() for way, n in zip(ways, last, strict=True) if n]
        assert len({(way[0], way[-1]) for way in real}) == 1 and len(real) >= 1
        for k, way in enumerate(real):
            assert all(b in orders.floor.exits[a] for a, b in pairwise(way))
            assert len(set(way)) == len(way) <= s.longest * len(real[0])
            assert (ways[k][len(way) :] < 0).all()
            for other in real[:k]:
                assert len(set(way) & set(other)) <= (1 - s.apart) * len(way) + 1e-9
        assert last[last > 0].tolist() == sorted(last[last > 0])
        assert (ways[last == 0] < 0).all()  # nothing stays of a route that was tried and left


def test_the_first_route_is_the_shortest_and_back_leads_to_the_door(orders):
    exits = orders.floor.exits
    for row in range(0, len(orders.cells), 17):
        start, end = orders.cells[row, 0, 0], orders.cells[row, 0, orders.last[row, 0]]
        edge, seen, steps = {int(start)}, {int(start)}, 0
        while end not in edge:
            edge = {int(b) for a in edge for b in exits[a] if b >= 0} - seen
            seen |= edge
            steps += 1
        assert steps == orders.last[row, 0]
    ends = np.take_along_axis(orders.cells[:, 0], orders.last[:, :1], 1)[:, 0]
    assert np.array_equal(orders.cells[::2, 0, 0], ends[1::2])
    assert np.array_equal(orders.cells[1::2, 0, 0], ends[::2])
    assert set(ends[1::2]) <= set(orders.doors)


def test_law_falls_with_excess_length(orders):
    np.testing.assert_allclose(orders.law.sum(axis=1), 1)
    there = orders.last > 0
    assert (orders.law[~there] == 0).all()
    excess = orders.last / orders.last[:, :1] - 1
    odds = np.log(orders.law[there] / np.broadcast_to(orders.law[:, :1], there.shape)[there])
    np.testing.assert_allclose(odds, -excess[there] / Setting.of().temperature, atol=1e-9)


def test_zones_are_those_of_the_cells_and_hazards_have_a_dear_way_round(orders):
    s = Setting.of()
    columns = orders.floor.free.shape[1]
    known = np.flatnonzero(orders.zone_of >= 0)
    y, x = np.divmod(known, columns)
    named = dict(zip(orders.zone_of[known].tolist(), zip(y // 4, x // 6, strict=True), strict=True))
    assert len(named) == len(set(named.values())) == len(orders.hazard)
    of_cells = zip(orders.zone_of[known], y // 4, x // 6, strict=True)
    assert all(named[r] == (a, b) for r, a, b in of_cells)
    for row, k in np.argwhere(orders.last > 0)[::7]:
        cells = orders.cells[row, k, : orders.last[row, k] + 1]
        crossed = set(orders.zone_of[cells].tolist())
        assert {r for r in orders.zones[row, k] if r >= 0} == crossed
        assert orders.enters[row, k] == any(orders.hazard[r] for r in crossed)
    share = (orders.law * orders.enters).sum(axis=1)
    assert (share <= 1 - s.way_round + 1e-9).all()
    touched = share.reshape(s.stimuli, -1).mean(axis=1)
    assert (touched >= s.touched[0]).all() and (touched <= s.touched[1]).all()
    outside = orders.law * ~orders.enters
    longer = (outside * orders.last).sum(axis=1) / outside.sum(axis=1)
    nominal = (orders.law * orders.last).sum(axis=1)
    waves = longer.reshape(s.stimuli, -1).sum(axis=1) / nominal.reshape(s.stimuli, -1).sum(axis=1)
    assert (waves >= 1 + s.detour - 1e-9).all()


def test_seeds_choose_waves_and_hazards(orders):
    again = orders_of.__wrapped__(1001, Setting.of().layout(), "stand-in")
    other = orders_of(1002, Setting.of().layout(), "stand-in")
    assert np.array_equal(orders.cells, again.cells) and np.array_equal(orders.hazard, again.hazard)
    assert orders.cells.shape != other.cells.shape or not np.array_equal(orders.cells, other.cells)
    assert started(setting={"robots": 7, "stray": 0.1}).orders is orders


def small_world(rng, robots):
    """A crowd on a small one-way floor: routes that are random walks, of random places."""
    side, length = 6, 14
    cells = np.full((8, 3, length), -1, np.int32)
    last = rng.integers(4, length, (8, 3)).astype(np.int32)
    for row in range(8):
        for k in range(3):
            y, x = rng.integers(0, side, 2)
            for i in range(last[row, k] + 1):
                cells[row, k, i] = y * side + x
                if rng.random() < 0.5:
                    x = (x + (1 if y % 2 else -1)) % side
                else:
                    y = (y + (-1 if x % 2 else 1)) % side
    state = {name: np.full(robots, -1, np.int32) for name in NAMES}
    state["wait"][:] = 0
    state["waited"] = rng.integers(0, 4, robots).astype(np.int32)
    taken = set()
    for w in range(robots):
        row, k = rng.integers(8), rng.integers(3)
        i = rng.integers(-1, last[row, k] + 1 - row % 2)
        if i < 0 or cells[row, k, i] not in taken:
            taken.add(cells[row, k, i] if i >= 0 else None)
            state["row"][w], state["route"][w], state["at"][w] = row, k, i
            state["wait"][w] = 2 if i == last[row, k] else 0
    return state, cells, last, side * side


def fast(state, choice, held, cells, last, pick, count):
    """`drive` of one episode, as lists."""
    robots = len(choice)
    new = {name: np.empty((1, robots), np.int32) for name in NAMES}
    room, delivered = np.full((2, count), -1, np.int32), np.empty(1)
    drive(
        *(np.asarray(state[name])[None] for name in NAMES), np.asarray(choice)[None],
        np.asarray(held)[None], cells, last, pick, *room, *np.zeros((3, robots), np.int32),
        *(new[name] for name in NAMES), delivered,
    )  # fmt: skip
    assert (room == -1).all()
    return {name: array[0].tolist() for name, array in new.items()}, delivered[0]


@pytest.mark.parametrize("seed", range(40))
def test_a_crowd_moves_as_the_plain_reference_says(seed):
    rng = np.random.default_rng(seed)
    state, cells, last, count = small_world(rng, 24)
    held, choice = rng.random(24) < 0.1 * (seed % 2), np.full(24, -1)
    plain = {name: array.tolist() for name, array in state.items()}
    for _ in range(6):
        wanted, delivered = drive_slowly(plain, choice, held, cells.tolist(), last, 3)
        found = fast(plain, choice, held, cells, last, 3, count)
        assert found == (wanted, delivered)
        plain = wanted


def test_a_ring_turns_before_one_who_waited_longer_joins_it():
    ring = [0, 1, 3, 2]
    cells = np.array([[[*(ring[i:] + ring[:i]), ring[i]]] for i in range(4)] + [[[9, 0, 1, 3, 2]]])
    last = np.full((5, 1), 4, np.int32)
    state = {name: np.zeros(5, np.int32) for name in NAMES}
    state["row"][:], state["waited"][4] = range(5), 9
    moved, _ = fast(state, np.full(5, -1), np.zeros(5, bool), cells.astype(np.int32), last, 3, 10)
    assert moved["at"] == [1, 1, 1, 1, 0] and moved["waited"] == [0, 0, 0, 0, 10]


def test_whole_steps_match_the_reference_and_cells_hold_one():
    platform = started(setting={"stall": 0.2}, deformation="off")
    o, s, draws = platform.orders, platform.setting, platform.draws
    seen = []
    drive_all, exits = platform.transition, o.floor.exits

    def watched(state, action, choice, found):
        here = {name: np.array(array) for name, array in state.items()}
        inside = platform._exposed(state)[0]
        held = inside & (draws(3) < s.stall)
        new, delivered = drive_all(state, action, choice, found)
        for e in range(3):
            plain = {name: here[name][e].tolist() for name in NAMES}
            wanted, n = drive_slowly(plain, choice[e], held[e], o.cells, o.last, s.pick)
            assert wanted == {name: new[name][e].tolist() for name in NAMES} and n == delivered[e]
        seen.append((delivered.sum(), held.sum()))
        return new, delivered

    platform.transition = watched
    before = places(platform)
    for _ in range(160):
        platform.step([1, 2, 3])
        after = places(platform)
        for was, now in zip(before, after, strict=True):
            busy = now[now >= 0]
            assert len(set(busy)) == len(busy)
            moved = (was >= 0) & (now >= 0) & (was != now)
            assert all(b in exits[a] for a, b in zip(was[moved], now[moved], strict=True))
        before = after
    total = np.sum(seen, axis=0)
    assert total[0] > 10 and total[1] > 10


def test_dispatch_rates_and_routes_of_those_who_are_sent():
    platform = started(3, deformation="off", setting={"robots": 200})
    o = platform.orders
    platform.step([0, 1, 3])
    sent = (platform.state["row"] >= 0).mean(axis=1)
    np.testing.assert_allclose(sent, [0.01, 0.03, 0.3], atol=0.1)
    assert sent[0] < sent[1] < sent[2]
    row = platform.state["row"][2]
    assert (row[row >= 0] % 2 == 0).all()
    errands = Setting.of().errands
    assert set(row[row >= 0] // 2) == set(range(2 * errands, 3 * errands))
    state = {**platform.rest(3), "row": np.full((3, 200), 4, np.int32)}
    found = platform.candidates(state, np.array([0, 1, 3]))
    docked = (state["route"] < 0) & (state["at"] < 0)
    chance = np.array([[0.01], [0.03], [0.3]])
    assert docked.all() and np.array_equal(found.moving, platform.draws(SENT) < chance)
    e, w = np.argwhere(found.moving)[0]
    assert np.array_equal(found.P0[e, w], o.law[4])
    assert np.array_equal(found.harmful[e, w], o.enters[4])
    assert np.array_equal(found.where[e, w], o.zones[4]) and (found.P0[~found.moving] == 0).all()


def test_the_edge_of_the_radius_belongs_to_it():
    with pytest.raises(ValueError, match=r"^[2-5] cells within radius 1\b"):
        started(1, setting={"radius": 1, "picks": 99})


def test_a_zone_is_dear_by_the_detour_round_it_and_never_by_one_that_is_shorter():
    law, last = np.array([[0.5, 0.5]]), np.array([[10, 20]])
    crossed = np.array([[[False, True, True], [True, False, True]]])  # by the short, the long way
    assert _dear(law, last, crossed).tolist() == [0, 0.5, 0]


def test_a_picture_has_the_robots_where_they_are():
    platform = started()
    for _ in range(40):
        platform.step(np.full(3, 3))
    platform.frame(1)
    shown = np.asarray(platform._picture._robots.get_offsets())[:, ::-1]
    cells = places(platform)[1]
    known = np.column_stack(np.divmod(cells[cells >= 0], platform.orders.floor.free.shape[1]))
    assert len(known) > 5
    np.testing.assert_array_equal(shown[np.lexsort(shown.T)], known[np.lexsort(known.T)])
