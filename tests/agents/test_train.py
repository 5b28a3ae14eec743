"""Training runs: what they leave, how they go on after a cut, and what they refuse."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import rapo
from rapo.agents import checkpoint as checkpoint_module
from rapo.agents import train as train_module
from rapo.agents.agent import Agent, load_agent
from rapo.agents.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from rapo.agents.config import PPOConfig
from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.agents.shield import Shield
from rapo.agents.train import train
from rapo.agents.train_config import TrainConfig
from rapo.cascade.generate import generate
from rapo.cascade.setting import Setting

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10, budget=0.85)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=2, hidden=16)


def config(method="SS", updates=10, **changes):
    options = {"nodes": 50, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return TrainConfig(method=method, **options)


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
    first, second = (load_checkpoint(out / "checkpoint.pt") for out in (one, two))
    assert first["finished"] and second["finished"]
    assert (one / "progress.csv").read_bytes() == (two / "progress.csv").read_bytes()
    assert_equal(first["learner"], second["learner"])


def assert_equal(one, two, name="learner"):
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_equal(one[key], two[key], f"{name}.{key}")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, two), name
    else:
        assert one == two, name


def test_a_run_leaves_checkpoint_progress_summary_and_config(tmp_path):
    made, told = config("RAPO"), []
    out = tmp_path / "deep" / "run"
    summary = train(made, out, report=lambda steps, means: told.append((steps, means)))
    content = load_checkpoint(out / "checkpoint.pt")
    assert content["finished"] and content["method"] == "RAPO"
    assert content["graph_hash"] == made.network.hash
    assert content["learner"]["updates"] == 10
    progress = pd.read_csv(out / "progress.csv")
    assert progress["steps"].tolist() == [256 * (1 + i) for i in range(10)]
    assert [steps for steps, _ in told] == progress["steps"].tolist()
    for name in ("reward", "entropy", "kl", "cost_trace", "cost_scar", "dual_trace", "dual_scar"):
        assert progress[name].to_numpy() == pytest.approx([m[name] for _, m in told], rel=1e-4)
    assert np.isfinite(progress.to_numpy()).all()
    assert json.loads((out / "summary.json").read_text()) == summary
    assert summary["steps"] == 2560 and set(summary["budgets"]) == {"trace", "scar"}
    assert json.loads((out / "config.json").read_text())["method"] == "RAPO"
    assert TrainConfig.from_dict(content["config"]) == made


def test_steps_are_rounded_up_to_whole_rollouts(tmp_path):
    made = config("GE", steps=257)
    assert made.updates == 2
    assert train(made, tmp_path)["steps"] == 512


def test_other_seeds_and_graphs_give_other_weights(tmp_path):
    runs = [config("GE", 2), config("GE", 2, seed=1), config("GE", 2, graph_seed=1)]
    weights = []
    for i, made in enumerate(runs):
        train(made, tmp_path / str(i))
        weights.append(load_checkpoint(tmp_path / str(i) / "checkpoint.pt")["learner"]["weights"])
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


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
def test_a_run_that_was_cut_ends_as_if_it_was_not(tmp_path, method, cuts):
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
def test_a_cut_loses_only_what_came_after_the_last_checkpoint(tmp_path):
    made, seen = config("SS"), []
    train_until(8, made, tmp_path)
    kept = load_checkpoint(tmp_path / "checkpoint.pt")
    assert kept["learner"]["updates"] == 6 and not kept["finished"]
    assert len(pd.read_csv(tmp_path / "progress.csv")) == 6
    assert not (tmp_path / "summary.json").exists()
    train(made, tmp_path, resume=True, report=lambda steps, _: seen.append(steps // 256))
    assert seen == [7, 8, 9, 10]


@pytest.mark.usefixtures("often")
def test_a_cut_between_log_and_checkpoint_logs_nothing_twice(tmp_path, monkeypatch):
    made, save = config("SS"), train_module._save
    train(made, tmp_path / "whole")

    def dies(out, made, learner, *others, **options):
        if learner.updates == 6:
            raise CutError
        save(out, made, learner, *others, **options)

    monkeypatch.setattr(train_module, "_save", dies)
    with pytest.raises(CutError):
        train(made, tmp_path / "cut")
    monkeypatch.setattr(train_module, "_save", save)
    assert len(pd.read_csv(tmp_path / "cut" / "progress.csv")) == 6
    assert load_checkpoint(tmp_path / "cut" / "checkpoint.pt")["learner"]["updates"] == 3
    train(made, tmp_path / "cut", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "cut")


def test_a_finished_run_goes_on_to_more_steps_as_if_it_had_been_asked_for_them(tmp_path):
    train(config("PM-RNN", 4), tmp_path / "longer")
    train(config("PM-RNN", 4), tmp_path / "longer", resume=True)  # nothing left to do
    train(config("PM-RNN", 7), tmp_path / "longer", resume=True)
    train(config("PM-RNN", 7), tmp_path / "whole")
    assert_same(tmp_path / "whole", tmp_path / "longer")
    assert json.loads((tmp_path / "longer" / "config.json").read_text())["steps"] == 7 * 256


SCRIPT = """
import json, sys, time
from pathlib import Path
from rapo.agents import train
from rapo.agents.train_config import TrainConfig
train.SAVE_EVERY = 2
made = TrainConfig.from_dict(json.loads(sys.argv[1]))
train.train(made, Path(sys.argv[2]), report=lambda steps, told: time.sleep(0.1))
"""


@pytest.mark.parametrize("method", ["RAPO", "PM-RNN"])
def test_a_killed_process_is_resumed_to_the_same_weights(tmp_path, method):
    made = config(method, 20)
    out = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, json.dumps(made.to_dict()), str(out)])
    try:
        patience = time.monotonic() + 120
        while not (out / "checkpoint.pt").exists():
            assert process.poll() is None and time.monotonic() < patience
            time.sleep(0.005)
        with pytest.raises(ValueError, match="in use by another training run"):
            train(made, out, resume=True)
        time.sleep(random.uniform(0, 0.8))
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL  # it was still at work
    assert not load_checkpoint(out / "checkpoint.pt")["finished"]
    train(made, out, resume=True)
    train(made, tmp_path / "whole")
    assert_same(tmp_path / "whole", out)


def test_a_folder_in_use_is_refused_until_it_is_free(tmp_path):
    made = config("GE", 1)
    with (tmp_path / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="in use by another training run"):
            train(made, tmp_path)
        assert not (tmp_path / "config.json").exists()
    train(made, tmp_path)


def test_a_file_is_no_folder_for_a_run(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="taken is a file"):
        train(config(), tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_earlier_run_is_not_overwritten(tmp_path):
    train(config("GE", 1), tmp_path)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        train(config("GE", 1), tmp_path)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


def test_a_run_cut_before_its_first_checkpoint_is_not_started_over_silently(tmp_path):
    train_until(1, config("GE"), tmp_path)
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        train(config("GE"), tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"method": "DR"}, "method 'SS' -> 'DR'"),
        ({"seed": 7}, "seed 0 -> 7"),
        ({"setting": SHORT.replace(budget=0.5)}, "setting.budget 0.85 -> 0.5"),
        ({"ppo": PPOConfig(envs=4, rollout=256, minibatch=64, epochs=2, hidden=8)},
         "ppo.hidden 16 -> 8"),
        ({"params": rapo.FieldParams(eta=0.1)}, "params.eta 0.05 -> 0.1"),
        ({"nodes": 60, "regions": "node"}, "nodes 50 -> 60, regions None -> 'node'"),
    ],
)  # fmt: skip
def test_resume_with_another_config_names_the_difference(trained_ss, changes, told):
    before = {path: path.read_bytes() for path in trained_ss.iterdir()}
    with pytest.raises(ValueError, match="run of another config") as caught:
        train(config(**{"updates": 2, **changes}), trained_ss, resume=True)
    assert str(caught.value).endswith(f"they differ in {told}")
    assert {path: path.read_bytes() for path in trained_ss.iterdir()} == before


def test_resume_with_fewer_steps_is_refused(trained_ss):
    with pytest.raises(ValueError, match="trained for 512 steps, which cannot become 256"):
        train(config(updates=1), trained_ss, resume=True)


@pytest.fixture(scope="module")
def trained_ss(tmp_path_factory):
    out = tmp_path_factory.mktemp("ss")
    train(config(updates=2), out)
    return out


def write_text(path, content):
    path.write_text("not a checkpoint")


def write_half(path, content):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def write_format(path, content):
    torch.save({**content, "format": FORMAT + 1}, path)


def write_list(path, content):
    torch.save([1, 2, 3], path)


def write_code(path, content):
    torch.save({"format": FORMAT, "run": os.system}, path)


def remove(path, content):
    path.unlink()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (write_text, "is damaged, or not a checkpoint of rapo"),
        (write_half, "is damaged, or not a checkpoint of rapo"),
        (write_code, "is damaged, or not a checkpoint of rapo"),
        (write_list, "is not a checkpoint of rapo$"),
        (write_format, f"has checkpoint format {FORMAT + 1}.*reads format {FORMAT}"),
        (remove, "there is no checkpoint at"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path, trained_ss, spoil, told):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes((trained_ss / "checkpoint.pt").read_bytes())
    load_agent(path)
    spoil(path, load_checkpoint(path))
    with pytest.raises(ValueError, match=told):
        load_agent(path)
    if path.exists():
        with pytest.raises(ValueError, match=told):
            train(config(updates=2), tmp_path, resume=True)


def test_a_write_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    rest = dict.fromkeys(("method", "config", "graph_hash", "model"), "")
    save_checkpoint(path, {**rest, "learner": np.arange(3)})

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint_module.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, {**rest, "learner": np.arange(1000)})
    assert load_checkpoint(path)["learner"].tolist() == [0, 1, 2]


def test_a_graph_that_has_changed_is_noticed(tmp_path):
    """The file that the config names holds another graph now."""
    file = tmp_path / "graph.npz"
    generate(50, 3, SHORT).save(file)
    made = config("GE", 1, graph=str(file))
    train(made, tmp_path / "run")
    load_agent(tmp_path / "run" / "checkpoint.pt")
    old = made.network.hash
    file.unlink()
    generate(50, 4, SHORT).save(file)
    with pytest.raises(ValueError, match=f"was trained on graph {old}, but its config now gives"):
        load_agent(tmp_path / "run" / "checkpoint.pt")
    with pytest.raises(ValueError, match=f"was trained on graph {old}, this is"):
        train(config("GE", 2, graph=str(file)), tmp_path / "run", resume=True)


def test_weights_of_other_networks_are_refused(tmp_path, trained_ss):
    content = load_checkpoint(trained_ss / "checkpoint.pt")
    content["model"]["hidden"] = 8
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match=r"holds \d+ weights, its networks need \d+"):
        load_agent(tmp_path / "checkpoint.pt")


def test_budgets_are_judged_and_a_cap_is_reported(tmp_path):
    ppo = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=2, hidden=16, dual_lr=5, dual_cap=4)
    verdicts = {}
    for budget in (0.001, 5.0):
        made = config("SS", ppo=ppo, setting=SHORT.replace(budget=budget))
        verdicts[budget] = train(made, tmp_path / str(budget))["budgets"]["harm"]
        assert verdicts[budget]["budget"] == budget
    assert not verdicts[0.001]["met"] and verdicts[0.001]["cost"] > 0.1
    assert verdicts[0.001]["dual_at_cap"] and verdicts[0.001]["dual"] == 4
    assert verdicts[5.0]["met"]
    assert not verdicts[5.0]["dual_at_cap"] and verdicts[5.0]["dual"] == 0


def test_the_unit_of_costs_is_what_the_aggressive_action_pays():
    made = config("SS")
    unit = made.references()["cost"]
    env = made.environment(64, autoreset_mode="SameStep")
    env.reset(seed=0)
    total = np.zeros(64)
    for _ in range(sum(SHORT.horizons)):
        total += env.step(np.zeros(64, int))[4]["cost"]
    assert total.mean() / sum(SHORT.horizons) / unit == pytest.approx(1, abs=0.1)
    (constraint,) = made.constraints()
    assert constraint.reference == unit and constraint.scale == pytest.approx(1 / unit)


@pytest.mark.parametrize(
    ("method", "told"),
    [("off@rep", "evaluation of a trained RAPO"), ("Shield-UM", "is tuned, not trained")],
)
def test_what_is_not_trained_says_so(tmp_path, method, told):
    with pytest.raises(ValueError, match=told):
        train(config(method), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["RAPO", "PM-RNN"])
def test_a_loaded_agent_has_the_law_of_the_learner(tmp_path, monkeypatch, method):
    learners, build = [], train_module._learner
    monkeypatch.setattr(
        train_module, "_learner", lambda made: learners.append(build(made)) or learners[-1]
    )
    train(config(method), tmp_path)
    (learner,) = learners
    agent, made = load_agent(tmp_path / "checkpoint.pt")
    assert made == config(method)
    theirs = Agent(learner.model, learner.normaliser)
    env = made.environment(5)
    x, _ = env.reset(seed=9)
    for t in range(30):
        law = agent.law(x)
        assert np.array_equal(law, theirs.law(x))
        assert law.shape == (5, 3) and np.allclose(law.sum(axis=1), 1)
        x = env.step(np.full(5, t % 3))[0]
    assert np.ptp(law) > 1e-4  # a uniform law would say nothing


def test_a_recurrent_agents_law_depends_on_history_until_it_is_reset(trained_rnn):
    agent, _ = load_agent(trained_rnn / "checkpoint.pt")
    x = np.full((2, 5), 0.4, np.float32)
    agent.reset(2)
    first = agent.law(x)
    second = agent.law(x)
    assert np.abs(first - second).max() > 1e-6
    agent.reset(2)
    assert np.array_equal(agent.law(x), first)
    assert np.array_equal(agent.law(x), second)
    agent.law(np.zeros((2, 5), np.float32))
    agent.reset(2)
    agent.law(x + [[0.0], [0.3]])  # another past of the second episode
    law = agent.law(x)
    assert np.allclose(law[0], second[0], atol=1e-6)
    assert np.abs(law[1] - second[1]).max() > 1e-6


def test_an_agent_without_memory_does_not_look_back(trained_ss):
    agent, _ = load_agent(trained_ss / "checkpoint.pt")
    x = np.random.default_rng(0).random((4, 5)).astype(np.float32)
    first = agent.law(x)
    agent.law(1 - x)
    assert np.array_equal(agent.law(x), first)


def test_observations_of_another_size_are_refused(trained_ss):
    agent, _ = load_agent(trained_ss / "checkpoint.pt")
    with pytest.raises(ValueError, match=r"observations of 5 entries, got shape \(2, 6\)"):
        agent.law(np.zeros((2, 6)))


@pytest.fixture(scope="module")
def trained_rnn(tmp_path_factory):
    out = tmp_path_factory.mktemp("rnn")
    train(config("PM-RNN", 10), out)
    return out


def coupled(method, out):
    train(config(method, 4), out)
    agent, made = load_agent(out / "checkpoint.pt")
    return agent, rapo.rsd.evaluate(made.evaluation(), agent, episodes=3, coupled=True).frame


RATIOS = ["RAG", "AUC_R", "SM_R"]


@pytest.mark.parametrize("method", ["GE", "SS", "DR", "PM-RNN", "Shield"])
def test_under_p0_a_policy_of_x_alone_replays_exposure_exactly(tmp_path, method):
    agent, frame = coupled(method, tmp_path)
    assert isinstance(agent, Shield if method == "Shield" else Agent)
    assert frame[RATIOS].to_numpy() == pytest.approx(np.ones((3, 3)), abs=1e-6)
    assert (frame["ASD"] == 0).all()
    assert frame["ReplayReturn"].to_numpy() == pytest.approx(frame["ExposureReturn"].to_numpy())


def test_under_the_deformed_kernel_a_coupled_replay_differs(tmp_path):
    """What makes the test above one that can fail."""
    _, frame = coupled("RAPO", tmp_path)
    assert (np.abs(frame[RATIOS].to_numpy() - 1) > 1e-3).any()


def test_the_fixed_shield_is_loaded_with_its_threshold_and_unit(tmp_path):
    made = config("Shield", 1)
    train(made, tmp_path)
    shield, _ = load_agent(tmp_path / "checkpoint.pt")
    assert isinstance(shield, Shield) and isinstance(shield.policy, Agent)
    assert shield.threshold == SHIELD_THRESHOLD
    assert shield.reference == made.references()["sensitive_mass"]


class Uniform:
    batched = True

    def __call__(self, x):
        raise AssertionError("its law is asked instead")

    def law(self, x):
        return np.full((len(x), 3), 1 / 3)


class Always:
    batched = True

    def __init__(self, action):
        self.action = action

    def __call__(self, x):
        return np.full(len(x), self.action)


def test_reward_alone_learns_at_least_what_fixed_policies_reach(tmp_path):
    """On held-out episodes; sampled, a policy that still explores a little is just below."""
    paying = SHORT.replace(rates=(0.7, 0.35, 0.15), kappa_s=0.5)  # serving more pays clearly
    ppo = PPOConfig(hidden=64, lr=1e-3)
    made = config("GE", nodes=60, setting=paying, ppo=ppo, steps=80_000)
    train(made, tmp_path)
    agent, _ = load_agent(tmp_path / "checkpoint.pt")

    def earned(policy, **options):
        frame = rapo.rsd.evaluate(
            made.evaluation(), policy, episodes=64, seed=5000, **options
        ).frame
        return (frame["ExposureReturn"] + frame["ReplayReturn"]).mean()

    learned, uniform = earned(agent), earned(Uniform())
    constant = [earned(Always(action)) for action in range(3)]
    assert learned > 1.1 * uniform
    second, best = sorted(constant)[1:]
    assert earned(agent, deterministic=True) >= 0.9999 * best
    assert learned > 0.97 * best
    assert learned > 1.05 * second  # which would not pass


def test_diverging_training_is_an_error_and_its_weights_are_refused(tmp_path):
    wild = config("GE", ppo=replace(TINY, lr=1e30))
    with pytest.raises(ValueError, match=r"training diverged after .* steps: .*lower lr"):
        train(wild, tmp_path / "wild")
    train(config("GE"), tmp_path / "tame")
    content = torch.load(tmp_path / "tame" / "checkpoint.pt", weights_only=True)
    content["learner"]["weights"][0] = float("nan")
    torch.save(content, tmp_path / "nan.pt")
    with pytest.raises(ValueError, match="weights are not finite"):
        load_agent(tmp_path / "nan.pt")


def test_a_shield_keeps_its_threshold_when_it_goes_on(tmp_path):
    made = config("Shield")
    train(made, tmp_path, threshold=0.3)
    train(replace(made, steps=made.steps + 1), tmp_path, resume=True)
    assert load_agent(tmp_path / "checkpoint.pt")[0].threshold == 0.3
    with pytest.raises(ValueError, match=r"threshold 0\.3, which cannot become 0\.4"):
        train(replace(made, steps=made.steps + 1), tmp_path, resume=True, threshold=0.4)


def test_what_is_wrong_with_a_config_leaves_no_folder(tmp_path):
    for wrong in ({"regions": "foo"}, {"graph": str(tmp_path / "nofile.npz")}):
        with pytest.raises((ValueError, OSError)):
            train(config("GE", **wrong), tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("part", ["config", "learner", "model", "graph_hash"])
def test_a_checkpoint_without_a_part_is_damaged(tmp_path, part):
    train(config("GE"), tmp_path)
    content = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    del content[part]
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match=f"damaged: it lacks {part}"):
        load_agent(tmp_path / "checkpoint.pt")


def test_a_checkpoint_of_other_numbers_is_named(tmp_path):
    train(config("GE"), tmp_path)
    content = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    content["config"]["ppo"]["warmth"] = 3
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match="warmth"):
        load_agent(tmp_path / "checkpoint.pt")


def test_a_lost_log_is_named_instead_of_half_written(tmp_path):
    made = config("GE")
    train(made, tmp_path)
    (tmp_path / "progress.csv").unlink()
    with pytest.raises(ValueError, match=r"progress\.csv lacks rollouts"):
        train(replace(made, steps=2 * made.steps), tmp_path, resume=True)
