"""Reports say what was fitted and where the memory is idle."""

import warnings

import networkx
import pytest

from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import IdleWarning, fit
from rapo.graphs.load import from_networkx
from rapo.rsd.runner import evaluate
from rapo.rsd.table import label, notes


@pytest.fixture(scope="module")
def graph():
    law = [[0.08 if a == b else 0.004 for b in range(3)] for a in range(3)]
    blocks = networkx.stochastic_block_model([100] * 3, law, seed=5)
    return from_networkx(blocks, sensitive="block=1", sensitive_part="largest")


@pytest.fixture(scope="module")
def found(graph):
    """Results with the default fit and without one."""
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdleWarning)
        for name, wanted in (("fitted", None), ("plain", False)):
            env = GraphDiffusionVectorEnv(1, graph=graph, fit=wanted)
            results[name] = evaluate(env, lambda x: 0, episodes=2, horizons=(60, 20, 60))
    return results


def test_fitted_odds_are_called_calibrated(found):
    assert "calibrated" in label("OddsRatio", {"fitted": found["fitted"]})
    assert label("OddsRatio", {"plain": found["plain"]}) == "OddsRatio"
    assert label("RAG", found) == "RAG"


def test_the_fit_is_told_and_an_idle_memory_too(found, graph):
    said = {name: " ".join(notes({name: result})) for name, result in found.items()}
    assert str(fit(graph)) in said["fitted"]
    assert "idle" not in said["fitted"]
    assert "plain is idle: " in said["plain"]


def test_the_manifest_tells_fit_and_operating_point(found, graph):
    told = found["fitted"].manifest
    assert told["fit"]["tau"] == fit(graph).params.tau == told["params"]["tau"]
    assert not told["operating_point"]["idle"]
    assert found["plain"].manifest["fit"] is None
    assert found["plain"].manifest["operating_point"]["idle"]


@pytest.mark.parametrize("changes", [{"deformation": "off"}, {"deformation": "topk:8"}])
def test_odds_of_another_kernel_than_the_fitted_one_are_not_called_calibrated(graph, changes):
    env = GraphDiffusionVectorEnv(1, graph=graph, **changes)
    result = evaluate(env, lambda x: 0, episodes=2, horizons=(60, 20, 60))
    assert result.manifest["fit"] is not None
    assert label("OddsRatio", {"other": result}) == "OddsRatio"


def test_odds_without_the_gate_in_replay_are_not_called_calibrated(graph):
    env = GraphDiffusionVectorEnv(1, graph=graph)
    result = evaluate(env, lambda x: 0, episodes=2, horizons=(60, 20, 60), off_at_replay=True)
    assert label("OddsRatio", {"off@rep": result}) == "OddsRatio"
