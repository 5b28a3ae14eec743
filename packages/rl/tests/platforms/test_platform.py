"""The step of a batch platform: against the reference, in batches, and with bad input."""

import numpy as np
import pytest
from platform_reference import Reference
from toy_platforms import PLACES, REGIONS, Bins, Feed, Line, Mapped, Routes

from rapo import FieldParams, reweight
from rapo.cascade.draws import derive
from rapo.platforms import BatchPlatform, Candidates

ALL = [(Feed, {}), (Routes, {}), (Mapped, {}), (Line, {"scars": Bins})]
KEYS = derive(np.arange(6), 0)


def started(make, episodes=1, **options):
    platform = make(episodes, scheduled=False, **options)
    platform.start(KEYS[:episodes], np.arange(episodes) % 3 + 1)
    return platform


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (Feed, {}),
        (Routes, {}),
        (Routes, {"params": FieldParams(psi_min=0.5)}),
        (Mapped, {}),
        (Feed, {"deformation": "topk:2"}),
        (Feed, {"deformation": "off"}),
    ],
)
def test_the_step_is_the_references(make, options):
    platform = started(make, **options)
    slow = Reference(platform, REGIONS)
    deformed = options.get("deformation") != "off"
    low = 1.0
    for t in range(120):
        choice, told = slow.step(t % 3, deformed=deformed)
        info = platform.step(t % 3).info
        assert np.array_equal(platform.state["at"], slow.state["at"]), t
        for name, value in told.items():
            assert info[name][0] == pytest.approx(value, rel=1e-9, nan_ok=True), (t, name)
        low = np.nanmin([low, told["odds_ratio"]])
    assert np.allclose(platform.G[0], slow.memory.G) and np.allclose(platform.H[0], slow.memory.H)
    assert choice.min() >= -1 and platform.H.max() > 0
    assert (low < 0.95) == deformed  # something was deformed to be compared


@pytest.mark.parametrize(("make", "options"), ALL)
def test_a_batch_is_its_episodes_one_by_one(make, options):
    batch = started(make, 5, **options)
    singles = []
    for e in range(5):
        one = make(1, scheduled=False, **options)
        one.start(KEYS[[e]], [e % 3 + 1])
        singles.append(one)
    actions = np.random.default_rng(0).integers(0, 3, (60, 5))
    for action in actions:
        whole = batch.step(action)
        for e, one in enumerate(singles):
            part = one.step(action[[e]])
            assert np.array_equal(part.x[0], whole.x[e]) and part.reward[0] == whole.reward[e]
            for name, values in part.info.items():
                assert np.array_equal(values[0], whole.info[name][e], equal_nan=True), name


def test_walkers_follow_the_deformed_law_and_pads_are_never_chosen():
    class Crowd(Feed):
        """All in one place, its candidates padded in front, between and behind."""

        def candidates(self, state, action):
            P0 = np.zeros((self.episodes, self.walkers, 7))
            P0[..., [1, 3, 5]] = [0.5, 0.2, 0.3]
            where = np.tile([0, 1, 2, 3, 4, 5, 6], (self.episodes, self.walkers, 1))
            return Candidates(P0, where, where == 1)

        def transition(self, state, action, choice, found):
            self.seen = np.bincount(choice.ravel(), minlength=7) / choice.size
            return state, np.zeros(self.episodes)

    platform = started(Crowd, walkers=60_000)
    state = platform.snapshot()
    state["memory.H"][0, [1, 5]] = 0.4, 0.1
    platform.restore(state)
    info = platform.step(0).info
    law = reweight([0.5, 0.2, 0.3], np.exp([-0.8, 0, -0.2]))
    assert platform.seen[[1, 3, 5]] == pytest.approx(law, abs=0.01)
    assert platform.seen.sum() == 1 and not platform.seen[[0, 2, 4, 6]].any()
    assert info["entry_deformed"][0] == pytest.approx(60_000 * law[0])
    through = np.dot([0.5, 0.2, 0.3], np.exp([-0.8, 0, -0.2]))
    assert info["served"][0] == pytest.approx(60_000 * through)


def test_psi_of_a_route_is_the_product_bounded_below():
    class Trip(Feed):
        def candidates(self, state, action):
            P0 = np.full((1, self.walkers, 3), 1 / 3)
            where = np.tile([[0, 1], [2, -1], [-1, -1]], (1, self.walkers, 1, 1))
            return Candidates(P0, where, np.tile([True, False, False], (1, self.walkers, 1)))

        def transition(self, state, action, choice, found):
            return state, np.zeros(1)

    platform = started(Trip, params=FieldParams(psi_min=0.3))
    for H, psi in (([0.1, 0.2], np.exp(-0.6)), ([0.5, 0.5], 0.3), ([0.0, 0.0], 1.0)):
        state = platform.snapshot()
        state["memory.H"][:] = 0
        state["memory.H"][0, :2] = H
        platform.restore(state)
        assert platform.step(0).info["odds_ratio"][0] == pytest.approx(psi)


@pytest.mark.parametrize(("make", "options"), ALL)
def test_a_snapshot_brings_everything_back(make, options):
    platform, other = started(make, 3, **options), started(make, 3, **options)
    for _ in range(25):
        platform.step(1)
    state = platform.snapshot()
    ahead = [platform.step(2).x for _ in range(20)]
    for again in (platform, other):
        again.restore(state)
        assert np.array_equal([again.step(2).x for _ in range(20)], ahead)


def test_a_state_may_use_the_names_of_a_snapshot():
    class Named(Feed):
        """A feed whose state also counts, under names with which a snapshot's begin."""

        def rest(self, episodes):
            counts = {"memory.x": np.zeros(episodes), "state.x": np.zeros(episodes)}
            return {**super().rest(episodes), **counts}

        def arrive(self, state):
            return {**state, **super().arrive(state)}

        def transition(self, state, action, choice, found):
            moved, reward = super().transition(state, action, choice, found)
            counts = {name: state[name] + 1 for name in ("memory.x", "state.x")}
            return {**moved, **counts}, reward

    platform = started(Named, 2)
    platform.step([0, 1])
    kept = platform.snapshot()
    platform.step([0, 1])
    platform.restore(kept)
    assert all(np.array_equal(platform.snapshot()[name], array) for name, array in kept.items())
    assert platform.state["memory.x"].tolist() == [1, 1]


def test_a_scar_field_of_one_bin_a_place_is_the_memory_by_places():
    class Places(Feed):
        def __init__(self, episodes=1, **options):
            super().__init__(episodes, **{"regions": PLACES, **options})
            self.region = np.arange(PLACES)

    one, two = started(Places, 2), started(Line, 2, scars=Bins)
    for _ in range(80):
        a, b = one.step(1), two.step(1)
        assert np.array_equal(a.x, b.x) and np.array_equal(a.info["harm"], b.info["harm"])
    assert np.nanmin(a.info["odds_ratio"]) < 0.8


def law_of(P0, **changed):
    def candidates(self, state, action):
        found = Feed.candidates(self, state, action)
        law = found.P0.copy()
        law[-1, 4] = P0
        return found._replace(P0=law, **changed)

    return candidates


def giving(**changed):
    return lambda self, state, action: Feed.candidates(self, state, action)._replace(**changed)


BAD = {
    "a law that does not sum to 1": ("candidates", law_of([0.5, 0.4, 0, 0, 0]), "sum to 1"),
    "a negative one": ("candidates", law_of([1.5, -0.5, 0, 0, 0]), "P0 must be >= 0"),
    "nan": ("candidates", law_of([np.nan, 1, 0, 0, 0]), "P0 must be >= 0"),
    "infinite": ("candidates", law_of([np.inf, 0, 0, 0, 0]), "sum to 1"),
    "an empty set": ("candidates", law_of([0, 0, 0, 0, 0]), "has no candidate"),
    "no candidates at all": ("candidates", giving(P0=np.zeros((2, 30, 0))), "K is 0"),
    "another shape": ("candidates", giving(P0=np.ones((2, 30))), "P0 as floats of shape"),
    "words": ("candidates", giving(P0=np.full((2, 30, 5), "a")), "P0 as floats of shape"),
    "regions of another shape": ("candidates", giving(where=np.zeros((2, 30), int)), "regions"),
    "an unknown region": ("candidates", giving(where=np.full((2, 30, 5), 10)), "0..9, or -1"),
    "a region below": ("candidates", giving(where=np.full((2, 30, 5), -2)), "0..9, or -1"),
    "points, not regions": ("candidates", giving(where=np.zeros((2, 30, 5))), "region numbers"),
    "no regions": ("candidates", giving(where=None), "write region_map"),
    "flags of another shape": ("candidates", giving(harmful=np.ones(5, bool)), "harmful must be"),
    "movers of another kind": ("candidates", giving(moving=np.ones((2, 30))), "moving must be"),
    "a lost state": ("transition", lambda *_: ({}, np.zeros(2)), "a state with"),
    "a state of another shape": (
        "transition", lambda *_: ({"at": np.zeros(2, int)}, np.zeros(2)), "must give at as",
    ),
    "rewards that are nan": (
        "transition", lambda self, s, *_: (s, np.array([0, np.nan])), "rewards.*finite",
    ),
    "harm that is nan": ("harmed", lambda self, s: (s["at"] * np.nan, s["at"]), "finite"),
    "harm nowhere": (
        "harmed", lambda self, s: (np.ones((2, 30)), np.full((2, 30), -1)), "all its regions",
    ),
    "harm in no shape": ("harmed", lambda self, s: (np.ones(30), s["at"]), "shape"),
    "reach below 0": ("reach", lambda self, s: np.full(2, -1), "reach"),
    "an observation that is nan": (
        "observation", lambda self, s, clock: np.full((2, 3), np.nan), r"observation\(\)",
    ),
    "an observation of another size": (
        "observation", lambda self, s, clock: np.zeros((2, 4)), r"observation\(\)",
    ),
    "a state that is written into": (
        "transition", lambda self, s, *_: s["at"].fill(0), "read-only",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_hooks_are_named_and_change_nothing(what, monkeypatch):
    hook, wrong, words = BAD[what]
    platform = started(Feed, 2)
    for _ in range(20):
        platform.step(1)
    before = platform.snapshot()
    monkeypatch.setattr(Feed, hook, wrong) if hook != "candidates" else monkeypatch.setattr(
        platform, hook, wrong.__get__(platform)
    )
    with pytest.raises(ValueError, match=words):
        platform.step(1)
    monkeypatch.undo()
    for name, value in platform.snapshot().items():
        assert np.array_equal(value, before[name]), name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"walkers": 0}, "walkers must be"),
        ({"saturation": 0}, "saturation must be in"),
        ({"regions": None}, "give regions"),
        ({"scars": Bins, "regions": 3}, "give regions"),
        ({"scars": Bins, "deformation": "local"}, "share of regions"),
        ({"deformation": "some"}, "deformation must be"),
        ({"observed": 0}, "observed must be"),
        ({"horizons": (5, 0, 5)}, "a horizon"),
        ({"deform_phases": (True, True)}, "three truth values"),
        ({"delay": -1}, "delay must be"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Feed(**options)


def test_bad_calls_are_named():
    platform = Feed(2)
    with pytest.raises(ValueError, match=r"call start\(\) before step"):
        platform.step(0)
    platform = started(Feed, 2)
    for call, words in (
        (lambda: platform.step([0, 3]), r"actions must be in 0\.\.2"),
        (lambda: platform.step([0.5, 1]), "action"),
        (lambda: platform.start(KEYS[:2], 4), "stimulus must be"),
        (lambda: platform.enter(3), "phase must be"),
        (lambda: platform.draws(0), "lane must be"),
        (lambda: platform.restore({}), "a snapshot has"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="abstract"):
        BatchPlatform(1, walkers=1, actions=1, stimuli=1, observed=1, regions=1)


def test_draws_are_the_same_whatever_is_asked_beside_them():
    platform = started(Feed, 3)
    alone = platform.draws(2)
    assert np.array_equal(platform.draws(1, 4)[:, :, 1], alone)
    assert abs(alone.mean() - 0.5) < 0.1 and len(np.unique(platform.draws(1, 9))) > 800
