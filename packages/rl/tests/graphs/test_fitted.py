"""Environments on graphs that were brought: fitted by default, and told when idle."""

import warnings

import gymnasium
import networkx as nx
import numpy as np
import pytest

import rapo
from rapo.cascade.regions import make_regions
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs import fitted, idle
from rapo.graphs.fit import fit
from rapo.graphs.fitted import FitWarning
from rapo.graphs.idle import IdleWarning
from rapo.graphs.load import from_networkx
from rapo_core.params import FieldParams


@pytest.fixture(scope="module")
def crowd():
    """300 nodes in three blocks; with the paper's constants next to nothing scars."""
    law = [[0.08 if a == b else 0.004 for b in range(3)] for a in range(3)]
    blocks = nx.stochastic_block_model([100] * 3, law, seed=5)
    return from_networkx(blocks, sensitive="block=1", sensitive_part="largest")


@pytest.fixture(autouse=True)
def untold():
    idle._TOLD.clear()
    fitted._TOLD.clear()


def test_a_graph_of_ones_own_is_fitted_and_its_outcome_told(crowd):
    env = gymnasium.make("rapo/GraphDiffusion-v0", graph=crowd)
    found = fit(crowd)
    _, info = env.reset(seed=0)
    engine = env.unwrapped.engine
    np.testing.assert_array_equal(engine.regions, found.regions)
    assert engine.params == found.params
    told = {name.removeprefix("fit_"): info[name] for name in info if name.startswith("fit_")}
    assert told == pytest.approx(found.outcome())
    assert set(told) == {"regions", "tau", "odds", "share", "selectivity", "reached"}
    assert "calibrated" in repr(env.unwrapped)
    assert f"{found.params.tau:.3g}" in repr(env.unwrapped)


def test_a_generated_graph_keeps_the_papers_constants_unless_asked():
    plain = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1)
    assert plain.fit is None
    assert plain.engine.params == FieldParams(psi_min=rapo.Setting.default().psi_min)
    compact = rapo.Setting.named("compact")
    first = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1, setting=compact)
    assert first.engine.params == FieldParams()
    assert not [name for name in plain.reset(seed=0)[1] if name.startswith("fit_")]
    again = GraphDiffusionVectorEnv(2, graph=plain.graph)  # generated, though it is passed on
    assert again.fit is None
    asked = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1, fit=True)
    assert asked.fit is fit(plain.graph)
    assert asked.reset(seed=0)[1]["fit_tau"].tolist() == [asked.fit.params.tau] * 2


def test_given_parts_are_not_fitted(crowd):
    given = GraphDiffusionVectorEnv(1, graph=crowd, regions="node")
    np.testing.assert_array_equal(given.engine.regions, np.arange(crowd.n))
    assert given.fit.moved == "tau"
    fixed = GraphDiffusionVectorEnv(1, graph=crowd, params=FieldParams(tau=0.2))
    assert fixed.engine.params.tau == 0.2
    assert fixed.fit.moved == "regions"
    with pytest.warns(IdleWarning):
        both = GraphDiffusionVectorEnv(1, graph=crowd, params=FieldParams(), regions="node")
    assert both.fit is None


def test_an_environment_like_it_is_not_fitted_anew(crowd, monkeypatch):
    env = GraphDiffusionVectorEnv(1, graph=crowd)
    monkeypatch.setattr("rapo.envs.vector.chosen_fit", _refuse)
    changed = env.like(3, params=FieldParams(tau=env.engine.params.tau, w_H=4.0))
    np.testing.assert_array_equal(changed.engine.regions, env.engine.regions)
    assert changed.engine.params.w_H == 4.0
    assert changed.fit is None  # other constants than it measured: its odds mean nothing here
    assert env.like(3).fit is env.fit
    assert "calibrated" not in repr(changed)


def test_an_environment_like_it_keeps_its_constants_and_regions():
    env = GraphDiffusionVectorEnv(1, nodes=60, params=FieldParams(w_H=4.0), regions="grid:3")
    again = env.like(2)
    assert again.engine.params == env.engine.params
    np.testing.assert_array_equal(again.engine.regions, env.engine.regions)


def _refuse(graph, wanted, **given):
    assert isinstance(wanted, rapo.Fit)
    return wanted


def test_an_idle_memory_is_told_once_with_the_remedy(crowd):
    with pytest.warns(IdleWarning) as caught:
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False)
    text = str(caught[0].message)
    assert f"tau {fit(crowd).params.tau:.2g}" in text
    assert len([w for w in caught if w.category is IdleWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdleWarning)
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False)  # told already
        GraphDiffusionVectorEnv(1, graph=crowd)
        GraphDiffusionVectorEnv(1, nodes=250)
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False, deformation="off")


def test_the_operating_point_of_an_environment_is_that_of_its_regions_and_constants(crowd):
    fitted = GraphDiffusionVectorEnv(1, graph=crowd).operating_point
    with pytest.warns(IdleWarning):
        plain = GraphDiffusionVectorEnv(1, graph=crowd, fit=False).operating_point
    assert plain.idle
    assert plain.share < 0.1 < fitted.share
    assert fitted.share == fit(crowd).share


@pytest.mark.parametrize(
    ("changes", "params", "named"),
    [
        ({"horizons": (20, 5, 20)}, None, "before harm arrives"),
        ({}, FieldParams(psi_min=0.6), "psi_min"),
        ({}, FieldParams(w_H=0.0), "w_H"),
    ],
)
def test_a_fit_that_falls_short_says_so_and_why(crowd, changes, params, named):
    setting = rapo.Setting.default().replace(**changes)
    with pytest.warns(FitWarning, match=named) as caught:
        env = GraphDiffusionVectorEnv(1, graph=crowd, setting=setting, params=params)
    (warning,) = (w for w in caught if w.category is FitWarning)
    assert warning.filename == __file__  # where the one who can change it is
    assert not env.reset(seed=0)[1]["fit_reached"][0]


def test_cascades_that_outrun_halved_odds_are_told():
    strong = nx.powerlaw_cluster_graph(300, 4, 0.3, seed=1)
    nx.set_edge_attributes(strong, 0.5, "w")
    with pytest.warns(UserWarning, match="spread far"):
        graph = from_networkx(strong, probability="w", setting=rapo.Setting.named("compact"))
    with pytest.warns(FitWarning, match="scale"):
        GraphDiffusionVectorEnv(1, graph=graph, setting=rapo.Setting.named("compact"))


@pytest.mark.parametrize("wrong", [nx.path_graph(5), "net.npz", 7])
def test_what_is_no_graph_is_named_with_how_to_make_one(wrong):
    with pytest.raises(ValueError, match=r"rapo\.from_networkx"):
        GraphDiffusionVectorEnv(1, graph=wrong)
    with pytest.raises(ValueError, match=type(wrong).__name__):
        fit(wrong)


def test_labels_arrays_and_callables_are_regions(crowd):
    by_label = GraphDiffusionVectorEnv(1, graph=crowd, regions="label:block").engine
    blocks = crowd.labels["block"]
    for value in set(blocks):
        members = [i for i, label in enumerate(blocks) if label == value]
        assert len(set(by_label.regions[members])) == 1
    assert by_label.region_count == 3
    ids = make_regions("pieces:5", crowd)
    as_array = GraphDiffusionVectorEnv(1, graph=crowd, regions=ids).engine
    as_callable = GraphDiffusionVectorEnv(1, graph=crowd, regions=lambda graph: ids).engine
    np.testing.assert_array_equal(as_array.regions, as_callable.regions)


@pytest.mark.parametrize(
    ("regions", "named"),
    [
        ("label:colour", "'colour'.*'block'"),
        (lambda graph: np.full(graph.n, -1), "callable.*-1"),
        (lambda graph: np.zeros(3, int), r"callable.*\(3,\)"),
        ("pieces:0", "pieces:0"),
    ],
)
def test_regions_that_cannot_be_are_named(crowd, regions, named):
    with pytest.raises(ValueError, match=named):
        GraphDiffusionVectorEnv(1, graph=crowd, regions=regions)
