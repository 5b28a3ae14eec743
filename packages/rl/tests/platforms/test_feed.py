"""The feed: its data, what it proposes, exact replay, suppression by memory, its baseline."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rapo
from rapo import FieldParams
from rapo.platforms import PlatformEnv, PlatformVectorEnv
from rapo.platforms.data import missing_data
from rapo.platforms.feed import Feed, Setting, claims_of, stand_in
from rapo.platforms.feed.entry import FEED
from rapo.rsd import check, evaluate

HORIZONS = (120, 120, 120)


@pytest.fixture(scope="module")
def claims():
    """A small stand-in: tests do not need the data."""
    return stand_in(claims=400, accounts=3000)


@pytest.fixture(scope="module")
def setting():
    return replace(Setting.of(), users=40, stimuli=6, delay=10, regions=20, leave=0.1)


@pytest.fixture
def options(claims, setting):
    return {"platform": Feed, "claims": claims, "setting": setting, "seed": 1000}


class Wary:
    """A law over the actions that depends on all of x."""

    def law(self, x):
        weights = np.exp([x[0], 3 * x[1], x[4], x[5], x[6]])
        return weights / weights.sum()

    def __call__(self, x):
        raise AssertionError("the law is asked")


class Loud:
    batched = True

    def __call__(self, x):
        return np.full(len(x), 4)


def started(options, episodes=3, **how):
    feed = Feed(episodes, **{k: v for k, v in options.items() if k != "platform"}, **how)
    feed.start(np.arange(episodes, dtype=np.uint64), np.arange(episodes) % feed.stimuli + 1)
    return feed


def test_data_and_setting_are_chosen_by_name():
    feed = Feed(data="stand-in", setting={"users": 30, "rate_window": 1e9})
    assert feed.describe()["data"] == "stand-in"
    assert feed.walkers == 30 and feed.setting.rate_window == 1e9
    assert feed.setting.regions == Setting.of().regions
    with pytest.raises(ValueError, match="books"):
        Feed(data="books")
    with pytest.raises(ValueError, match="readers"):
        Feed(data="stand-in", setting={"readers": 30})


def test_proposes_a_softmax_of_three_channels(options, setting):
    feed = started(options)
    for _ in range(21):  # the second page of personal claims
        feed.step(2)
    state, action = feed.state, np.array([0, 2, 4])
    found = feed.candidates(state, action)
    e, w = np.argwhere(state["item"] >= 0)[-1]
    last, on = state["item"][e, w], feed.stimulus[e] - 1
    page = feed.clock[e] % setting.pages
    items = np.concatenate([feed.pushed[on], feed.next_items[last], feed.own_items[w, page]])
    assert np.array_equal(found.items[e, w], items)
    likeness = feed.claims.likeness[last, feed.next_items[last]]
    rank = np.arange(setting.personal) * setting.pages + page
    score = np.concatenate([
        np.full(setting.push, setting.push_level),
        setting.follow * likeness / likeness.max(),
        setting.taste * (1 - rank / (setting.pages * setting.personal)),
    ])  # fmt: skip
    virality = feed.popularity[items] + state["heat"][e, items]
    law = np.exp(score + setting.boosts[action[e]] * virality)
    np.testing.assert_allclose(found.P0[e, w], law / law.sum(), rtol=1e-5)
    assert np.array_equal(found.harmful[e, w], feed.claims.false[items])
    assert np.array_equal(found.where[e, w], feed.region[items])


def test_pushes_a_false_claim_and_its_nearest_neighbours(options):
    feed = started(options)
    assert feed.claims.false[feed.pushed[:, 0]].all()
    near = feed.claims.likeness[feed.pushed[:, :1], feed.pushed[:, 1:]]
    assert (near.min(axis=1) >= np.sort(feed.claims.likeness[feed.pushed[:, 0]])[:, -5]).all()


def test_the_feed_drains_when_nothing_is_pushed(options):
    feed = started(options, horizons=(60, 200, 60))
    for _ in range(60):
        feed.step(4)
    assert feed.reach(feed.state).min() > 0 and feed.state["heat"].max() > 0.05
    for _ in range(20):
        feed.step(4)
        assert feed.reach(feed.state).max() == 0
    for _ in range(179):
        feed.step(4)
    assert (feed.state["item"] == -1).all() and feed.state["heat"].max() < 1e-4
    feed.step(4)
    assert (feed.phase == 2).all() and feed.state["heat"].max() == 0


def test_reward_is_the_mean_engagement_of_what_is_served(options, setting):
    feed = started(options)
    for _ in range(30):
        reward = feed.step(4).reward
    item, heat = feed.state["item"], feed.state["heat"]
    for e in range(3):
        paid = [
            feed.engagement[w, i] + setting.social * min(heat[e, i], 1)
            for w, i in enumerate(item[e]) if i >= 0
        ]  # fmt: skip
        assert reward[e] == pytest.approx(sum(paid) / setting.users, rel=1e-5)


@pytest.mark.parametrize("policy", [Wary, Loud])
def test_under_P0_coupled_replay_is_exposure_bit_for_bit(options, policy):
    env = PlatformVectorEnv(1, deformation="off", **options)
    found = evaluate(env, policy(), 4, 5, True, horizons=HORIZONS)
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    assert found.of_phase("sensitive_mass", 0).sum() > 0


@pytest.mark.parametrize("policy", [Wary, Loud])
def test_memory_suppresses_and_off_at_replay_restores(options, policy):
    env = PlatformVectorEnv(1, **options)
    how = {"horizons": HORIZONS, "against_P0": True, "coupled": True}
    on = evaluate(env, policy(), 6, 5, **how).pooled()
    assert on["SM_vs_P0"]["ratio"] < 0.8 and on["SM_R"]["ratio"] < 0.9
    off = evaluate(env, policy(), 6, 5, off_at_replay=True, **how)
    assert (off.frame[["SM_vs_P0", "ReturnKept"]] == 1).all(axis=None)


def test_the_trace_alone_replays(options):
    env = PlatformVectorEnv(1, params=FieldParams(eta=0), **options)
    found = evaluate(env, Loud(), 6, 5, True, horizons=(120, 200, 120), against_P0=True).pooled()
    assert found["SM_R"]["ratio"] == pytest.approx(1, abs=0.05)
    assert found["SM_vs_P0"]["ratio"] < 0.95


def test_the_baseline_demotes_by_reports_over_serves(options, setting):
    feed = started({**options, "kernel": "false-rate"}, horizons=(90, 9, 9))
    delay, shape = setting.delay, (3, setting.regions)
    seen, false, served = [], np.zeros(shape), np.zeros(shape)
    for step in range(80):
        item = feed.state["item"]
        counts = np.zeros((2, *shape))
        for e, w in np.argwhere(item >= 0):
            counts[:, e, feed.region[item[e, w]]] += feed.claims.false[item[e, w]], 1
        seen.append(counts)
        feed.step(4)
        keep = 1 - 1 / setting.rate_window
        then = seen[step - delay] if step >= delay else 0 * counts
        false, served = keep * false + then[0], keep * served + then[1]
    rate = false / (served + 20)
    assert rate.max() > 0.2
    np.testing.assert_allclose(np.exp(-feed.G), (1 - rate) ** setting.rate_strength, rtol=1e-9)
    assert not feed.H.any()


def test_the_baseline_survives_a_snapshot(options):
    one, two = (started({**options, "kernel": "false-rate"}) for _ in range(2))
    for _ in range(40):
        one.step(4)
    two.restore(one.snapshot())
    for _ in range(20):
        assert np.array_equal(one.step(4).x, two.step(4).x)
    assert np.array_equal(one.G, two.G)


@pytest.mark.parametrize("kernel", ["rapo", "false-rate"])
def test_the_checkers_find_nothing(options, kernel):
    report = check(PlatformEnv(schedule="external", kernel=kernel, **options))
    assert report.ok, str(report)
    check_env(PlatformEnv(kernel=kernel, **options), skip_render_check=True)


def test_has_an_id_for_one_and_for_many(options):
    named = {name: value for name, value in options.items() if name != "platform"}
    one = gymnasium.make("rapo/Feed-v0", render_mode="rgb_array", **named)
    many = gymnasium.make_vec("rapo/Feed-v0", 2, **named)
    x, _ = one.reset(seed=4, options={"stimulus": 2})
    both, _ = many.reset(seed=4, options={"stimulus": 2})
    for _ in range(30):
        x, both = one.step(4)[0], many.step(np.array([4, 4]))[0]
    assert np.array_equal(x, both[0]) and not np.array_equal(x, both[1])
    frame = one.render()
    assert frame.dtype == np.uint8 and frame.std() > 5


def test_platform_seeds_are_other_users_and_other_claims(options):
    a, b, c = (started({**options, "seed": seed}) for seed in (1, 2, 1))
    assert np.array_equal(a.own_items, c.own_items) and np.array_equal(a.pushed, c.pushed)
    assert not np.array_equal(a.own_items, b.own_items)
    assert not np.array_equal(a.pushed, b.pushed)


def test_says_which_data_it_serves(options, monkeypatch, tmp_path):
    assert PlatformVectorEnv(1, **options).describe()["data"] == "stand-in"
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    with pytest.warns(UserWarning, match="RAPO_DATA"):
        assert Feed().describe()["data"] == "stand-in"
    with pytest.raises(ValueError, match="RAPO_DATA"):
        Feed(data="real")
    for file in FEED.files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="do not hold"):
        Feed(data="real")


@pytest.mark.skipif(bool(missing_data(*FEED.files)), reason="needs the cascades")
def test_reads_the_real_claims():
    claims = claims_of("real")
    assert claims.source == "twitter15" and len(claims.size) == 1395 and claims.false.sum() == 334
    assert claims.histories.shape == (5851, 1395)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"personal": 0}, "personal"), ({"boosts": ()}, "boosts"), ({"saturation": 2}, "saturation"),
     ({"popular": 0.9}, "social"), ({"leave": float("nan")}, "leave")],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name(setting, wrong, name):
    with pytest.raises(ValueError, match=name):
        replace(setting, **wrong)


def test_bad_use_is_refused(options, setting):
    with pytest.raises(ValueError, match="kernel"):
        started({**options, "kernel": "magic"})
    with pytest.raises(ValueError, match="false claims"):
        started({**options, "setting": replace(setting, stimuli=300)})
    env = PlatformVectorEnv(1, **options)
    with pytest.raises(ValueError, match="action"):
        rapo.rsd.evaluate(env, lambda x: 7, episodes=1, horizons=(5, 5, 5))
