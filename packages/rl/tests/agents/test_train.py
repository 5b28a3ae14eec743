"""Training runs: what they leave, how they go on after a cut, and what they refuse."""

import fcntl
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from waiting import until

from rapo.agents import train as train_module
from rapo.agents.resolve import resolve
from rapo.agents.saved_run import load_agent, load_run, load_state
from rapo.agents.train import train


@pytest.fixture
def often(monkeypatch):
    """Checkpoints every third rollout."""
    monkeypatch.setattr(train_module, "SAVE_EVERY", 3)


class CutError(Exception):
    """What ends a run early."""


def train_until(update, made, out, **options):
    """Train, and die right after a rollout."""

    def report(steps, told):
        if steps >= update * made.ppo.rollout:
            raise CutError

    with pytest.raises(CutError):
        train(made, out, report=report, **options)


def assert_same(one, two):
    """Two finished runs agree bit for bit in all that evolved and in all that was logged."""
    assert load_run(one).finished and load_run(two).finished
    assert (one / "progress.csv").read_bytes() == (two / "progress.csv").read_bytes()
    assert_equal(load_state(one), load_state(two))


def assert_equal(one, two, name="learner"):
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_equal(one[key], two[key], f"{name}.{key}")
    else:
        assert np.array_equal(one, two), name


def test_a_run_leaves_checkpoint_progress_summary_and_config(tmp_path, config):
    made, told = config("RAPO"), []
    out = tmp_path / "deep" / "run"
    summary = train(made, out, report=lambda steps, means: told.append((steps, means)))
    saved = load_run(out)
    assert saved.finished and saved.config.method == "RAPO" and saved.updates == 10
    assert saved.graph_hash == resolve(made).graph_hash
    assert "RAPO" in (out / "README.md").read_text()
    progress = pd.read_csv(out / "progress.csv")
    assert progress["steps"].tolist() == [256 * (1 + i) for i in range(10)]
    assert [steps for steps, _ in told] == progress["steps"].tolist()
    for name in ("reward", "entropy", "kl", "cost_trace", "cost_scar", "dual_trace", "dual_scar"):
        assert progress[name].to_numpy() == pytest.approx([m[name] for _, m in told], rel=1e-4)
    assert np.isfinite(progress.to_numpy()).all()
    assert json.loads((out / "summary.json").read_text()) == summary
    assert summary["steps"] == 2560 and set(summary["budgets"]) == {"trace", "scar"}
    assert saved.config == resolve(made).config


def test_a_finished_run_that_is_resumed_keeps_its_summary_and_one_update_writes_a_new_one(
    tmp_path, config
):
    made = config("GE", 2)
    summary = train(made, tmp_path)
    assert summary["steps_per_second"] > 0 and 0 < summary["environment_share"] < 1
    assert train(made, tmp_path, resume=True) == summary
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    stale = {**summary, "reward": 1e9}
    (tmp_path / "summary.json").write_text(json.dumps(stale))
    train_until(1, made, tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").write_text(json.dumps(stale))
    last = train(made, tmp_path / "cut", resume=True)  # one update is left, to the same steps
    assert (last["steps"], last["reward"]) == (summary["steps"], summary["reward"])


def test_steps_are_rounded_up_to_whole_rollouts(tmp_path, config):
    made = config("GE", steps=257)
    assert made.updates == 2
    assert train(made, str(tmp_path))["steps"] == 512


def test_other_seeds_and_graphs_give_other_weights(tmp_path, config):
    runs = [config("GE", 2), config("GE", 2, seed=1), config("GE", 2, graph_seed=1)]
    weights = []
    for i, made in enumerate(runs):
        train(made, tmp_path / str(i))
        weights.append(load_state(tmp_path / str(i))["weights"])
    assert not np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("method", "cuts"),
    [
        ("SS", (2, 4, 8)),
        ("SS", (9,)),
        ("PM-RNN", (5, 6)),
        ("PM-RNN", (1,)),
        ("RAPO", "random"),
        ("PM-RNN", "random"),
    ],
)
def test_a_run_that_was_cut_ends_as_if_it_was_not(tmp_path, method, cuts, config):
    """Before the first checkpoint, at one, between two; once and several times."""
    made = config(method)
    cuts = sorted(random.sample(range(1, 10), 2)) if cuts == "random" else cuts
    print("cut after rollouts", cuts)  # for the report of a failure
    train(made, tmp_path / "whole")
    for i, cut in enumerate(cuts):
        train_until(cut, made, tmp_path / "cut", resume=i > 0)
    summary = train(made, tmp_path / "cut", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "cut")
    assert summary["steps"] == 2560


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("method", ["DR", "PM-RNN", "PM-ST"])
def test_a_run_whose_costs_outlast_a_rollout_goes_on_too(tmp_path, method, config):
    """Rollouts of 64 steps, costs after 71 or 72: the first one has nothing to learn from."""
    made = config(method, 5)
    made = made.with_env(setting=made.setting.replace(delay=70))
    train(made, tmp_path / "whole")
    train_until(4, made, tmp_path / "cut")
    train(made, tmp_path / "cut", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "cut")
    progress = pd.read_csv(tmp_path / "whole" / "progress.csv")
    assert progress["kl"].isna().tolist() == [True, False, False, False, False]
    assert progress.drop(columns=["entropy", "kl", "clipped", "value_loss"]).notna().all(axis=None)


@pytest.mark.usefixtures("often")
def test_a_cut_loses_only_what_came_after_the_last_checkpoint(tmp_path, config):
    made, seen = config("SS"), []
    train_until(8, made, tmp_path)
    kept = load_run(tmp_path)
    assert kept.updates == 6 and not kept.finished
    assert len(pd.read_csv(tmp_path / "progress.csv")) == 6
    assert not (tmp_path / "summary.json").exists()
    train(made, tmp_path, resume=True, report=lambda steps, _: seen.append(steps // 256))
    assert seen == [7, 8, 9, 10]


@pytest.mark.usefixtures("often")
def test_a_cut_between_log_and_checkpoint_logs_nothing_twice(tmp_path, monkeypatch, config):
    made, save = config("SS"), train_module._save
    train(made, tmp_path / "whole")

    def dies(out, saved, learner):
        if learner.updates == 6:
            raise CutError
        save(out, saved, learner)

    monkeypatch.setattr(train_module, "_save", dies)
    with pytest.raises(CutError):
        train(made, tmp_path / "cut")
    monkeypatch.setattr(train_module, "_save", save)
    assert len(pd.read_csv(tmp_path / "cut" / "progress.csv")) == 6
    assert load_run(tmp_path / "cut").updates == 3
    train(made, tmp_path / "cut", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "cut")


def test_a_finished_run_goes_on_to_more_steps_as_if_it_had_been_asked_for_them(tmp_path, config):
    train(config("PM-RNN", 4), tmp_path / "longer")
    train(config("PM-RNN", 4), tmp_path / "longer", resume=True)  # nothing left to do
    train(config("PM-RNN", 7), tmp_path / "longer", resume=True)
    train(config("PM-RNN", 7), tmp_path / "whole")
    assert_same(tmp_path / "whole", tmp_path / "longer")
    assert load_run(tmp_path / "longer").config.steps == 7 * 256


SCRIPT = """
import json, signal, sys, time
from pathlib import Path
from rapo.agents import train
from rapo.agents.run_config import RunConfig, graph_run
train.SAVE_EVERY = 2
made = RunConfig.from_dict(json.loads(sys.argv[1]))

def report(steps, told):  # it waits to be killed half way, if it was not before
    time.sleep(0.1) if steps < made.steps // 2 else signal.pause()

train.train(made, Path(sys.argv[2]), report=report)
"""


@pytest.mark.parametrize("method", ["RAPO", "PM-RNN"])
def test_a_killed_process_is_resumed_to_the_same_weights(tmp_path, method, config):
    made = config(method, 20)
    out = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, json.dumps(made.to_dict()), str(out)])
    try:
        until((out / "weights.safetensors").exists, lambda: process.poll() is None)
        with pytest.raises(ValueError, match="in use by a training run"):
            train(made, out, resume=True)
        time.sleep(random.uniform(0, 0.8))
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL  # it was still at work
    assert not load_run(out).finished
    train(made, out, resume=True)
    train(made, tmp_path / "whole")
    assert_same(tmp_path / "whole", out)


def test_a_folder_in_use_is_refused_until_it_is_free(tmp_path, config):
    made = config("GE", 1)
    with (tmp_path / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="in use by another program"):
            train(made, tmp_path)
        assert not (tmp_path / "run.toml").exists()
    train(made, tmp_path)


def test_a_file_is_no_folder_for_a_run(tmp_path, config):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="taken is a file"):
        train(config(), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_earlier_run_is_not_overwritten(tmp_path, config):
    train(config("GE", 1), tmp_path)
    before = (tmp_path / "weights.safetensors").read_bytes()
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        train(config("GE", 1), tmp_path)
    assert (tmp_path / "weights.safetensors").read_bytes() == before


def test_a_run_cut_before_its_first_checkpoint_is_not_started_over_silently(tmp_path, config):
    train_until(1, config("GE"), tmp_path)
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        train(config("GE"), tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"method": "DR"}, "method 'SS' -> 'DR'"),
        ({"seed": 7}, "seed 0 -> 7"),
        ({"setting": {"budget": 0.5}}, "env_kwargs.setting.budget 0.85 -> 0.5"),
        ({"ppo": {"hidden": 8}}, "ppo.hidden 16 -> 8"),
        ({"params": {"eta": 0.1}}, "env_kwargs.params.eta 0.05 -> 0.1"),
        (
            {"nodes": 60, "regions": "node"},
            "env_kwargs.nodes 50 -> 60, env_kwargs.regions None -> 'node'",
        ),
    ],
)
def test_resume_with_another_config_names_the_difference(trained_ss, changes, told, config):
    changes = dict(changes)
    made = config(updates=2)
    for part in {"setting", "params"} & set(changes):
        made = made.with_env(**{part: replace(getattr(made, part), **changes.pop(part))})
    if "ppo" in changes:
        changes["ppo"] = replace(made.ppo, **changes["ppo"])
    on_graph = {name: changes.pop(name) for name in ("nodes", "regions") if name in changes}
    made = made.with_env(**on_graph)
    before = {path: path.read_bytes() for path in trained_ss.iterdir()}
    with pytest.raises(ValueError, match="run of another config") as caught:
        train(replace(made, **changes), trained_ss, resume=True)
    assert str(caught.value).endswith(f"they differ in {told}")
    assert {path: path.read_bytes() for path in trained_ss.iterdir()} == before


def test_resume_with_fewer_steps_is_refused(trained_ss, config):
    with pytest.raises(ValueError, match="trained for 512 steps, which cannot become 256"):
        train(config(updates=1), trained_ss, resume=True)


def test_budgets_are_judged_and_a_cap_is_reported(tmp_path, config):
    usual = config("SS")
    ppo, verdicts = replace(usual.ppo, dual_lr=5, dual_cap=4), {}
    for budget in (0.001, 5.0):
        made = config("SS", ppo=ppo, setting=usual.setting.replace(budget=budget))
        verdicts[budget] = train(made, tmp_path / str(budget))["budgets"]["harm"]
        assert verdicts[budget]["budget"] == budget
    assert not verdicts[0.001]["met"] and verdicts[0.001]["cost"] > 0.1
    assert verdicts[0.001]["dual_at_cap"] and verdicts[0.001]["dual"] == 4
    assert verdicts[5.0]["met"]
    assert not verdicts[5.0]["dual_at_cap"] and verdicts[5.0]["dual"] == 0


def test_the_unit_of_costs_is_what_the_aggressive_action_pays(config):
    made = config("SS")
    run = resolve(made)
    unit = run.references()["cost"]
    env = run.environment(64, autoreset_mode="SameStep")
    env.reset(seed=0)
    total = np.zeros(64)
    steps = sum(made.setting.horizons)
    for _ in range(steps):
        total += env.step(np.zeros(64, int))[4]["cost"]
    assert total.mean() / steps / unit == pytest.approx(1, abs=0.1)
    (constraint,) = run.constraints()
    assert constraint.reference == unit and constraint.scale == pytest.approx(1 / unit)


@pytest.mark.parametrize(
    ("method", "told"),
    [("off@rep", "evaluation of a trained RAPO"), ("Shield-UM", "is tuned, not trained")],
)
def test_what_is_not_trained_says_so(tmp_path, method, told, config):
    with pytest.raises(ValueError, match=told):
        train(config(method), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_shield_keeps_its_threshold_when_it_goes_on(tmp_path, config):
    made = config("Shield", threshold=0.3)
    train(made, tmp_path)
    train(replace(made, steps=made.steps + 1), tmp_path, resume=True)
    assert load_agent(tmp_path)[0].threshold == 0.3
    with pytest.raises(ValueError, match=r"threshold 0\.3 -> 0\.4"):
        train(replace(made, steps=made.steps + 1, threshold=0.4), tmp_path, resume=True)


def test_what_is_wrong_with_a_config_leaves_no_folder(tmp_path, config):
    for wrong in ({"regions": "foo"}, {"nodes": None, "graph": str(tmp_path / "nofile.npz")}):
        with pytest.raises((ValueError, OSError)):
            train(config("GE", **wrong), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_lost_log_is_named_instead_of_half_written(tmp_path, config):
    made = config("GE")
    train(made, tmp_path)
    (tmp_path / "progress.csv").unlink()
    with pytest.raises(ValueError, match=r"progress\.csv lacks some"):
        train(replace(made, steps=2 * made.steps), tmp_path, resume=True)
