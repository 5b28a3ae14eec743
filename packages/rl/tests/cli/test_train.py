"""The words of `rapo train --env`."""

import json
import sys

import pytest

from rapo import cli
from rapo.agents import load_agent
from rapo.agents.resolve import resolve
from rapo.agents.saved_run import load_run

ENV = "foreign_envs:test/Ladder-v0"
SMALL = ["--set", "rollout=64", "--set", "minibatch=32", "--set", "epochs=1", "--set", "hidden=8"]
PAID = ["--cost", "info:toll", "--budget", "3"]


def rapo(monkeypatch, *words):
    """Exit code of the command, run here."""
    monkeypatch.setattr(sys, "argv", ["rapo", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code or 0


def test_a_run_with_a_budget_says_whether_it_was_met_and_goes_on(monkeypatch, tmp_path, capsys):
    words = ["train", "SS", "--env", ENV, *PAID, *SMALL, "--env-kwargs", '{"unit": 2}',
             "--out", tmp_path / "run"]  # fmt: skip
    assert rapo(monkeypatch, *words, "--steps", 128) == 0
    assert "NOT met" in capsys.readouterr().out
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["steps"] == 128 and summary["budgets"]["toll"]["cost"] > 3.3
    _, config = load_agent(tmp_path / "run")
    assert (config.env, config.env_kwargs, config.ppo.rollout) == (ENV, {"unit": 2}, 64)
    assert rapo(monkeypatch, *words, "--steps", 256) == 2
    assert rapo(monkeypatch, *words, "--steps", 256, "--resume") == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 256


@pytest.mark.parametrize("method", ["GE", "RAPO"])
def test_a_method_of_the_paper_is_trained_on_a_platform(monkeypatch, tmp_path, method):
    kwargs = json.dumps({"data": "stand-in", "horizons": [40, 10, 40]})
    words = ["train", method, "--env", "rapo/Routing-v0", "--env-kwargs", kwargs,
             "--platform-seed", 1001, "--set", "minibatch=32", *SMALL, "--set", "envs=4",
             "--steps", 128,             "--out", tmp_path / "run"]  # fmt: skip
    assert rapo(monkeypatch, *words) == 0
    _, config = load_agent(tmp_path / "run")
    assert config.env_kwargs["seed"] == 1001
    assert resolve(config).observe == ("x" if method == "GE" else "xsummary")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert set(summary["budgets"]) == (set() if method == "GE" else {"trace", "scar"})
    assert rapo(monkeypatch, *words) == 2  # never overwritten


def test_several_seeds_have_a_folder_each(monkeypatch, tmp_path):
    words = ["train", "GE", "--env", ENV, *SMALL, "--seed", "0,3", "--steps", 64, "--jobs", 1]
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))  # runs are processes of their own
    assert rapo(monkeypatch, *words, "--out", tmp_path) == 0
    for seed in (0, 3):
        config = load_run(tmp_path / f"s{seed}").config
        assert config.seed == seed and config.method == "GE"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["SS", "--env", "CartPol-v1", *PAID], "CartPole"),
        (["SS", "--env", ENV, "--cost", "info:fuel", "--budget", "3"], "there is rung, toll"),
        (["SS", "--env", ENV, "--cost", "math:exp", "--budget", "3"], "the cost fails"),
        (["SS", "--env", ENV, "--cost", "info:toll"], "needs a budget"),
        (["SS", "--env", "Pendulum-v1", *PAID], "discrete"),
        (["RAPO", "--env", ENV], "RAPO needs the graph environment"),
        (["DR", "--env", ENV, *PAID], "DR needs a delay"),
        (["DR", "--env", "rapo/Routing-v0", "--delay", "5"], "knows the delay"),
        (["Shield", "--env", "rapo/Routing-v0"], "Shield is not trained on a platform"),
        (["RAPO", "--env", "rapo/Routing-v0", "--env-kwargs", '{"roads": 3}'], "roads"),
        (["GE", "--env", ENV, *PAID], "GE pays nothing"),
        (["SS", "--env", ENV, *PAID, "--env-kwargs", "[1]"], "JSON object"),
        (["SS", "--env", ENV, *PAID, "--env-kwargs", "{"], "must be JSON"),
        (["SS", "--env", ENV, *PAID, "--nodes", "50"], "--nodes"),
        (["SS", "--env", ENV, *PAID, "--set", "w_H=4"], "--set needs NAME=VALUE"),
        (["SS", "--env", ENV, *PAID, "--steps", "few"], "steps must be"),
        (["SS", *PAID], "--cost needs --env"),
        (["DR", "--delay", "3"], "--delay needs --env"),
        (["RAPO", "--platform-seed", "3"], "--platform-seed needs --env"),
    ],
)
def test_bad_words_end_with_one_line_and_leave_nothing(monkeypatch, tmp_path, capsys, words, named):
    out = tmp_path / "run"
    assert rapo(monkeypatch, "train", *words, "--out", out) == 2
    said = capsys.readouterr().err.strip()
    assert named in said and len(said.splitlines()) == 1
    assert not out.exists()


def test_the_diagnostic_says_why_it_cannot_run_on_it(monkeypatch, tmp_path, capsys):
    words = ["train", "GE", "--env", ENV, *SMALL, "--steps", 64, "--out", tmp_path / "run"]
    assert rapo(monkeypatch, *words) == 0
    assert rapo(monkeypatch, "rsd", tmp_path / "run") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
