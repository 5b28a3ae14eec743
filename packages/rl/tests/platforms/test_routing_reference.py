"""Routing, step by step, beside what its docstrings say in plain Python."""

import gzip
import json

import numpy as np
import pytest

from rapo.platforms.routing import Routing, Setting
from rapo.platforms.routing.baseline import Penalties
from rapo.platforms.routing.demand import demand_of
from rapo.platforms.routing.entry import ROUTING
from rapo.platforms.routing.platform import COME, DONE, WHERE
from rapo.platforms.routing.topology import topologies

STAND_IN = {"data": "stand-in", "seed": 1001}


def arrived(platform):
    """Pairs and paths once flows have left and come."""
    d, s = platform.demand, platform.setting
    pair, path = (np.array(platform.state[name]) for name in ("pair", "path"))
    pair[platform.state["done"]] = path[platform.state["done"]] = -1
    chance, which = platform.draws(COME), platform.draws(WHERE)
    for e, w in np.argwhere((pair < 0) & (chance < s.arrival)):
        on = platform.stimulus_on[e]
        if on:
            kind = int((which[e, w] >= d.arrivals[on - 1]).sum())
            pair[e, w] = (on - 1) * s.pairs + min(kind, s.pairs - 1)
    return pair, path


def sent(platform, pair, path, chance):
    """Flows on every link, goodput and who is done, once all flows have a path."""
    d, s = platform.demand, platform.setting
    load, rate = np.zeros((len(pair), len(d.grey))), np.zeros(pair.shape)
    there = np.argwhere(pair >= 0)
    for e, w in there:
        links = d.links[pair[e, w], path[e, w]]
        load[e, links[links >= 0]] += 1
    for e, w in there:
        p, k = pair[e, w], path[e, w]
        links = d.links[p, k][d.links[p, k] >= 0]
        fullest, grey = max(s.capacity, load[e, links].max()), int(d.grey[links].sum())
        rate[e, w] = s.capacity / fullest / d.stretch[p, k] * (1 - s.loss) ** grey
    return load, rate, (pair >= 0) & (chance < rate / s.size)


def seen(platform, pair, path, load, clock):
    d, s = platform.demand, platform.setting
    rows = []
    for e in range(len(pair)):
        there = pair[e] >= 0
        p, k = pair[e][there], path[e][there]
        used = load[e][load[e] > 0]
        by_pair = np.bincount(p % s.pairs, minlength=s.pairs) / s.flows
        by_path = np.bincount(k, minlength=s.paths) / s.flows
        detour = (d.stretch[p, k] - 1).mean() if len(p) else 0
        full = [used.max() / s.capacity, used.mean() / s.capacity] if len(used) else [0, 0]
        rows.append([there.mean(), detour, clock / 500, *full, *by_pair, *by_path])
    return np.array(rows)


def test_steps_are_those_of_the_slow_reference():
    platform = Routing(3, **STAND_IN, scheduled=False, setting={"capacity": 3.0})
    platform.start(np.arange(3, dtype=np.uint64), [1, 5, 12])
    d, rng = platform.demand, np.random.default_rng(0)
    for t in range(40):
        if t == 30:
            platform.enter(1)
        action = rng.integers(platform.actions, size=3)
        pair, path = arrived(platform)
        came = platform.arrive(platform.state)
        assert np.array_equal(came["pair"], pair) and np.array_equal(came["path"], path)
        found = platform.candidates(came, action)
        moving = (pair >= 0) & (path < 0)
        assert np.array_equal(found.moving, moving)
        assert not found.P0[~moving].any() and not found.harmful[~moving].any()
        for e, w in np.argwhere(moving):
            assert np.array_equal(found.P0[e, w], d.law[action[e], pair[e, w]])
            assert np.array_equal(found.where[e, w], d.links[pair[e, w]])
            links = d.links[pair[e, w]]
            assert np.array_equal(found.harmful[e, w], ((links >= 0) & d.grey[links]).any(axis=1))
        chance = platform.draws(DONE)
        step = platform.step(action)
        after = platform.state
        path = np.array(after["path"])
        assert np.array_equal(after["pair"], pair) and (path[pair >= 0] >= 0).all()
        load, rate, done = sent(platform, pair, path, chance)
        assert np.array_equal(after["load"], load) and np.array_equal(after["done"], done)
        np.testing.assert_allclose(step.reward, rate.mean(axis=1), rtol=1e-12)
        clock = t + 1 if t < 30 else t - 29
        np.testing.assert_allclose(step.x, seen(platform, pair, path, load, clock), rtol=1e-5)
    assert platform.state["load"].max() > 0


def test_a_local_scope_is_a_share_of_the_links_that_can_harm():
    platform = Routing(1, **STAND_IN, deformation="local:0.5")
    grey, closed = platform.demand.grey, ~platform.memory.never_gated
    assert closed.sum() == np.ceil(grey.sum() / 2) and grey[closed].all()


def test_most_pairs_have_a_choice_of_paths():
    d = demand_of(1001, Setting.of(), "stand-in")
    paths = (d.links[:, :, 0] >= 0).sum(axis=1)
    assert np.median(paths) == paths.max() == Setting.of().paths


def test_a_suppressed_link_stays_so_until_its_penalty_is_below_reuse():
    s = Setting.of()
    between = (s.reuse + s.suppress) / 2
    memory = Penalties(3, s, batch=1)
    start = {"G": [[between, between, s.reuse / 2]], "H": [[0.0, 1.0, 1.0]]}
    memory.restore({**memory.snapshot(), **{k: np.array(v) for k, v in start.items()}})
    memory.advance(np.zeros((1, 3)))
    assert memory.H.tolist() == [[0, 1, 0]]
    assert memory.G[0, 0] == pytest.approx(between * 0.5 ** (1 / s.half_life))


def test_of_parallel_links_the_shortest_and_of_versions_the_last_are_read(monkeypatch, tmp_path):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    nodes = [{"id": i, "pos": [i, 50]} for i in range(3)]
    lines = []
    for name, km in (("Net2009", 9), ("Net2010", 5)):
        edges = [(0, 1, km), (1, 0, km - 2), (0, 1, km + 1), (1, 2, 4), (2, 2, 1)]
        told = [dict(zip(("source", "target", "dist"), edge, strict=True)) for edge in edges]
        lines.append(json.dumps({"topology": name, "data": {"nodes": nodes, "edges": told}}))
    (tmp_path / ROUTING.files[0]).parent.mkdir()
    (tmp_path / ROUTING.files[0]).write_bytes(gzip.compress("\n".join(lines).encode()))
    (found,) = topologies("real", (1, 9), 0.5)
    assert found.name == "Net2010" and found.ends.tolist() == [[0, 1], [1, 2]]
    assert found.km.tolist() == [3, 4]
