"""Presets: seeds of the optimiser, what a manifest gives back, how long a run takes."""

import json
from dataclasses import replace

import pytest

from rapo.jobs.job import unfinished
from rapo.paper.jobs import EVALUATION, Policy, PolicyJob
from rapo.paper.presets import PAPER, PRESETS, QUICK, Preset
from rapo.paper.reproduce import planned_jobs, selected_studies


def test_graphs_have_optimiser_seeds_of_their_own_shared_by_methods():
    configs = {m: [PAPER.config(m, g) for g in range(10)] for m in ("GE", "RAPO")}
    assert len({c.seed for c in configs["RAPO"]}) == 10
    assert [c.seed for c in configs["GE"]] == [c.seed for c in configs["RAPO"]]
    shield = PAPER.policy("Shield-UM", 3)
    assert shield.needs == (Policy(configs["GE"][3]), Policy(configs["RAPO"][3]))


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_a_manifest_gives_the_preset_back(preset):
    assert Preset.from_dict(json.loads(json.dumps(preset.to_dict()))) == preset


def test_a_manifest_keeps_what_has_changed_since():
    other = replace(QUICK, setting=QUICK.setting.replace(budget=0.4, support=7))
    back = Preset.from_dict(json.loads(json.dumps(other.to_dict())))
    assert back == other
    config = back.config("RAPO", 1)
    assert (config.setting.budget, config.setting.support) == (0.4, 7)
    strange = {**other.to_dict(), "params": {**other.params.to_dict(), "w_H": 9.0}}
    with pytest.raises(ValueError, match="not those of its setting"):
        Preset.from_dict(strange)


def test_the_paper_is_affordable(tmp_path):
    """One-thread hours of `reproduce all --preset paper`."""
    jobs = unfinished(planned_jobs(selected_studies("all"), PAPER), tmp_path)
    assert 4 < sum(job.seconds for job in jobs) / 3600 <= 14
    assert len(PAPER.size_seeds) == 10


def test_seconds_by_hand():
    mlp, gru = (Policy(PAPER.config(m, 0, steps=20_480)) for m in ("GE", "PM-RNN"))
    assert mlp.seconds == pytest.approx(20_480 / 13_000)
    assert gru.seconds == pytest.approx(20_480 / 7_400)
    one = PAPER.evaluation("RAPO", 0)
    assert PAPER.evaluation("Shield", 0).seconds > 10 * one.seconds
    assert replace(one, episodes=400).seconds == pytest.approx(20 * one.seconds)
    job = PolicyJob(mlp, (one, one))
    assert job.seconds == pytest.approx(2 * EVALUATION + mlp.seconds)


def test_a_plan_trains_each_policy_once(tmp_path):
    jobs = unfinished(planned_jobs(["table1"], QUICK), tmp_path)
    keys = [job.key for job in jobs]
    assert len(keys) == len(set(keys))
    for job in jobs:
        assert all(keys.index(need.key) < keys.index(job.key) for need in job.needs)
    graphs = len(QUICK.graph_seeds)
    assert len(jobs) == (6 + 3) * graphs  # six policies, the shield one of them, three constants
    shields = [job for job in jobs if job.needs]
    assert len(shields) == graphs and jobs[-graphs:] == shields
