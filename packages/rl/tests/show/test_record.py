"""What is recorded is what `rapo.rsd.evaluate` runs, on graphs and on platforms."""

import numpy as np
import pytest

import rapo
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.platforms.map import ABSENT
from rapo.policies import ConstantPolicy
from rapo.show.record import Recording, frame_steps, record
from rapo.suite.domains import DOMAINS

SPANS, EVERY = (120, 30, 120), 9
PLATFORMS = [domain for domain in DOMAINS.values() if domain.name != "cascade"]


@pytest.fixture(scope="module")
def env():
    return GraphDiffusionVectorEnv(1, nodes=100, graph_seed=1000)


@pytest.fixture(scope="module")
def pair(env):
    how = {"horizons": SPANS, "every": EVERY, "seed": 3}
    return [record(env, ConstantPolicy(0), deformed=deformed, **how) for deformed in (False, True)]


def test_recorded_counts_are_those_of_rsd(env, pair):
    for recording, twin in zip(pair, (env.like(1, deformation="off"), env), strict=True):
        result = rapo.rsd.evaluate(twin, ConstantPolicy(0), 1, 3, True, horizons=SPANS)
        np.testing.assert_array_equal(recording.reach, result.traces["reach"][0])
        np.testing.assert_array_equal(recording.sensitive, result.traces["sensitive_mass"][0])
        active = recording.view.active(1, sum(SPANS))
        np.testing.assert_array_equal(active, result.cascade)
        np.testing.assert_array_equal(active.sum(axis=1), recording.reach)
    assert (pair[0].reach != pair[1].reach).any()


def test_arrays_of_every_step_give_the_same_recording(env, pair):
    setting = env.setting.replace(horizons=SPANS)
    run = env.like(1, coupled=True, schedule="external", setting=setting)
    run.reset(seed=3)
    active, H = [], []
    for phase, span in zip(("exposure", "decay", "replay"), SPANS, strict=True):
        if phase != "exposure":
            run.begin(phase)
        for _ in range(span):
            run.step(np.zeros(1, np.int64))
            active.append(run.engine.active[0])
            H.append(run.engine.H[0])
    made = Recording.of_steps(
        "same", env.graph, env.engine.regions, active=np.array(active), H=np.array(H),
        params=env.engine.params, spans=SPANS, every=EVERY,
    )  # fmt: skip
    for name in ("reach", "sensitive"):
        np.testing.assert_array_equal(getattr(made, name), getattr(pair[1], name))
    np.testing.assert_array_equal(made.view.bits, pair[1].view.bits)
    regions = pair[1].fields.regions
    for step in (1, 100, 150, sum(SPANS)):
        closed = pair[1].fields.closed(step)
        np.testing.assert_array_equal(made.fields.closed(step)[regions], closed)
    assert closed.any()
    with pytest.raises(ValueError, match="active must be bool of shape"):
        Recording.of_steps(
            "cut", env.graph, env.engine.regions, active=np.array(active)[1:], H=np.array(H),
            params=env.engine.params, spans=SPANS, every=EVERY,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("spans", "every", "steps"),
    [((4, 2, 5), 2, [2, 4, 6, 8, 10]), ((3, 3, 3), 3, [3, 6, 9]), ((2, 1, 1), 1, [1, 2, 3, 4])],
)
def test_frames_are_counted_within_phases(spans, every, steps):
    assert frame_steps(spans, every).tolist() == steps


@pytest.mark.parametrize("domain", PLATFORMS, ids=lambda domain: domain.name)
def test_a_platform_is_recorded_as_rsd_runs_it(domain):
    env = domain.make(1000, "stand-in")
    spans, every = (60, 10, 60), 10
    policy = ConstantPolicy(domain.action, int(env.single_action_space.n))
    left, right = (
        record(env, policy, deformed=deformed, seed=5, horizons=spans, every=every)
        for deformed in (False, True)
    )
    result = rapo.rsd.evaluate(env, policy, 1, 5, True, horizons=spans)
    np.testing.assert_array_equal(right.reach, result.traces["reach"][0])
    np.testing.assert_array_equal(right.sensitive, result.traces["sensitive_mass"][0])
    for step in range(10, 70, 10):
        first, last = left.view.states[step], left.view.states[70 + step]
        for name in (n for n in first if n.startswith("engine.state.")):
            np.testing.assert_array_equal(first[name], last[name], name)
    shape = right.view.picture(130, scars=True).shape
    assert shape == left.view.picture(130, scars=False).shape and shape[2] == 3


def test_pictures_of_P0_leave_out_the_memory_that_nothing_reads():
    domain = DOMAINS["routing"]
    env = domain.make(1000, "stand-in")
    policy = ConstantPolicy(domain.action, int(env.single_action_space.n))
    view = record(env, policy, deformed=False, seed=5, horizons=(150, 10, 10), every=10).view
    last = max(view.states)
    assert np.asarray(view.states[last]["engine.memory.H"]).any()
    red = np.array([view.picture(last, scars=scars) for scars in (False, True)]).astype(int)
    red = (red[..., 0] - red[..., 2] > 60).sum(axis=(1, 2))
    assert red[1] > red[0]


def test_fields_of_many_regions_are_kept_at_fewer_steps(env, pair, monkeypatch):
    monkeypatch.setattr("rapo.show.record.MOST_FIELDS", 600)
    fields = record(env, ConstantPolicy(0), horizons=SPANS, every=EVERY, seed=3).fields
    each = pair[1].fields
    assert each.every == 1 and len(each.H) == sum(SPANS)
    assert fields.every > 1 and fields.H.size <= 600
    np.testing.assert_array_equal(fields.H, each.H[fields.every - 1 :: fields.every])
    step = 2 * fields.every
    np.testing.assert_array_equal(fields.closed(step + 1), each.closed(step))


def test_progress_is_reported_at_every_step_and_may_end_the_run(env):
    class EndError(Exception):
        pass

    seen = []

    def on_progress(done, total):
        seen.append((done, total))
        if done == 5:
            raise EndError

    with pytest.raises(EndError):
        record(env, ConstantPolicy(0), horizons=SPANS, every=EVERY, on_progress=on_progress)
    assert seen == [(done, sum(SPANS)) for done in range(1, 6)]


@pytest.mark.parametrize("domain", PLATFORMS, ids=lambda domain: domain.name)
def test_walkers_and_regions_are_on_the_map(domain):
    env = domain.make(1000, "stand-in")
    policy = ConstantPolicy(domain.action, int(env.single_action_space.n))
    drawn = env.engine.map()
    recording = record(env, policy, horizons=(60, 10, 10), every=10)
    view, regions = recording.view, len(recording.fields.regions)
    assert len(drawn.harmful) == regions == recording.fields.H.shape[1]
    if drawn.kind == "cells":
        zone = drawn.arrays["zone"]
        assert len(zone) == drawn.about["rows"] * drawn.about["columns"]
        assert set(zone[zone >= 0].tolist()) <= set(range(regions))
    else:
        assert drawn.arrays["shapes"].shape == (regions, 3 if drawn.kind == "discs" else 4)
        assert drawn.arrays["dots"].min() >= 0 and drawn.arrays["dots"].max() <= 1
    shown = view.load if drawn.kind == "lines" else (view.walkers < ABSENT).all(axis=2)
    assert shown.shape[0] == 80 and shown.any()
