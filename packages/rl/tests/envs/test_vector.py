"""The vector environment: Gymnasium's rules, phases, autoreset, snapshots."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import rapo
from rapo.envs.task import X_START
from rapo.envs.vector import GraphDiffusionVectorEnv

ID = "rapo/GraphDiffusion-v0"


@pytest.fixture
def make(small_graph, short):
    def build(num_envs=4, **options):
        return GraphDiffusionVectorEnv(
            num_envs, graph=small_graph, setting=options.pop("setting", short), **options
        )

    return build


def rollout(env, steps, seed=0, actions=None):
    rng = np.random.default_rng(1)
    x, _ = env.reset(seed=seed)
    out = [(x, *[np.zeros(env.num_envs)] * 3)]
    for t in range(steps):
        chosen = rng.integers(0, 3, env.num_envs) if actions is None else actions[t]
        x, reward, terminated, truncated, _ = env.step(chosen)
        assert not terminated.any()
        out.append((x, reward, terminated, truncated))
    return [np.stack(part) for part in zip(*out, strict=True)]


def test_make_vec_gives_the_native_environment():
    env = gymnasium.make_vec(
        ID, num_envs=3, vectorization_mode="vector_entry_point", nodes=50, graph_seed=0
    )
    assert isinstance(env.unwrapped, GraphDiffusionVectorEnv)
    x, info = env.reset(seed=0)
    assert x.shape == (3, 5) and x.dtype == np.float32
    assert env.observation_space.contains(x)
    assert info["stimulus"].shape == (3,)


def test_equals_single_environments_with_consecutive_seeds(make, small_graph, short):
    env = make(5)
    actions = np.random.default_rng(0).integers(0, 3, (200, 5))
    x, reward, *_ = rollout(env, 200, seed=40, actions=actions)
    for i in range(5):
        single = gymnasium.make(ID, graph=small_graph, setting=short)
        obs, _ = single.reset(seed=40 + i)
        assert np.array_equal(obs, x[0, i])
        for t in range(200):
            obs, r, *_ = single.step(actions[t, i])
            assert np.array_equal(obs, x[t + 1, i])
            assert r == reward[t + 1, i]


def test_schedule_resets_the_observable_at_replay_and_truncates_at_the_end(make, short):
    env = make(autoreset_mode="Disabled")
    exposure, decay, replay = short.horizons
    x, _, _, truncated = rollout(env, exposure + decay + replay)
    starts = (0, exposure + decay)
    for start in starts:
        assert np.array_equal(x[start], np.tile(X_START, (4, 1)))
    assert (x[exposure, :, 4] == 0).all() and x[exposure, :, 0].any()  # decay: clock only
    assert np.allclose(x[1:exposure, 0, 4], np.arange(1, exposure) / exposure)
    assert not truncated[:-1].any() and truncated[-1].all()
    with pytest.raises(ValueError, match="are over or not begun"):
        env.step(np.zeros(4, int))


def test_x_shows_where_the_stimulus_enters_while_it_is_on(make, short):
    env = make(setting=short.replace(show_stimulus=True), autoreset_mode="Disabled")
    assert env.single_observation_space.shape == (7,)
    exposure, decay, replay = short.horizons
    x = rollout(env, exposure + decay + replay)[0]
    graph, z = env.graph, env.stimulus - 1
    entrance = np.stack(
        [w @ graph.positions[k] for w, k in zip(graph.weights[z], graph.support[z], strict=True)]
    )
    for step in range(x.shape[0]):
        washout = exposure <= step < exposure + decay
        assert np.allclose(x[step, :, 5:], 0.5 if washout else entrance, atol=1e-6)
    assert np.array_equal(x[:, :, :5], rollout(make(autoreset_mode="Disabled"), len(x) - 1)[0])
    assert np.abs(entrance - 0.5).max() > 0.05
    summary = make(setting=short.replace(show_stimulus=True), observe="xGH")
    assert not summary.memory_mask[:7].any() and summary.memory_mask[7:].all()


def test_next_step_autoreset_starts_the_next_episode(make, short):
    total = sum(short.horizons)
    env = make(autoreset_mode=AutoresetMode.NEXT_STEP)
    x, reward, _, truncated = rollout(env, total + 3)
    assert truncated[total].all() and not truncated[total + 1 :].any()
    assert np.array_equal(x[total + 1], np.tile(X_START, (4, 1)))
    assert (reward[total + 1] == 0).all() and (reward[total + 2] > 0).any()
    assert env.engine.H.sum() == 0


def test_same_step_autoreset_keeps_the_final_observation(make, short):
    total = sum(short.horizons)
    env = make(autoreset_mode=AutoresetMode.SAME_STEP)
    env.reset(seed=0)
    first = env.stimulus
    for _ in range(total):
        x, _, _, truncated, info = env.step(np.zeros(4, int))
    assert truncated.all()
    assert np.array_equal(x, np.tile(X_START, (4, 1)))
    assert info["_final_obs"].all() and info["_final_info"].all()
    for final in info["final_obs"]:
        assert final[4] == np.float32(short.horizons[2] / short.horizons[0])
    assert (info["final_info"]["phase"] == 2).all() and (info["phase"] == 0).all()
    assert (info["clock"] == 0).all() and np.array_equal(info["stimulus"], env.stimulus)
    assert not np.array_equal(env.stimulus, first)  # drawn anew per episode


def test_autoreset_modes_run_the_same_episodes(make, short):
    total = sum(short.horizons)
    states = []
    for mode, steps in (("NextStep", total + 1), ("SameStep", total)):
        env = make(autoreset_mode=mode)
        env.reset(seed=3)
        for _ in range(steps):
            env.step(np.ones(4, int))
        states.append(env.stimulus.tolist() + [rollout_reach(env)])
    assert states[0] == states[1]


def rollout_reach(env):
    return [float(env.step(np.zeros(env.num_envs, int))[4]["reach"].sum()) for _ in range(20)]


def test_partial_reset_mask(make):
    env = make(autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(60):
        env.step(np.zeros(4, int))
    before = env.snapshot()
    mask = np.array([False, True, False, False])
    x, _ = env.reset(options={"reset_mask": mask, "stimulus": 7})
    after = env.snapshot()
    assert np.array_equal(x[1], X_START)
    assert after["engine.stimulus"][1] == 7
    for name in ("engine.active", "engine.G", "engine.clock"):
        assert np.array_equal(before[name][~mask], after[name][~mask])
    assert after["engine.clock"][1] == 0


def test_reset_options_choose_the_stimulus_and_keep_the_memory(make):
    env = make()
    env.reset(seed=0, options={"stimulus": [1, 2, 3, 4]})
    assert env.stimulus.tolist() == [1, 2, 3, 4]
    for _ in range(120):
        env.step(np.zeros(4, int))
    H, ring = env.engine.H, env.engine.snapshot()["affected"]
    assert H.sum() > 0
    env.reset(options={"stimulus": 5, "keep_memory": True})
    assert env.stimulus.tolist() == [5] * 4
    assert np.array_equal(env.engine.H, H)
    assert np.array_equal(env.engine.snapshot()["affected"], ring)
    env.reset()
    assert env.engine.H.sum() == 0


def test_phases_can_be_driven_from_outside(make, short):
    """The same draws and phase lengths give the scheduled episode, step by step."""
    scheduled, external = make(), make(schedule="external")
    zero = np.zeros(4, int)
    scheduled.reset(seed=9)
    external.reset(seed=9)
    for number, phase in enumerate(("exposure", "decay", "replay")):
        if number:
            external.begin(phase)
        for _ in range(short.horizons[number]):
            a, b = scheduled.step(zero), external.step(zero)
            assert a[1].tolist() == b[1].tolist()
            assert a[4]["reach"].tolist() == b[4]["reach"].tolist()
            assert not b[3].any()
    assert np.array_equal(scheduled.engine.H, external.engine.H)
    external.begin("decay")
    external.begin("replay", stimulus=3, episodes=[2])
    assert external.stimulus[2] == 3
    assert external.phase.tolist() == [1, 1, 2, 1]


def test_observing_the_fields(make):
    env = make(observe="xGH")
    R = env.engine.region_count
    x, _ = env.reset(seed=0)
    assert x.shape == (4, 5 + 2 * R) == env.observation_space.shape
    for _ in range(150):
        x, *_ = env.step(np.zeros(4, int))
    assert np.array_equal(x[:, 5 : 5 + R], env.engine.G)
    assert np.array_equal(x[:, 5 + R :], env.engine.H)
    assert x[:, 5:].max() > 0


def test_reward_prefers_serving_and_ignores_the_stimulus_when_off(make, short):
    means = []
    for action in range(3):
        env = make(16, deformation="off")
        _, reward, *_ = rollout(env, sum(short.horizons), actions=[np.full(16, action)] * 400)
        means.append(reward[1 : short.horizons[0]].mean())
        assert reward.max() <= 1 + env.setting.outside_weight
        decay = reward[short.horizons[0] + 1 : sum(short.horizons[:2])]
        assert decay.max() <= env.setting.outside_weight
    assert means[0] > means[1] > means[2] > 0


def test_info_costs_and_ratios(make):
    env = make(8)
    env.reset(seed=0)
    for _ in range(149):  # within Exposure
        G = env.engine.G
        *_, info = env.step(np.zeros(8, int))
    assert np.allclose(info["cost_G"], G.sum(axis=1), rtol=1e-5)
    assert np.array_equal(info["cost"], info["harm"])
    assert ((info["odds_ratio"] > 0) & (info["odds_ratio"] <= 1)).all()
    assert ((info["event_odds_ratio"] > 0) & (info["event_odds_ratio"] <= 1 + 1e-5)).all()
    assert info["phase"].tolist() == [0] * 8
    off = make(8, deformation="off")
    off.reset(seed=0)
    *_, info = off.step(np.zeros(8, int))
    assert np.allclose(info["odds_ratio"], 1, atol=1e-6)


def test_ratios_without_nominal_harmful_mass_are_undefined(make):
    env = make(4, schedule="external")
    env.reset(seed=0)
    env.begin("decay")
    *_, info = env.step(np.zeros(4, int))
    assert np.isnan(info["odds_ratio"]).all() and np.isnan(info["event_odds_ratio"]).all()


def test_snapshot_round_trip_mid_episode(make):
    env, other = make(), make(backend="push")
    rng = np.random.default_rng(0)
    rollout(env, 97)
    state = env.snapshot()
    other.reset(seed=1234)
    x, _ = other.restore(state)
    assert np.array_equal(x, env._observation())
    for _ in range(300):  # across phases and an autoreset
        chosen = rng.integers(0, 3, 4)
        a, b = env.step(chosen), other.step(chosen)
        for ours, theirs in zip(a[:4], b[:4], strict=True):
            assert np.array_equal(ours, theirs)


def test_snapshot_of_another_graph_is_refused(make, short):
    env = make()
    env.reset(seed=0)
    state = env.snapshot()
    foreign = GraphDiffusionVectorEnv(4, nodes=50, graph_seed=3, setting=short)
    foreign.reset(seed=0)
    with pytest.raises(ValueError, match="the snapshot is of graph"):
        foreign.restore(state)
    with pytest.raises(ValueError, match="a snapshot has"):
        env.restore({"x": state["x"]})


def test_unseeded_resets_differ_between_environments(make):
    env = make(16)
    env.reset()
    assert len(set(env._seeds.tolist())) == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observe": "GH"}, "observe must be one of"),
        ({"schedule": "mine"}, "schedule must be one of"),
        ({"render_mode": "human"}, "render_mode must be one of"),
        ({"nodes": 50}, "give either graph or nodes"),
        ({"autoreset_mode": "Sometimes"}, "Sometimes"),
        ({"num_envs": 0}, "num_envs must be a whole number >= 1, got 0"),
        ({"num_envs": "two"}, "num_envs must be a whole number >= 1, got 'two'"),
        ({"deformation": "much"}, "deformation must be"),
    ],
)
def test_bad_options_are_named(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_bad_calls_are_named_and_change_nothing(make):
    env = make(autoreset_mode="Disabled")
    with pytest.raises(ValueError, match="call reset"):
        env.step(np.zeros(4, int))
    with pytest.raises(ValueError, match="call reset"):
        env.begin("decay")
    env.reset(seed=0)
    for _ in range(30):
        env.step(np.zeros(4, int))
    before = env.snapshot()
    for call, message in (
        (lambda: env.reset(options={"stimulus": 21}), r"stimulus must be in 1..20"),
        (lambda: env.reset(options={"stimulis": 1}), r"unknown reset options \['stimulis'\]"),
        (lambda: env.reset(options={"reset_mask": [1, 0, 0, 0]}), "reset_mask must be bool"),
        (lambda: env.reset(seed=[1, 2]), "seed needs 4 whole numbers"),
        (lambda: env.reset(seed=[1, 2, 3, 2**64]), "seed must be a whole number >= 0"),
        (lambda: env.reset(seed=2**63), "seed must be a whole number >= 0"),
        (lambda: env.reset(seed=-1), "seed must be a whole number >= 0.*, got -1"),
        (lambda: env.reset(seed=1.5), "seed must be a whole number >= 0.*, got 1.5"),
        (lambda: env.reset(options={"keep_memory": "no"}), "keep_memory must be True or False"),
        (lambda: env.reset(options=["stimulus"]), "unknown reset options"),
        (lambda: env.begin("pause"), "phase must be one of"),
        (lambda: env.begin("replay", stimulus=0), r"stimulus must be in 1..20"),
        (lambda: env.step(np.full(4, 3)), "actions must be 0, 1 or 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        for name, value in env.snapshot().items():
            assert np.array_equal(value, before[name]), name


def test_public_names_exist():
    for name in rapo.__all__:
        assert getattr(rapo, name) is not None
    assert set(rapo.__all__) <= set(dir(rapo))
    with pytest.raises(AttributeError, match="nothing"):
        getattr(rapo, "nothing")  # noqa: B009 - a plain attribute would be a useless expression


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_infos_equal_those_of_gymnasiums_own_vector_environment(small_graph, short, mode):
    """Across a reset: what SyncVectorEnv of single environments reports, we report."""
    from gymnasium.vector import SyncVectorEnv

    ours = GraphDiffusionVectorEnv(3, graph=small_graph, setting=short, autoreset_mode=mode)
    theirs = SyncVectorEnv(
        [lambda: gymnasium.make(ID, graph=small_graph, setting=short)] * 3, autoreset_mode=mode
    )
    assert np.array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    rng = np.random.default_rng(0)
    finals = 0
    for _ in range(sum(short.horizons) + 5):
        actions = rng.integers(0, 3, 3)
        a, b = ours.step(actions), theirs.step(actions)
        for mine, peer in zip(a[:4], b[:4], strict=True):
            assert np.array_equal(mine, peer)
        for name in ("stimulus", "phase", "clock"):
            assert np.array_equal(a[4][name], b[4][name])
        assert ("final_obs" in a[4]) == ("final_obs" in b[4])
        if "final_obs" in b[4]:
            finals += 1
            assert np.array_equal(np.stack(a[4]["final_obs"]), np.stack(b[4]["final_obs"]))
            for name in ("reach", "harm", "clock", "stimulus"):
                assert np.array_equal(a[4]["final_info"][name], b[4]["final_info"][name])
    assert finals == (mode is AutoresetMode.SAME_STEP)


def test_a_step_that_only_resets_reports_nothing_done(make, short):
    env = make()
    env.reset(seed=0)
    for _ in range(sum(short.horizons)):
        env.step(np.zeros(4, int))
    *_, info = env.step(np.zeros(4, int))
    for name in ("harm", "cost", "cost_G", "cost_H", "reach", "sensitive_mass", "served"):
        assert not info[name].any(), name
    assert np.isnan(info["odds_ratio"]).all() and np.isnan(info["event_odds_ratio"]).all()
    assert (info["clock"] == 0).all()


def test_event_odds_survive_large_cascades():
    """Hundreds of likely nodes: no single-precision product of (1 - q) is left, the ratio is."""
    setting = rapo.Setting.default().replace(cascade_target=120.0)
    graph = rapo.generate(600, 0, setting)
    ratios = {}
    for deformation in ("off", "full"):
        env = GraphDiffusionVectorEnv(
            4, graph=graph, setting=setting, deformation=deformation, schedule="external"
        )
        env.reset(seed=0)
        for _ in range(150):
            *_, info = env.step(np.zeros(4, int))
        ratios[deformation] = info["event_odds_ratio"]
    assert np.allclose(ratios["off"], 1, rtol=1e-3)
    assert ((ratios["full"] >= 0) & (ratios["full"] < 1)).all()


def test_credit_moves_harm_to_other_regions(make):
    """All harm is credited to one region; observation and twins know it, the default does not."""
    plain = make(observe="xGH")
    R, target = plain.engine.region_count, int(plain.engine.harm_regions[0])
    env = make(observe="xGH", harm_region_of=np.full(plain.graph.n, target))
    twin = env.like(2)
    for each in (plain, env, twin):
        each.reset(seed=0)
        for _ in range(120):
            x, *_ = each.step(np.zeros(each.num_envs, int))
        G = x[:, 5 : 5 + R]
        elsewhere = np.delete(G, target, axis=1)
        assert G.any() and elsewhere.any() == (each is plain)
    assert env.options["harm_region_of"] is not None and plain.options["harm_region_of"] is None
    with pytest.raises(ValueError, match="harm_region_of must name a region for each of 60 nodes"):
        make(harm_region_of=[0, 1])


def test_bad_snapshots_change_nothing(make):
    env = make()
    rollout(env, 50)
    before = env.snapshot()
    for name, bad in (("done", [1, 0, 0, 0]), ("episode", [0.5] * 4), ("episode", [-5] * 4),
                      ("seeds", ["a"] * 4), ("x", np.full((4, 5), np.nan))):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            env.restore({**before, name: bad})
        for key, value in env.snapshot().items():
            assert np.array_equal(value, before[key]), key
    x, _ = env.restore({name: value.tolist() for name, value in before.items()})
    assert np.array_equal(x, before["x"])


def test_run_needs_an_external_schedule_and_begun_episodes():
    env = GraphDiffusionVectorEnv(2, nodes=60)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="schedule='external'"):
        env.run(0, 5)
    with pytest.raises(ValueError, match="call reset"):
        env.like(2, schedule="external").run(0, 5)
