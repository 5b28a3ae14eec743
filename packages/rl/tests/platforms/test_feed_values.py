"""The feed's numbers against plain loops: claims, users, arrivals, serving, what is seen."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from rapo.platforms.feed import Feed, Setting, stand_in
from rapo.platforms.feed.claims import _claims


@pytest.fixture(scope="module")
def feed():
    """A small feed of a seed that is scored nowhere, some steps after its start."""
    setting = replace(Setting.of(), users=40, stimuli=6, delay=10, regions=20, leave=0.1)
    claims = stand_in(claims=400, accounts=3000)
    made = Feed(3, claims=claims, setting=setting, seed=1000)
    made.start(np.arange(3, dtype=np.uint64), [1, 2, 3])
    for _ in range(30):
        made.step(4)
    return made


def test_likeness_and_embedding_are_those_of_plain_sums():
    rng = np.random.default_rng(5)
    shared = rng.random((200, 40)) < 0.2  # accounts x claims
    shared[:5] = False
    shared[:5, 7] = True  # accounts that join nothing to nothing
    user, tree = np.nonzero(shared)
    size, false = rng.integers(20, 400, 40), rng.random(40) < 0.3
    found = _claims(tree, user, size, false, "toy")
    busy = shared[shared.sum(axis=1) > 1]
    expected = np.array(
        [
            [0 if a == b else (busy[:, a] & busy[:, b]).sum() / (size[a] * size[b]) ** 0.5
             for b in range(40)]
            for a in range(40)
        ]
    )  # fmt: skip
    np.testing.assert_allclose(found.likeness, expected, rtol=1e-5)
    assert np.array_equal(found.size, size) and np.array_equal(found.false, false)
    assert found.histories.shape[0] == (shared.sum(axis=1) >= 5).sum()
    degree = expected.sum(axis=1)
    values, vectors = np.linalg.eigh(expected / (degree[:, None] * degree) ** 0.5)
    chosen = vectors[:, np.argsort(-abs(values))[:16]]
    chosen = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
    np.testing.assert_allclose(found.points @ found.points.T, chosen @ chosen.T, atol=1e-4)


def test_users_get_claims_that_are_like_their_history_and_not_in_it(feed):
    s, claims = feed.setting, feed.claims
    rng = np.random.default_rng(feed.seed)
    rng.choice(np.flatnonzero(claims.false), s.stimuli, replace=False)
    users = rng.choice(claims.histories.shape[0], s.users, replace=False)
    popularity = rankdata(claims.size) / len(claims.size)
    for w in (0, 17, 39):
        history = claims.histories[users[w]].toarray()[0]
        fit = rankdata(history @ claims.likeness) / len(history)
        engages = s.popular * popularity + (1 - s.popular - s.social) * fit
        np.testing.assert_allclose(feed.engagement[w], engages, rtol=1e-6)
        own = feed.own_items[w].ravel()
        assert len(set(own)) == s.pages * s.personal and not history[own].any()
        assert fit[own].min() >= np.sort(fit[history == 0])[-own.size]
        first = feed.own_items[w, 0, 0]
        assert fit[first] == fit[history == 0].max()


def test_a_step_serves_what_was_chosen_and_warms_it(feed):
    s, seen, serve = feed.setting, [], feed.transition
    before, chance = feed.state, feed.draws(1)

    def watched(state, action, choice, found):
        seen.append((state, choice, found))
        return serve(state, action, choice, found)

    feed.transition = watched
    feed.step([0, 2, 4])
    feed.transition = serve
    ((state, choice, found),) = seen
    heat = s.heat_kept * before["heat"].astype(float)
    came = left = 0
    for e in range(3):
        for w in range(s.users):
            was, now = before["item"][e, w], state["item"][e, w]
            if was == -1:
                comes = chance[e, w] < s.come
                assert now == (-2 if comes else -1)
                came += comes
            else:
                leaves = chance[e, w] < s.leave
                assert now == (-1 if leaves else was)
                left += leaves
            k, item = choice[e, w], feed.state["item"][e, w]
            assert (k < 0) == (now == -1)
            if k < 0:
                assert item == -1 and feed.state["channel"][e, w] == 0
                continue
            assert item == found.items[e, w, k]
            by = ["pushed"] * s.push + ["next"] * s.up_next + ["own"] * s.personal
            channel = feed.state["channel"][e, w]
            assert ["nothing", "pushed", "next", "own"][channel] == by[k]
            heat[e, item] += s.heat_gain / s.users
    assert came > 3 and left > 3
    np.testing.assert_allclose(feed.state["heat"], heat, rtol=1e-5, atol=1e-7)
    assert {0, 1, 2, 3} == set(feed.state["channel"].ravel())


def test_x_says_who_sees_what(feed):
    x, item, channel = feed.observe(), feed.state["item"], feed.state["channel"]
    assert feed.clock[0] > 20
    for e in range(3):
        there = item[e] >= 0
        on = [(channel[e] == kind).sum() / 40 for kind in (1, 2, 3)]
        popular = sum(feed.popularity[i] for i in item[e][there]) / 40
        hottest = feed.state["heat"][e].max()
        expected = [there.sum() / 40, *on, popular, hottest, feed.clock[e] / 500]
        np.testing.assert_allclose(x[e], expected, rtol=1e-5)
    assert feed.reach(feed.state).tolist() == (channel == 1).sum(axis=1).tolist()


def test_the_stand_in_is_the_same_from_version_to_version():
    """Platforms of a seed are made of it: another draw would change every number silently."""
    found = stand_in(claims=400, accounts=3000)
    assert found.histories.shape == (2986, 399)
    assert (found.histories.nnz, int(found.false.sum()), int(found.size.sum())) == (
        28641, 105, 123887
    )  # fmt: skip
