"""Shields made from trained policies: fixed, tuned to RAPO, and refused."""

import numpy as np
import pandas as pd
import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_agent, load_run
from rapo.agents.shield import Shield
from rapo.agents.train import train
from rapo.cascade.setting import Setting
from rapo.paper import shields
from rapo.paper.evaluation import evaluate_run
from rapo.paper.shields import HELD_OUT, TOLERANCE, make_shield

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Checkpoints of a GE, a RAPO on its graph and a RAPO on another."""
    folder, out = tmp_path_factory.mktemp("runs"), {}
    for name, method, graph_seed in (("GE", "GE", 0), ("RAPO", "RAPO", 0), ("other", "RAPO", 1)):
        config = graph_run(
            method=method, nodes=40, graph_seed=graph_seed, setting=SHORT, ppo=TINY, steps=512
        )
        train(config, folder / name)
        out[name] = folder / name
    return out


def test_a_fixed_shield_keeps_ges_weights(runs, tmp_path):
    told = make_shield(str(runs["GE"]), str(tmp_path))
    policy, config = load_agent(tmp_path)
    assert isinstance(policy, Shield) and config.method == "Shield"
    assert policy.threshold == SHIELD_THRESHOLD == told["threshold"]
    assert policy.reference == pytest.approx(resolve(config).references()["sensitive_mass"])
    assert told == {"method": "Shield", "threshold": 0.5, "reference": policy.reference}
    one, two = (load_run(p).arrays["policy.0"] for p in (runs["GE"], tmp_path))
    assert np.array_equal(one, two)
    assert not (tmp_path / "tuning.csv").exists()


def test_the_threshold_is_taken(runs, tmp_path):
    assert make_shield(runs["GE"], tmp_path, threshold=0.8)["threshold"] == 0.8
    assert load_agent(tmp_path)[0].threshold == 0.8


@pytest.fixture(scope="module")
def matched(runs, tmp_path_factory):
    out, tried = tmp_path_factory.mktemp("matched"), []
    told = make_shield(runs["GE"], out, match=runs["RAPO"], episodes=3,
                       report=lambda *words: tried.append(words))  # fmt: skip
    return out, told, tried


def test_a_matched_shield_is_tuned_on_held_out_episodes(runs, matched):
    out, told, tried = matched
    curve = pd.read_csv(out / "tuning.csv")
    assert curve.columns.tolist() == ["threshold", "ReplayRet", "target"]
    assert np.allclose(curve[["threshold", "ReplayRet"]], tried, rtol=1e-5)
    assert 1 <= len(curve) <= shields.TRIES
    # the target is RAPO's replay return over GE's, both on the held-out episodes
    returns = {
        name: evaluate_run(
            runs[name], episodes=3, seed=HELD_OUT, horizons=horizons
        ).frame["ReplayReturn"].mean()
        for name, horizons in (("RAPO", None), ("GE", (1, 1, 60)))
    }  # fmt: skip
    assert told["target"] == pytest.approx(returns["RAPO"] / returns["GE"])
    nearest = curve.iloc[(curve["ReplayRet"] - told["target"]).abs().argmin()]
    assert told["threshold"] == pytest.approx(nearest["threshold"], rel=1e-5)
    assert told["ReplayRet"] == pytest.approx(nearest["ReplayRet"], rel=1e-5)
    assert told["matched"] == (abs(told["ReplayRet"] - told["target"]) <= TOLERANCE)
    policy, config = load_agent(out)
    assert config.method == "Shield-UM" and policy.threshold == told["threshold"]


def test_bisection_closes_in_from_the_right_side(runs, tmp_path, monkeypatch):
    """With a made-up return that grows with the threshold, the threshold is found."""
    wanted = 0.37

    class Found:
        def __init__(self, value):
            self.frame = pd.DataFrame({"ReplayReturn": [value]})

    def of(threshold):
        return 100 * threshold / (1 + threshold)

    def evaluate(env, policy, **options):
        return Found(of(policy.threshold) if isinstance(policy, Shield) else 100.0)

    monkeypatch.setattr(shields, "evaluate", evaluate)
    monkeypatch.setattr(shields, "evaluate_run", lambda *_, **__: Found(of(wanted)))
    monkeypatch.setattr(shields, "TOLERANCE", 0.002)
    told = make_shield(runs["GE"], tmp_path, match=runs["RAPO"])
    assert told["matched"] and told["threshold"] == pytest.approx(wanted, rel=0.02)
    curve = pd.read_csv(tmp_path / "tuning.csv")
    assert curve["threshold"][0] == pytest.approx((0.02 * 2.0) ** 0.5)
    assert curve["threshold"][1] > curve["threshold"][0]  # it kept too little
    monkeypatch.setattr(shields, "evaluate_run", lambda *_, **__: Found(99.0))
    told = make_shield(runs["GE"], tmp_path / "far", match=runs["RAPO"])
    assert not told["matched"] and len(told["tuning"]) == shields.TRIES
    assert told["threshold"] == pytest.approx(2, rel=0.01)


def refused(words, out, *args, **options):
    with pytest.raises(ValueError, match=words):
        make_shield(*args, out, **options)
    assert not (out / "weights.safetensors").exists() and not (out / "tuning.csv").exists()


def test_refusals(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(shields, "evaluate", None)  # before anything is simulated
    ge, rapo = runs["GE"], runs["RAPO"]
    refused("guards the policy of GE, got one of RAPO", tmp_path, rapo)
    refused("matches the return of RAPO, got GE", tmp_path, ge, match=ge)
    refused("match policies of one graph", tmp_path, ge, match=runs["other"])
    refused("tunes its threshold, got --threshold 0.4", tmp_path, ge, match=rapo, threshold=0.4)
    refused("threshold must be", tmp_path, ge, threshold=-1.0)
    refused("there is no run at", tmp_path, tmp_path / "none")


def test_an_earlier_shield_is_not_overwritten(runs, tmp_path):
    make_shield(runs["GE"], tmp_path)
    before = (tmp_path / "weights.safetensors").read_bytes()
    with pytest.raises(ValueError, match="holds a run; choose another --out"):
        make_shield(runs["GE"], tmp_path, threshold=0.7)
    assert (tmp_path / "weights.safetensors").read_bytes() == before


def test_a_threshold_is_tuned_on_episodes_that_no_table_shows(runs, tmp_path, monkeypatch):
    seeds = []

    def watched(function):
        def call(*args, **options):
            seeds.append(options["seed"])
            return function(*args, **options)

        return call

    for name in ("evaluate", "evaluate_run"):
        monkeypatch.setattr(shields, name, watched(getattr(shields, name)))
    make_shield(runs["GE"], tmp_path, match=runs["RAPO"], episodes=2)
    assert len(seeds) >= 3
    assert min(seeds) >= 10_000  # tables count their episodes from 0
