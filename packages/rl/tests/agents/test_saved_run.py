"""The folder of a run: it comes back as it was saved, and what is damaged is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rapo.agents import saved_run
from rapo.agents.resolve import resolve
from rapo.agents.saved_run import CARD, RESUME, WEIGHTS, load_agent, load_run, load_state
from rapo.agents.train import train
from rapo.graphs.generate import generate


def half(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def other_format(path):
    save_file(load_file(path), path, {"format": "99"})


def without_sizes(path):
    save_file(load_file(path), path, {"format": saved_run.FORMAT})


@pytest.fixture
def copied(trained_ss, tmp_path):
    """A copy of a run, to be spoilt."""
    for file in trained_ss.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    load_agent(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text("no weights"), "is damaged"),
        (half, "is damaged"),
        (other_format, "has format 99, this rapo"),
        (without_sizes, "damaged: it lacks model"),
        (lambda path: path.unlink(), "was cut before it was first saved"),
    ],
)
def test_what_are_no_weights_is_refused_and_the_training_goes_on_without_them(
    copied, spoil, message, config
):
    spoil(copied / WEIGHTS)
    with pytest.raises(ValueError, match=message):
        load_agent(copied)
    train(config(updates=3), copied, resume=True)
    assert load_run(copied).updates == 3


def test_a_damaged_state_is_not_gone_on_with(copied, config):
    half(copied / RESUME)
    with pytest.raises(ValueError, match=r"resume\.npz is damaged"):
        train(config(updates=3), copied, resume=True)


def test_nothing_in_the_folder_is_pickled(trained_ss):
    with np.load(trained_ss / RESUME, allow_pickle=False) as file:
        assert {"weights", "adam/exp_avg", "normaliser/mean", "env/seeds"} <= set(file)
    state, saved = load_state(trained_ss), load_run(trained_ss)
    networks = [saved.arrays[name].ravel() for name in sorted(saved.arrays) if "." in name]
    assert sum(part.size for part in networks) == state["weights"].size + 1 + 2 * 5


@pytest.mark.parametrize("name", ["checkpoint.pt", ""])
def test_a_run_of_version_0_2_is_named_with_what_to_do(tmp_path, name):
    (tmp_path / "checkpoint.pt").write_bytes(b"of torch")
    with pytest.raises(ValueError, match=r"of rapo 0\.2.*rapo train METHOD --out RUN"):
        load_run(tmp_path / name)


def test_what_is_no_run_is_named(trained_ss, tmp_path):
    with pytest.raises(ValueError, match="there is no run at"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="name the folder of the run"):
        load_run(trained_ss / WEIGHTS)


def test_a_write_that_fails_leaves_the_old_weights(copied, monkeypatch):
    before = (copied / WEIGHTS).read_bytes()

    def full(arrays, path, about):
        path.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(saved_run, "save_file", full)
    with pytest.raises(OSError, match="no space"):
        load_run(copied).save(copied)
    assert (copied / WEIGHTS).read_bytes() == before
    assert not [file for file in copied.iterdir() if ".part" in file.name]


def test_a_graph_that_has_changed_is_noticed(tmp_path, config):
    """The file that the config names holds another graph now."""
    file = tmp_path / "graph.npz"
    short = config().setting
    generate(50, 3, short).save(file)
    made = config("GE", 1, nodes=None, graph=str(file))
    train(made, tmp_path / "run")
    load_agent(tmp_path / "run")
    old = resolve(made).graph_hash
    file.unlink()
    generate(50, 4, short).save(file)
    with pytest.raises(ValueError, match=f"was trained on graph {old}, but its config now gives"):
        load_agent(tmp_path / "run")
    with pytest.raises(ValueError, match=f"is of graph {old}"):
        train(config("GE", 2, nodes=None, graph=str(file)), tmp_path / "run", resume=True)
    file.unlink()
    with pytest.raises(ValueError, match="which does not exist any more"):
        load_agent(tmp_path / "run")


def test_weights_of_other_networks_are_refused(trained_ss):
    saved = load_run(trained_ss)
    other = replace(saved, model={**saved.model, "hidden": 8})
    with pytest.raises(ValueError, match=r"have shape .*, the networks need"):
        other.agent()


def test_diverging_training_is_an_error_and_its_weights_are_refused(tmp_path, trained_ss, config):
    wild = config("GE", ppo=replace(config().ppo, lr=1e30))
    with pytest.raises(ValueError, match=r"training diverged after .* steps: .*lower lr"):
        train(wild, tmp_path / "wild")
    saved = load_run(trained_ss)
    broken = np.full_like(saved.arrays["policy.0"], np.nan)
    with pytest.raises(ValueError, match="weights are not finite"):
        replace(saved, arrays={**saved.arrays, "policy.0": broken}).agent()


def test_numbers_of_another_version_are_named(copied):
    path = copied / "run.toml"
    path.write_text(path.read_text().replace("[ppo]\n", "[ppo]\nwarmth = 3\n"))
    with pytest.raises(ValueError, match="warmth"):
        load_agent(copied)


def test_the_model_card_says_what_was_trained_and_whether_the_budget_was_met(trained_ss):
    card = (trained_ss / CARD).read_text()
    summary = json.loads((trained_ss / "summary.json").read_text())
    verdict = "met" if summary["budgets"]["harm"]["met"] else "not met"
    assert "SS" in card and load_run(trained_ss).graph_hash in card and f": {verdict}" in card
