"""The engine: equal to the reference, equal across backends, batches and threads."""

import numpy as np
import pytest
from cascade_reference import ReferenceCascade

from rapo.cascade.engine import STATS, Cascade
from rapo.cascade.setting import DECAY, REPLAY, Setting
from rapo.cascade.stats import HARM, REACH, SCAR, SENSITIVE, SERVED
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

KEYS = np.array([11, 12, 13], np.uint64)
STIMULI = [1, 7, 20]
SCOPES = ["full", "off", "topk:3", "local:0.5"]


def random_actions(steps, episodes, seed=0):
    return np.random.default_rng(seed).integers(0, 3, (steps, episodes))


def trajectory(engine, actions, keys=None, stimuli=None):
    """Stats, active sets and fields of every step."""
    episodes = engine.episodes
    engine.start(
        np.arange(episodes, dtype=np.uint64) if keys is None else keys,
        1 + np.arange(episodes) % engine.graph.stimuli if stimuli is None else stimuli,
    )
    steps = []
    for chosen in actions:
        stats = engine.step(chosen)
        steps.append((stats.copy(), engine.active, engine.G, engine.H))
    return [np.stack(part) for part in zip(*steps, strict=True)]


def references(engine, dtype=np.float32):
    gated_regions = np.zeros(engine.region_count, bool)
    gated_regions[engine.harm_regions[engine.gated_regions]] = True
    out = []
    for key, z in zip(KEYS, STIMULI, strict=True):
        reference = ReferenceCascade(
            engine.graph, engine.setting, engine.regions, engine.params, engine.scope,
            gated_regions, dtype,
        )  # fmt: skip
        reference.start(int(key), z)
        out.append(reference)
    return out


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("persistence", [0.0, 0.2])
@pytest.mark.parametrize("regions", ["node", "community:5"])
def test_engine_follows_the_reference_step_by_step(small_graph, short, scope, persistence, regions):
    setting = short.replace(persistence=persistence)
    params = FieldParams(eta=0.2, tau=0.05, delta=0.999)  # scars everywhere, also at node level
    engine = Cascade(
        small_graph, 3, setting=setting, params=params, regions=regions, deformation=scope,
        backend="push" if scope == "topk:3" else "lanes",
    )  # fmt: skip
    engine.start(KEYS, STIMULI)
    slow = references(engine)
    reached = 0
    for actions in random_actions(sum(setting.horizons), 3):
        stats = engine.step(actions)
        active, G, H = engine.active, engine.G, engine.H
        for i, reference in enumerate(slow):
            harm = reference.step(int(actions[i]))
            assert np.array_equal(active[i], reference.active)
            assert np.array_equal(G[i], reference.memory.G)
            assert np.array_equal(H[i], reference.memory.H)
            assert stats[HARM, i] == harm
            reached += active[i].sum()
    assert reached > 300
    assert H.max() > 0.1


def test_double_precision_tells_the_same_story(small_graph, short):
    """Float64 flips a draw about once in 10^7, so the trajectories agree here."""
    engine = Cascade(small_graph, 3, setting=short)
    engine.start(KEYS, STIMULI)
    slow = references(engine, np.float64)
    for actions in random_actions(sum(short.horizons), 3):
        engine.step(actions)
        for i, reference in enumerate(slow):
            reference.step(int(actions[i]))
    for i, reference in enumerate(slow):
        assert np.array_equal(engine.active[i], reference.active)
        assert np.allclose(engine.G[i], reference.memory.G, rtol=1e-4, atol=1e-7)
        assert np.allclose(engine.H[i], reference.memory.H, rtol=1e-4, atol=1e-6)


def test_fields_are_those_of_harm_memory_fed_with_the_active_sets(graph250):
    """The engine's float32 fields against the public float64 memory."""
    setting = Setting.default().replace(horizons=(300, 100, 200))
    engine = Cascade(graph250, 8, setting=setting)
    engine.start(np.arange(8, dtype=np.uint64), np.arange(1, 9))
    memory = HarmMemory(engine.region_count, engine.params, batch=8, delay=setting.delay)
    inside = graph250.sensitive
    for actions in random_actions(600, 8):
        now = engine.active
        counts = np.stack([
            np.bincount(engine.regions[row & inside], minlength=engine.region_count) for row in now
        ])  # fmt: skip
        harm = memory.advance(counts)
        stats = engine.step(actions)
        assert np.allclose(stats[HARM], harm, atol=1e-7)
    assert memory.H.max() > 0.3
    assert np.allclose(engine.G, memory.G, rtol=1e-4, atol=1e-6)
    assert np.allclose(engine.H, memory.H, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scope", ["full", "off", "local:0.25"])
def test_backends_batches_and_threads_agree_bit_by_bit(graph250, scope):
    setting = Setting.default().replace(horizons=(120, 40, 80))
    actions = random_actions(240, 64)
    expected = trajectory(
        Cascade(graph250, 64, setting=setting, deformation=scope, backend="lanes"), actions
    )
    for options in ({"backend": "push"}, {"backend": "lanes", "threads": 2},
                    {"backend": "push", "threads": 2}):  # fmt: skip
        engine = Cascade(graph250, 64, setting=setting, deformation=scope, **options)
        for ours, theirs in zip(trajectory(engine, actions), expected, strict=True):
            assert np.array_equal(ours, theirs)
    for backend in ("lanes", "push"):
        for i in (0, 33, 63):
            engine = Cascade(graph250, 1, setting=setting, deformation=scope, backend=backend)
            alone = trajectory(
                engine, actions[:, i : i + 1], np.array([i], np.uint64), [1 + i % graph250.stimuli]
            )
            for ours, theirs in zip(alone, expected, strict=True):
                assert np.array_equal(ours[..., 0] if ours.ndim == 3 and ours.shape[1] == len(STATS)
                                      else ours[:, 0],
                                      theirs[..., i] if theirs.shape[1] == len(STATS)
                                      else theirs[:, i])  # fmt: skip


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_zero_strength_deformation_equals_off_bit_by_bit(graph250, backend):
    setting = Setting.default().replace(horizons=(200, 50, 100))
    actions = random_actions(350, 8)
    weak = Cascade(graph250, 8, setting=setting, params=FieldParams(w_G=0, w_H=0), backend=backend)
    off = Cascade(
        graph250, 8, setting=setting, params=FieldParams(w_G=0, w_H=0), deformation="off",
        backend=backend,
    )  # fmt: skip
    for a, b in zip(trajectory(weak, actions), trajectory(off, actions), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_run_equals_step_by_step(graph250, backend):
    actions = np.arange(40) % 3
    one, many = (Cascade(graph250, 40, backend=backend) for _ in range(2))
    for engine in (one, many):
        engine.start(np.arange(40, dtype=np.uint64), np.full(40, 5))
    stepped = np.stack([one.step(actions) for _ in range(720)])  # across both phase changes
    assert np.array_equal(stepped, many.run(actions, 720))
    assert np.array_equal(one.active, many.active)


@pytest.mark.parametrize("backend", ["lanes", "push"])
@pytest.mark.parametrize("threads", [1, 2])
def test_run_takes_other_actions_at_every_step(graph250, backend, threads):
    actions = random_actions(90, 40)
    one, many = (Cascade(graph250, 40, backend=backend, threads=threads) for _ in range(2))
    for engine in (one, many):
        engine.start(np.arange(40, dtype=np.uint64), 1 + np.arange(40) % 20)
    stepped = np.stack([one.step(chosen) for chosen in actions])
    assert np.array_equal(stepped, many.run(actions, 90))
    assert np.array_equal(one.active, many.active)


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_actions_of_any_kind_and_layout_are_the_same_actions(graph250, backend):
    plain = np.arange(64) % 3
    frozen = plain.copy()
    frozen.setflags(write=False)
    wide = np.repeat(plain, 2)
    kinds = [plain, frozen, wide[::2], plain.astype(np.uint8), plain.astype(">i4"), plain.tolist()]
    expected = None
    for chosen in kinds:
        engine = Cascade(graph250, 64, backend=backend)
        engine.start(np.arange(64, dtype=np.uint64), np.full(64, 5))
        stats = np.stack([engine.step(chosen) for _ in range(20)])
        expected = stats if expected is None else expected
        assert np.array_equal(stats, expected)


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_a_step_leaves_what_earlier_steps_returned(graph250, backend):
    engine = Cascade(graph250, 64, backend=backend)
    engine.start(np.arange(64, dtype=np.uint64), np.full(64, 5))
    returned, kept = [], []
    for _ in range(30):
        returned.append(engine.step(np.zeros(64, int)))
        kept.append(returned[-1].copy())
    assert np.array_equal(returned, kept)


@pytest.mark.parametrize("episodes", [None, [3], [0, 0, 0, 5]])
def test_forgetting_some_episodes_keeps_the_memory_of_the_others(graph250, episodes):
    """Lanes keep sets of regions that any of 32 episodes uses: they must not lose one."""
    engines = [
        Cascade(graph250, 4 if episodes is None else 6, backend=b) for b in ("lanes", "push")
    ]
    count = engines[0].episodes
    rows = np.arange(count) if episodes is None else np.array(episodes)
    actions = np.zeros(count, int)
    traces = []
    for engine in engines:
        engine.start(np.arange(count, dtype=np.uint64), 1 + np.arange(count))
        engine.run(actions, 80)
        engine.start(rows.astype(np.uint64), np.full(len(rows), 9), episodes=rows)
        traces.append(engine.run(actions, 120))
    assert np.array_equal(*traces)
    assert np.array_equal(engines[0].H, engines[1].H)


@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_schedule_switches_the_stimulus_and_resets_only_the_observable(small_graph, short, backend):
    exposure, decay, replay = 150, 20, 100  # a washout shorter than the delay of harm
    setting = short.replace(horizons=(exposure, decay, replay))
    engine = Cascade(small_graph, 2, setting=setting, deformation="off", backend=backend)
    engine.start(KEYS[:2], STIMULI[:2])
    trace = engine.run([0, 0], exposure)
    assert (trace[:, SERVED] > 0).all()
    assert engine.phase.tolist() == [DECAY] * 2
    assert engine.clock.tolist() == [0, 0]
    assert engine.active.any()  # decay starts from where exposure ended
    trace = engine.run([0, 0], decay - 1)
    assert (trace[:, SERVED] == 0).all()
    before = engine.snapshot()
    engine.step([0, 0])
    assert engine.phase.tolist() == [REPLAY] * 2
    assert not engine.active.any()
    assert engine.H.sum() >= before["H"].sum() > 0
    assert engine.snapshot()["affected"].sum() > 0  # the delay buffer is memory, not observable
    assert (engine.run([0, 0], replay)[:, SERVED] > 0).all()
    assert engine.clock.tolist() == [replay] * 2


def test_coupled_replay_repeats_exposure_under_the_stationary_kernel(small_graph, short):
    setting = short.replace(horizons=(100, 60, 100))
    actions = np.tile(random_actions(100, 6), (3, 1))[:260]
    actions[160:] = actions[:100]
    for coupled in (True, False):
        engine = Cascade(small_graph, 6, setting=setting, deformation="off", coupled=coupled)
        stats, active, *_ = trajectory(engine, actions)
        # active[t] is the state after step t; step 99 of exposure ends in decay's first state
        same = np.array_equal(active[:99], active[160:259])
        assert same is coupled
        if coupled:
            assert np.array_equal(stats[:100, REACH], stats[160:, REACH])


def test_off_at_replay_equals_the_stationary_replay_draw_by_draw(small_graph, short):
    actions = random_actions(310, 6)
    off = trajectory(Cascade(small_graph, 6, setting=short, deformation="off"), actions)
    rep = trajectory(
        Cascade(small_graph, 6, setting=short, deform_phases=(True, True, False)), actions
    )
    assert not np.array_equal(off[1][:150], rep[1][:150])
    assert np.array_equal(off[1][210:], rep[1][210:])


def test_deformation_lowers_reach_and_scars_never_fall(graph250):
    traces = {}
    for scope in ("off", "full"):
        engine = Cascade(graph250, 32, deformation=scope)
        engine.start(np.arange(32, dtype=np.uint64), 1 + np.arange(32) % 20)
        traces[scope] = engine.run(np.zeros(32, int), 1200)
    assert (np.diff(traces["full"][:, SCAR], axis=0) >= 0).all()
    assert (traces["full"][:, SENSITIVE] <= traces["full"][:, REACH]).all()
    reach = {scope: trace[700:, REACH].mean() for scope, trace in traces.items()}
    assert reach["full"] < 0.3 * reach["off"]


@pytest.mark.parametrize("writer", ["lanes", "push"])
@pytest.mark.parametrize("reader", ["lanes", "push"])
def test_snapshot_moves_between_backends_mid_episode(graph250, writer, reader):
    actions = random_actions(300, 5)
    source = Cascade(graph250, 5, backend=writer)
    trajectory(source, actions[:137])
    state = source.snapshot()
    target = Cascade(graph250, 5, backend=reader)
    target.start(np.full(5, 99, np.uint64), np.full(5, 2))
    target.run(np.zeros(5, int), 33)  # another ring position and other injections
    target.restore(state)
    for chosen in actions[137:]:
        assert np.array_equal(source.step(chosen), target.step(chosen))
    for name, value in source.snapshot().items():
        assert np.array_equal(value, target.snapshot()[name]), name


@pytest.mark.parametrize("backend", ["lanes", "push"])
@pytest.mark.parametrize("episodes", [None, [3, 34, 0]])
@pytest.mark.parametrize("steps", [70, 71])  # the active set lies in either half of the lanes
def test_placing_equals_restoring_the_same_state(small_graph, short, backend, episodes, steps):
    count = 40  # a whole block of lanes and part of another
    actions = random_actions(2 * steps, count)
    placed, restored = (Cascade(small_graph, count, setting=short, backend=backend) for _ in "ab")
    for engine in (placed, restored):
        trajectory(engine, actions[:steps])
    state = restored.snapshot()
    rows = np.arange(count) if episodes is None else np.array(episodes)
    state["active"][rows] = np.random.default_rng(5).random((len(rows), small_graph.n)) < 0.3
    restored.restore(state)
    placed.place(state["active"][rows], episodes)
    assert np.array_equal(placed.active, state["active"])
    for chosen in actions[steps:]:
        assert np.array_equal(placed.step(chosen), restored.step(chosen))
    for name, value in restored.snapshot().items():
        assert np.array_equal(value, placed.snapshot()[name]), name


def test_only_started_episodes_are_placed(small_graph, short):
    engine = Cascade(small_graph, 3, setting=short)
    engine.start([5], [1], episodes=[1])
    everyone = np.ones((3, small_graph.n), bool)
    with pytest.raises(ValueError, match=r"episodes \[0, 2\] are not started; call start\(\)"):
        engine.place(everyone)
    assert not engine.active.any()
    engine.place(everyone[:1], [1])
    assert engine.active.sum(axis=1).tolist() == [0, small_graph.n, 0]


def test_starting_one_episode_leaves_the_others_alone(graph250):
    for backend in ("lanes", "push"):
        both = [Cascade(graph250, 4, backend=backend) for _ in range(2)]
        for engine in both:
            engine.start(np.arange(4, dtype=np.uint64), [1, 2, 3, 4])
            engine.run(np.zeros(4, int), 120)
        both[0].start([77], [9], episodes=[2])
        assert not both[0].active[2].any()
        assert not both[0].G[2].any() and not both[0].snapshot()["affected"][:, 2].any()
        a, b = (engine.run(np.zeros(4, int), 50) for engine in both)
        assert np.array_equal(a[:, :, [0, 1, 3]], b[:, :, [0, 1, 3]])
        assert not np.array_equal(a[:, :, 2], b[:, :, 2])


def test_keep_memory_keeps_fields_and_buffer(graph250):
    engine = Cascade(graph250, 2)
    engine.start([1, 2], [1, 2])
    engine.run(np.zeros(2, int), 200)
    before = engine.snapshot()
    engine.start([3, 4], [1, 2], keep_memory=True)
    after = engine.snapshot()
    for name in ("G", "H", "affected"):
        assert np.array_equal(before[name], after[name])
    assert not after["active"].any()


def test_external_phases_never_move_by_themselves(small_graph, short):
    engine = Cascade(small_graph, 2, setting=short, scheduled=False)
    engine.start(KEYS[:2], STIMULI[:2])
    engine.run([0, 0], 400)
    assert engine.phase.tolist() == [0, 0]
    engine.enter(DECAY)
    assert engine.run([0, 0], 10)[:, SERVED].max() == 0
    engine.enter(REPLAY, [1], stimuli=[4])
    assert engine.phase.tolist() == [DECAY, REPLAY]
    assert engine.stimulus.tolist() == [1, 4]
    assert not engine.active[1].any()


def test_misattributed_harm_scars_the_credited_regions(graph250):
    engine = Cascade(graph250, 4)
    wrong = np.setdiff1d(np.arange(engine.region_count), engine.harm_regions)[0]
    credit = np.where(graph250.sensitive, wrong, engine.regions)
    blamed = Cascade(graph250, 4, harm_region_of=credit)
    blamed.start(np.arange(4, dtype=np.uint64), [1, 2, 3, 4])
    blamed.run(np.zeros(4, int), 300)
    assert (blamed.H[:, wrong] > 0).all()
    assert np.delete(blamed.H, wrong, axis=1).max() == 0


def test_statistics_are_what_they_say(graph250):
    engine = Cascade(graph250, 16)
    engine.start(np.arange(16, dtype=np.uint64), 1 + np.arange(16))
    engine.run(np.zeros(16, int), 90)
    G, H = engine.G, engine.H
    stats = dict(zip(STATS, engine.step(np.zeros(16, int)), strict=True))
    active = engine.active
    assert np.array_equal(stats["reach"], active.sum(axis=1))
    assert np.array_equal(stats["sensitive"], active[:, graph250.sensitive].sum(axis=1))
    for i, row in enumerate(active):
        if row.any():
            points = graph250.positions[row].astype(float)
            centre = points.mean(axis=0)
            spread = np.sqrt(((points - centre) ** 2).sum(axis=1).mean())
            assert np.allclose([stats["centroid_x"][i], stats["centroid_y"][i]], centre, atol=1e-6)
            assert np.isclose(stats["spread"][i], spread, atol=5e-4)
        else:
            assert stats["centroid_x"][i] == 0.5 and stats["spread"][i] == 0
    assert np.allclose(stats["trace"], G.sum(axis=1), rtol=1e-5)
    assert np.allclose(stats["scar"], engine.H.sum(axis=1), rtol=1e-5)
    assert np.allclose(stats["scar_gain"], (engine.H - H).sum(axis=1), atol=1e-6)
    assert (stats["entry_deformed"] <= stats["entry_nominal"]).all()
    assert (stats["partition"] <= 1).all()
    assert (stats["partition"] >= stats["stay_nominal"]).all()


def test_odds_of_harmful_entry_match_the_theory(small_graph, short):
    """The event odds of a step against `theory.event_odds` of the reference's q and psi."""
    from rapo import theory

    engine = Cascade(small_graph, 3, setting=short)
    engine.start(KEYS, STIMULI)
    slow = references(engine)
    for actions in random_actions(120, 3):
        laws = []
        for i, reference in enumerate(slow):
            q = 1 - reference.missed(int(actions[i])).astype(float)
            psi = reference.memory.conductance()[engine.regions].astype(float)
            laws.append((q[small_graph.sensitive], psi[small_graph.sensitive]))
            reference.step(int(actions[i]))
        stats = dict(zip(STATS, engine.step(actions), strict=True))
        for i, (q, psi) in enumerate(laws):
            assert np.isclose(stats["entry_nominal"][i], q.sum(), rtol=1e-4, atol=1e-6)
            assert np.isclose(stats["entry_deformed"][i], (q * psi).sum(), rtol=1e-4, atol=1e-6)
            stay = stats["stay_nominal"][i] / stats["partition"][i]
            assert np.isclose(1 / stay - 1, theory.event_odds(q, psi), rtol=1e-3, atol=1e-5)
            assert theory.event_odds(q, psi) <= psi.max() * theory.event_odds(q) * (1 + 1e-9)


def test_memory_of_a_decayed_field_is_exactly_zero(graph250):
    engine = Cascade(graph250, 1, scheduled=False)
    engine.start([1], [1])
    engine.run([0], 200)
    engine.enter(DECAY)
    engine.run([0], 1500)
    assert engine.G.max() == 0  # not a subnormal remainder


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.step([0, 1]), r"actions must be whole numbers of shape \(3,\)"),
        (lambda e: e.step([0, 1, 3]), "actions must be 0, 1 or 2, got 3 for episode 2"),
        (lambda e: e.step([0, -1, 0]), "got -1 for episode 1"),
        (lambda e: e.step([0.5, 1, 1]), "whole numbers"),
        (lambda e: e.step(np.array([0, 1, 5])), "actions must be 0, 1 or 2, got 5 for episode 2"),
        (lambda e: e.step([[0, 1, 2]]), r"of shape \(3,\), got int64 \(1, 3\)"),
        (lambda e: e.run(np.zeros((3, 3), int), 2), r"of shape \(3,\), got int64 \(3, 3\)"),
        (lambda e: e.run([[0, 1, 2], [0, 4, 0]], 2), "got 4 for episode 1"),
        (lambda e: e.start(KEYS, [1, 2, 21]), r"stimulus must be in 1..20"),
        (lambda e: e.start(KEYS, [0, 1, 2]), r"stimulus must be in 1..20"),
        (lambda e: e.start([1], [1], episodes=[3]), r"episodes must be indices 0..2"),
        (lambda e: e.enter(7), "phase must be 0, 1 or 2, got 7"),
        (lambda e: e.run([0, 0, 0], 0), "steps must be a whole number >= 1, got 0"),
        (lambda e: e.start(7, [1, 2, 3]), "keys must be 3 whole numbers >= 0"),
        (lambda e: e.start([1.9, 2, 3], [1, 2, 3]), "keys must be 3 whole numbers >= 0"),
        (lambda e: e.start([-1, 2, 3], [1, 2, 3]), "keys must be 3 whole numbers >= 0"),
        (lambda e: e.restore({"G": 1}), "a snapshot has"),
        (lambda e: e.place(np.ones((3, 60))), r"bool of shape \(3, 60\).* got float64 \(3, 60\)"),
        (lambda e: e.place(np.ones((2, 60), bool)), r"got bool \(2, 60\)"),
        (lambda e: e.place(np.ones((1, 60), bool), [3]), r"episodes must be indices 0..2"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(small_graph, short, call, message):
    engine = Cascade(small_graph, 3, setting=short)
    engine.start(KEYS, STIMULI)
    engine.run([0, 0, 0], 70)
    before = engine.snapshot()
    with pytest.raises(ValueError, match=message):
        call(engine)
    for name, value in engine.snapshot().items():
        assert np.array_equal(value, before[name])


def test_bad_snapshot_values_change_nothing(small_graph, short):
    engine = Cascade(small_graph, 3, setting=short)
    engine.start(KEYS, STIMULI)
    engine.run([0, 0, 0], 70)
    before = engine.snapshot()
    for name, bad, message in (
        ("G", -1.0, "G must be >= 0, got -1.0"),
        ("G", 1e300, r"G must hold finite float32 values, got 1e\+300"),
        ("H", np.nan, "H must hold finite float32 values, got nan"),
        ("active", 0.5, "active must hold bool values, got float64"),
        ("active", 7, "active must hold bool values, got int64"),
        ("stimulus", 99, r"stimulus must be in 0..20"),
        ("stimulus", np.nan, "stimulus must hold int64 values, got float64"),
        ("stimulus", 1.0, "stimulus must hold int64 values, got float64"),
        ("phase", 5, r"phase must be in 0..2"),
        ("clock", -5, "clock must be >= 0, got -5"),
        ("clock", "5", "clock must hold int64 values, got <U1"),
        ("keys", -1, "keys must hold uint64 values, got -1"),
        ("keys", 0.5, "keys must hold uint64 values, got float64"),
    ):
        state = {**before, name: np.full(before[name].shape, bad)}
        with pytest.raises(ValueError, match=message):
            engine.restore(state)
    with pytest.raises(ValueError, match=r"a snapshot has .*, got list"):
        engine.restore([])
    renamed = Cascade(
        small_graph, 3, setting=short, regions=engine.region_count - 1 - engine.regions
    )
    assert len(renamed.harm_regions) == len(engine.harm_regions)  # the shapes alone would fit
    with pytest.raises(ValueError, match="other regions"):
        renamed.restore(before)
    engine.restore({name: value.tolist() for name, value in before.items()})  # as from JSON
    with pytest.raises(ValueError, match="G must have shape"):
        engine.restore({**before, "G": before["G"][:, :1]})
    for name, value in engine.snapshot().items():
        assert np.array_equal(value, before[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes must be a whole number >= 1, got 0"),
        ({"threads": 0}, "threads must be a whole number >= 1, got 0"),
        ({"backend": "gpu"}, "backend must be auto, lanes or push, got 'gpu'"),
        ({"deformation": "half"}, "deformation must be"),
        ({"deformation": "topk:0"}, "deformation must be"),
        ({"deformation": "topk:4", "backend": "lanes"}, "runs on backend push only"),
        ({"regions": "cells"}, "cells"),
        ({"harm_region_of": [1]}, "harm_region_of must name a region"),
        ({"deform_phases": (True,)}, "three truth values"),
        ({"deform_phases": "off"}, "three truth values, got 'off'"),
        ({"deform_phases": ("off",) * 3}, "each of deform_phases must be True or False, got 'off'"),
        ({"coupled": "no"}, "coupled must be True or False, got 'no'"),
        ({"scheduled": 1}, "scheduled must be True or False, got 1"),
        ({"setting": {}}, "setting must be a Setting"),
        ({"params": {"lam": 0.1}}, "params must be a FieldParams"),
        ({"episodes": True}, "episodes must be a whole number >= 1, got True"),
        ({"episodes": "a"}, "episodes must be a whole number >= 1, got 'a'"),
    ],
)
def test_bad_construction_is_named(small_graph, short, options, message):
    with pytest.raises(ValueError, match=message):
        Cascade(small_graph, **{"episodes": 2, "setting": short, **options})


def test_a_phase_entered_again_has_draws_of_its_own(small_graph, short):
    def reach(coupled):
        engine = Cascade(
            small_graph, 4, setting=short, deformation="off", scheduled=False, coupled=coupled
        )
        engine.start(np.arange(4, dtype=np.uint64), [1, 2, 3, 4])
        series = [engine.run(np.zeros(4, int), 60)[:, REACH]]
        for _ in range(2):
            engine.enter(DECAY)
            engine.run(np.zeros(4, int), 60)
            engine.enter(REPLAY)
            series.append(engine.run(np.zeros(4, int), 60)[:, REACH])
        return series

    exposure, first, second = reach(coupled=False)
    assert not np.array_equal(first, second)
    assert not np.array_equal(exposure, first)
    exposure, first, second = reach(coupled=True)
    assert np.array_equal(exposure, first)
    assert not np.array_equal(first, second)


def test_a_snapshot_remembers_how_often_a_phase_was_entered(small_graph, short):
    engine = Cascade(small_graph, 1, setting=short, scheduled=False)
    engine.start([3], [1])
    for phase in (DECAY, REPLAY, DECAY):
        engine.enter(phase)
    copy = Cascade(small_graph, 1, setting=short, scheduled=False)
    copy.restore(engine.snapshot())
    for each in (engine, copy):
        each.enter(REPLAY)
    assert engine.keys == copy.keys


def test_an_engine_with_threads_can_be_copied_and_closed(graph250):
    import pickle

    engine = Cascade(graph250, 64, threads=2)
    engine.start(np.arange(64, dtype=np.uint64), np.full(64, 3))
    engine.run(np.zeros(64, int), 30)
    twin = pickle.loads(pickle.dumps(engine))
    assert np.array_equal(twin.step(np.zeros(64, int)), engine.step(np.zeros(64, int)))
    engine.close()
    assert np.array_equal(twin.step(np.ones(64, int)), engine.step(np.ones(64, int)))


def test_constants_at_their_ends_keep_the_fields_finite(graph250):
    params = FieldParams(alpha=1e9, eta=1e9, w_G=1e9, w_H=1e9, psi_min=1e-30)
    engine = Cascade(graph250, 4, params=params)
    engine.start(np.arange(4, dtype=np.uint64), [1, 2, 3, 4])
    trace = engine.run(np.zeros(4, int), 1200)
    assert np.isfinite(trace).all()
    assert engine.H.max() > 1e15


@pytest.mark.parametrize("backend", ["lanes", "push"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_record_of_active_nodes_is_what_the_active_sets_show(small_graph, backend, threads):
    steps = 150  # more than one call records
    engine, watched = (Cascade(small_graph, 40, backend=backend, threads=threads) for _ in range(2))
    keys, stimuli = np.arange(40, dtype=np.uint64), 1 + np.arange(40) % small_graph.stimuli
    engine.start(keys, stimuli)
    watched.start(keys, stimuli)
    engine.record_activity()
    trace = engine.run(0, steps)
    sets = []
    for t in range(steps):
        np.testing.assert_array_equal(watched.step(np.zeros(40, np.int64)), trace[t])
        sets.append(watched.active)
    record = engine.read_activity()
    np.testing.assert_array_equal(record.visits, np.sum(sets, axis=(0, 1)))
    np.testing.assert_array_equal(record.ever, np.any(sets, axis=0))
    np.testing.assert_array_equal(record.first, np.array(sets)[:, 0])
    engine.run(0, 3)
    assert len(engine.read_activity().first) == 0  # the record had ended
