"""Configs: what is fitted when, and regions of every kind."""

import json

import networkx
import numpy as np
import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig, graph_run
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.graphs.fit import fit
from rapo.graphs.generate import generate
from rapo.graphs.load import from_networkx

SMALL = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


def test_a_config_of_a_graph_of_ones_own_is_fitted_and_keeps_what_was_found(tmp_path):
    graph = from_networkx(networkx.karate_club_graph())
    path = graph.save(tmp_path / "karate.npz")
    config = graph_run(method="RAPO", graph=str(path), steps=512, ppo=SMALL)
    found = fit(graph)
    run = resolve(config)
    env = run.environment(1)
    np.testing.assert_array_equal(env.engine.regions, found.regions)
    assert env.engine.params == found.params == run.config.params
    again = RunConfig.from_dict(json.loads(json.dumps(run.config.to_dict())))
    assert again.env_kwargs["fit"] == found
    assert resolve(again).environment(1).fit == found
    train(config, tmp_path / "run")
    _, loaded = load_agent(tmp_path / "run")
    np.testing.assert_array_equal(resolve(loaded).evaluation().engine.regions, found.regions)
    slow = resolve(loaded).evaluation("slow-decay")
    assert (slow.engine.params.tau, slow.engine.params.delta < 1) == (found.params.tau, True)
    train(config, tmp_path / "run", resume=True)  # the same config, though it was fitted


def test_a_config_can_name_a_graph_that_is_not_there_yet():
    config = graph_run(method="GE", graph="nowhere.npz")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        resolve(config)


def test_regions_of_any_kind_are_saved_with_a_checkpoint(tmp_path):
    graph = generate(40, 0)
    ids = np.arange(40) % 7
    configs = [
        graph_run(method="RAPO", nodes=40, regions=regions, steps=512, ppo=SMALL)
        for regions in (ids, ids.tolist(), lambda g: np.arange(g.n) % 7)
    ]
    assert len(set(map(repr, configs))) == 1
    train(configs[0], tmp_path)
    _, loaded = load_agent(tmp_path)
    assert loaded == resolve(configs[0]).config
    np.testing.assert_array_equal(resolve(loaded).evaluation().engine.regions, ids)
    assert resolve(loaded).graph == graph
    with pytest.raises(ValueError, match="-1"):
        graph_run(method="RAPO", nodes=40, regions=lambda g: np.full(g.n, -1))
