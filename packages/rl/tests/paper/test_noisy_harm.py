"""Noise between harm and trace: none changes nothing, all of it leaves no trace."""

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.paper.noisy_harm import NoisyReportsEnv
from rapo.rsd import evaluate

SHORT = Setting.default().replace(horizons=(80, 20, 80), delay=10)
OPTIONS = {"nodes": 60, "graph_seed": 1000, "setting": SHORT, "schedule": "external"}


def traces(env, steps=80):
    """G after each step of an aggressive Exposure, (steps, E, R)."""
    env.reset(seed=0)
    out = []
    for _ in range(steps):
        env.step(np.zeros(env.num_envs, np.int64))
        out.append(env.engine.G)
    return np.stack(out).astype(np.float64)


def inflow(G, lam):
    return G[1:] - (1 - lam) * G[:-1]


def always(x):
    return 0


def test_without_noise_it_is_the_environment_itself():
    env = NoisyReportsEnv(3, observe="xGH", **OPTIONS)
    plain = GraphDiffusionVectorEnv(3, observe="xGH", **OPTIONS)
    mine, theirs = (evaluate(e, always, 5, seed=2).frame for e in (env, plain))
    assert mine.equals(theirs)


def test_lost_reports_leave_no_trace_and_replay_is_full():
    env = NoisyReportsEnv(4, lost=1.0, **OPTIONS)
    assert (traces(env) == 0).all()
    frame = evaluate(env, always, 5, seed=2, coupled=True).frame
    assert frame["RAG"].to_numpy() == pytest.approx(1) and (frame["ScarMass"] == 0).all()


def test_reports_are_lost_at_the_given_rate_and_else_arrive_whole():
    free = {"deformation": "off", **OPTIONS}  # the same cascade with and without noise
    whole, some = (traces(NoisyReportsEnv(64, lost=p, **free)) for p in (0.0, 0.25))
    lam = NoisyReportsEnv(1, **free).engine.params.lam
    told, got = inflow(whole, lam), inflow(some, lam)
    there = told > 1e-3
    ratio = got[there] / told[there]
    assert np.minimum(abs(ratio), abs(ratio - 1)).max() < 1e-2
    assert (ratio < 0.5).mean() == pytest.approx(0.25, abs=0.02)


def test_spread_is_up_or_down_and_right_on_average():
    free = {"deformation": "off", **OPTIONS}
    whole, noisy = (traces(NoisyReportsEnv(64, spread=s, **free)) for s in (0.0, 0.5))
    lam = NoisyReportsEnv(1, **free).engine.params.lam
    told, got = inflow(whole, lam), inflow(noisy, lam)
    there = told > 1e-3
    ratio = got[there] / told[there]
    assert np.minimum(abs(ratio - 0.5), abs(ratio - 1.5)).max() < 1e-2
    assert ratio.mean() == pytest.approx(1, abs=0.02)


def test_an_episode_does_not_depend_on_how_many_run_beside_it():
    few, many = (traces(NoisyReportsEnv(n, lost=0.5, spread=0.5, **OPTIONS)) for n in (2, 7))
    assert (few == many[:, :2]).all()


@pytest.mark.parametrize("noise", [{"lost": 1.5}, {"spread": -0.1}])
def test_bad_noise_is_named(noise):
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got"):
        NoisyReportsEnv(1, **noise, **OPTIONS)
