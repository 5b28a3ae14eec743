"""RSD on platforms: exact replay under P0, suppression by memory, restored by off@rep."""

import numpy as np
import pytest
from toy_platforms import Bins, Feed, Line, Routes

from rapo import FieldParams
from rapo.platforms import PlatformEnv, PlatformVectorEnv
from rapo.rsd import check, evaluate

HORIZONS = (120, 60, 120)
KINDS = [(Feed, {}), (Routes, {}), (Line, {"scars": Bins})]
AGAINST = ["SM_vs_P0", "Reach_vs_P0", "ReturnKept"]


class Stochastic:
    """A law over the actions that depends on all that is seen."""

    def law(self, x):
        weights = np.exp(np.array([3 * x[0], 5 * x[1], x[2]], float))
        return weights / weights.sum()

    def __call__(self, x):
        raise AssertionError("the law is asked")


class Recurrent:
    """Acts on a running sum of what it has seen since its reset."""

    def reset(self):
        self.sum = 0.0

    def __call__(self, x):
        self.sum += float(x.sum())
        return int(10 * self.sum) % 3


class Batched:
    """All episodes at once."""

    batched = True

    def __call__(self, x):
        return (7 * x[:, 0] + 9 * x[:, 1]).astype(int) % 3


POLICIES = [Stochastic, Recurrent, Batched]


def run(make, options, policy, *, single=False, **how):
    env = (
        PlatformEnv(platform=make, **options)
        if single
        else PlatformVectorEnv(1, platform=make, **options)
    )
    return evaluate(env, policy(), episodes=4, seed=5, horizons=HORIZONS, **how)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("make", "options"), KINDS)
def test_under_P0_coupled_replay_is_exposure_bit_for_bit(make, options, policy):
    if policy is Recurrent:  # one memory for all episodes: one episode at a time
        env = PlatformVectorEnv(1, platform=make, deformation="off", **options)
        found = evaluate(env, policy(), 1, 5, True, horizons=HORIZONS)
    else:
        found = run(make, {**options, "deformation": "off"}, policy, coupled=True)
    for name in ("reach", "sensitive_mass", "reward"):
        assert np.array_equal(found.of_phase(name, 0), found.of_phase(name, 2)), name
    assert found.traces["sensitive_mass"].max() > 0
    for name in ("RAG", "AUC_R", "SM_R"):
        assert found.pooled()[name]["ratio"] == 1


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("policy", [Stochastic, Batched])
@pytest.mark.parametrize(("make", "options"), KINDS)
def test_off_at_replay_restores_P0_exactly(make, options, policy, coupled):
    how = {"against_P0": True, "coupled": coupled}
    off = run(make, options, policy, off_at_replay=True, **how).frame
    assert (off[AGAINST] == 1).all(axis=None)
    on = run(make, options, policy, **how).frame
    assert (on["SM_vs_P0"] < 0.8).all() and (on["OddsRatio"] < 0.9).all()
    assert np.array_equal(on["P0SensitiveMass"], off["P0SensitiveMass"])


def test_the_trace_alone_suppresses_and_replays():
    options = {"params": FieldParams(eta=0, lam=0.5, alpha=2.5)}  # gone within the washout
    env = PlatformVectorEnv(1, platform=Feed, **options)
    horizons = (120, 200, 120)  # the feed drains, then the trace
    found = evaluate(env, Batched(), 4, 5, True, horizons=horizons, against_P0=True)
    assert np.array_equal(found.of_phase("reach", 0), found.of_phase("reach", 2))
    pooled = found.pooled()
    assert pooled["SM_R"]["ratio"] == 1 and pooled["SM_vs_P0"]["ratio"] < 0.9
    scarred = run(Feed, {}, Batched, coupled=True)
    assert scarred.pooled()["SM_R"]["ratio"] < 0.9


def test_single_and_vector_agree_and_a_subclass_runs_one_at_a_time():
    class Counted(PlatformEnv):
        """Its own step, so that RSD runs it an episode at a time."""

        steps = 0

        def step(self, action):
            Counted.steps += 1
            return super().step(action)

    at_once = run(Feed, {}, Batched).frame
    assert run(Feed, {}, Batched, single=True).frame.equals(at_once)
    one_by_one = evaluate(Counted(platform=Feed), Batched(), 4, 5, horizons=HORIZONS).frame
    assert one_by_one["stimulus"].equals(at_once["stimulus"])  # the protocol has draws of its own
    assert Counted.steps == 4 * sum(HORIZONS)


def test_a_subclass_of_the_platform_is_the_one_that_runs():
    class Loud(Feed):
        def reach(self, state):
            return 3 * super().reach(state)

    assert np.array_equal(
        run(Loud, {}, Batched).traces["reach"], 3 * run(Feed, {}, Batched).traces["reach"]
    )


@pytest.mark.parametrize("observe", ["x", "xGH"])
def test_the_shift_of_actions_is_known_before_the_run(observe):
    """A policy that looks at the scars acts otherwise at Replay, one that sees x does not."""
    env = PlatformVectorEnv(1, platform=Feed, observe=observe)
    stage = env.stage(
        2, seed=0, stimuli=None, horizons=HORIZONS, coupled=True, deformed=(True, True, True)
    )
    assert (stage.memory_mask is None) == (observe == "x")

    class Wary(Stochastic):
        def law(self, x):
            harmed = min(x[3:].sum(), 1.0)
            return np.array([1 - harmed / 2, harmed / 4, harmed / 4])

    shift = evaluate(env, Wary(), 3, 0, True, horizons=HORIZONS).frame["ASD"]
    assert (shift > 0.01).all() if observe == "xGH" else (shift == 0).all()


@pytest.mark.parametrize(("make", "options"), KINDS)
def test_the_checker_finds_nothing(make, options):
    report = check(PlatformEnv(platform=make, schedule="external", **options))
    assert report.ok, str(report)


def test_the_manifest_says_what_was_run():
    manifest = run(Feed, {"deformation": "topk:2"}, Batched).manifest
    assert manifest["platform"] == "Feed" and manifest["deformation"] == "topk:2"
    assert manifest["graph_hash"] is None and manifest["params"]["psi_min"] == 0.1


def test_selectivity_of_a_platform():
    found = run(Feed, {}, Batched, selectivity=True).frame
    assert found[["OddsSame", "OddsOther"]].notna().all(axis=None)
