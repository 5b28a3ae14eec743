"""What version 0.1 wrote is read, and means what it meant."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rapo.agents.agent import load_agent
from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.paper.evaluation import evaluate_checkpoint
from rapo.rsd.result import RSDResult
from rapo_core.params import FieldParams

OLD = Path(__file__).parent / "fixtures" / "v0.1"
RETURNS = ("ExposureReturn", "ReplayReturn")
"""Added up by BLAS then, in an order that depends on the processor."""


@pytest.fixture(scope="module")
def before():
    return pd.read_csv(OLD / "rsd" / "episodes.csv")


def test_a_run_is_evaluated_to_the_same_numbers(before):
    result = evaluate_checkpoint(OLD / "run" / "checkpoint.pt", episodes=8)
    for name in before.columns:
        found, kept = result.frame[name].to_numpy(), before[name].to_numpy()
        if name in RETURNS:
            np.testing.assert_allclose(found, kept, rtol=1e-14, err_msg=name)
        else:
            np.testing.assert_array_equal(found, kept, name)


def test_a_run_keeps_its_setting_and_is_not_fitted():
    _, config = load_agent(OLD / "run" / "checkpoint.pt")
    assert config.fit is False
    assert config.params == FieldParams()
    compact = Setting.named("compact")
    assert config.setting == compact.replace(edge_cap=1.0, horizons=config.setting.horizons)
    assert config.setting.params == FieldParams()
    assert config.evaluation().fit is None


def test_a_result_is_read_with_what_it_did_not_have_as_unavailable(before):
    result = RSDResult.load(OLD / "rsd")
    summary = result.summary()
    assert summary["RAG"]["mean"] == pytest.approx(before["RAG"].mean())
    assert summary["SM_vs_P0"]["n"] == summary["Selectivity"]["n"] == 0
    assert result.pooled()["RAG"]["n"] == 8


def test_a_graph_is_read_and_fitted_like_any_other():
    graph = Graph.load(OLD / "karate.npz")
    assert graph.hash == "6aaff26c62f2ce1a"
    assert dict(graph.labels) == {}
    assert GraphDiffusionVectorEnv(1, graph=graph).fit is not None
