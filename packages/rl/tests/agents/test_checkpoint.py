"""Checkpoints: a kill leaves a whole one, and what is damaged or of something else is refused."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from rapo.agents import checkpoint as checkpoint_module
from rapo.agents.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from rapo.agents.resolve import resolve
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.graphs.generate import generate


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
def test_what_is_no_checkpoint_is_refused(tmp_path, trained_ss, spoil, told, config):
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


def test_a_graph_that_has_changed_is_noticed(tmp_path, config):
    """The file that the config names holds another graph now."""
    file = tmp_path / "graph.npz"
    short = config().setting
    generate(50, 3, short).save(file)
    made = config("GE", 1, nodes=None, graph=str(file))
    train(made, tmp_path / "run")
    load_agent(tmp_path / "run" / "checkpoint.pt")
    old = resolve(made).graph_hash
    file.unlink()
    generate(50, 4, short).save(file)
    with pytest.raises(ValueError, match=f"was trained on graph {old}, but its config now gives"):
        load_agent(tmp_path / "run" / "checkpoint.pt")
    with pytest.raises(ValueError, match=f"was trained on graph {old}, this is"):
        train(config("GE", 2, nodes=None, graph=str(file)), tmp_path / "run", resume=True)


def test_weights_of_other_networks_are_refused(tmp_path, trained_ss):
    content = load_checkpoint(trained_ss / "checkpoint.pt")
    content["model"]["hidden"] = 8
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match=r"holds \d+ weights, its networks need \d+"):
        load_agent(tmp_path / "checkpoint.pt")


def test_diverging_training_is_an_error_and_its_weights_are_refused(tmp_path, config):
    wild = config("GE", ppo=replace(config().ppo, lr=1e30))
    with pytest.raises(ValueError, match=r"training diverged after .* steps: .*lower lr"):
        train(wild, tmp_path / "wild")
    train(config("GE"), tmp_path / "tame")
    content = torch.load(tmp_path / "tame" / "checkpoint.pt", weights_only=True)
    content["learner"]["weights"][0] = float("nan")
    torch.save(content, tmp_path / "nan.pt")
    with pytest.raises(ValueError, match="weights are not finite"):
        load_agent(tmp_path / "nan.pt")


@pytest.mark.parametrize("part", ["config", "learner", "model", "graph_hash"])
def test_a_checkpoint_without_a_part_is_damaged(tmp_path, part, config):
    train(config("GE"), tmp_path)
    content = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    del content[part]
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match=f"damaged: it lacks {part}"):
        load_agent(tmp_path / "checkpoint.pt")


def test_a_checkpoint_of_other_numbers_is_named(tmp_path, config):
    train(config("GE"), tmp_path)
    content = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    content["config"]["ppo"]["warmth"] = 3
    torch.save(content, tmp_path / "checkpoint.pt")
    with pytest.raises(ValueError, match="warmth"):
        load_agent(tmp_path / "checkpoint.pt")
