"""Learning, the literal duals and seeds on made-up results: numbers against hand computation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rapo.paper.presets import PAPER, SMOKE
from rapo.paper.reproduce import study
from rapo.paper.results import Results
from rapo.paper.studies.learning.figures import frontier
from rapo.paper.studies.learning.mixtures import gains, signed_distance, unbound
from rapo.paper.studies.learning.plan import DEFORMED, rows
from rapo.paper.studies.literal import plan as literal_plan
from rapo.paper.studies.seeds import plan as seeds_plan
from rapo.paper.studies.seeds.analysis import components
from rapo.paper.studies.seeds.plan import APART
from rapo.paper.studies.table1.plan import constants
from rapo.paper.studies.verdicts import DIFFERS, HOLDS

PRESET = replace(SMOKE, graph_seeds=(0, 1, 2), episodes=2, literal_seeds=(0, 1), starts=2)
POINTS = {
    "GE": (100.0, 4.0), "PM-ST": (95.0, 3.5), "RAPO": (84.0, 0.5), "RAPO-x": (81.0, 0.6),
    "deformed-aggressive": (80.0, 1.0), "deformed-moderate": (70.0, 0.9),
    "deformed-conservative": (60.0, 0.2), "greedy": (86.0, 0.7),
}  # fmt: skip
"""Return and trace by row."""


@pytest.fixture
def told_of(tmp_path, write_result):
    """Makes the study of results by hand."""
    return lambda *points, **options: made_of(tmp_path, write_result, *points, **options)


def made_of(root, write, points=POINTS, dual=0.0, preset=PRESET):
    for task in study("learning").plan(preset):
        seed = task.policy.config.graph_seed
        worth, trace = points[task.name]
        episodes = {"episode": [0, 1], "ReplayReturn": [worth + seed - 1] * 2, "trace": [trace] * 2}
        episodes |= {name: [0.5, 0.5] for name in ("RAG", "AUC_R", "SM_R")}
        cost = {"budget": 0.9, "spent": 0.1, "met": True, "dual": dual if seed else 0.0}
        write(root, task, episodes, costs={"trace": cost})
    return study("learning").analyse(Results(root, preset))


def verdicts(told):
    return [claim.verdict for claim in told.claims]


def test_rows_share_graphs_episodes_kernel_and_draws():
    found = rows(PAPER)
    rapo = PAPER.evaluation("RAPO", 4)
    for name in (*DEFORMED, "greedy"):
        task = found[name][4]
        assert task.policy.untrained and task.policy.config == rapo.policy.config
        assert task.key == rapo.key
    assert found["RAPO"] == [PAPER.evaluation("RAPO", s) for s in range(10)]
    keys = [(task.policy.key, task.key) for task in study("learning").plan(PAPER)]
    assert len(keys) == len(set(keys)) == 8 * 10
    assert not {(t.policy.key, t.key) for t in constants(PAPER)} & set(keys)  # those are under P0


def test_gains_and_verdicts_by_hand(told_of):
    told = told_of()
    flat = told.files["learning"].set_index(["row", "graph_seed"])
    assert flat.loc[("RAPO", 2), "ReplayRet"] == pytest.approx(0.85)
    returns = flat["ReplayRet"].unstack("row")
    each = gains(returns, "RAPO", "each")
    assert each.to_list() == pytest.approx([83 / 79 - 1, 84 / 80 - 1, 85 / 81 - 1])
    assert verdicts(told) == [HOLDS, HOLDS]


def test_the_best_constant_of_a_graph_is_not_the_best_on_average():
    columns = dict(zip(DEFORMED, ([1.0, 1.0], [0.8, 1.1], [0.1, 0.1]), strict=True))
    returns = pd.DataFrame({**columns, "RAPO": [1.2, 1.2]})
    assert gains(returns, "RAPO", "each").to_list() == pytest.approx([0.2, 1.2 / 1.1 - 1])
    assert gains(returns, "RAPO", "one").to_list() == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize(
    ("rapo", "expected"),
    [
        ((82.0, 0.5), [DIFFERS, HOLDS]),  # 2.5% are too little
        ((80.0, 1.0), [DIFFERS, DIFFERS]),  # the aggressive action itself
        ((70.0, 0.6), [DIFFERS, DIFFERS]),  # on the line between two of them
        ((72.0, 0.6), [DIFFERS, HOLDS]),  # beyond it, although aggressive earns more
        ((65.0, 0.9), [DIFFERS, DIFFERS]),
        ((84.0, 5.0), [HOLDS, HOLDS]),  # more return than any
    ],
)
def test_where_rapo_counts_as_learning(told_of, rapo, expected):
    assert verdicts(told_of({**POINTS, "RAPO": rapo})) == expected


def test_only_graphs_with_small_duals_are_asked_for_return(told_of):
    told = told_of(dual=2.0)
    assert "on the 1 graphs" in told.claims[0].why
    paid = pd.DataFrame({"graph_seed": [0, 0, 1], "dual": [0.0, 0.5, 0.1]})
    assert unbound(paid, [0, 1]) == [1]


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((1.0, 1.0), 0.0),
        ((0.5, 1.0), 0.0),
        ((1.0, 0.5), 0.5),
        ((1.2, 1.0), 0.2),
        ((1.3, 0.6), 0.5),
        ((0.5, 1.7), -0.5),
        ((0.5, 1.3), -0.3),
        ((0.5, -1.0), 2.0),
    ],
)
def test_signed_distance_to_one_corner(point, distance):
    """What (1, 1) attains or beats is all with less return and more trace."""
    found = signed_distance(np.array(point), np.array([[1.0, 1.0]]))
    assert found == pytest.approx(distance, abs=1e-4)


def test_signed_distance_is_that_to_the_nearest_mixture():
    rng = np.random.default_rng(0)
    corners = rng.random((3, 2))
    weights = rng.dirichlet(np.ones(3), 200_000)
    mixed = weights @ corners
    for point in rng.random((20, 2)) * 1.4 - 0.2:
        lead = np.maximum(point - mixed, 0) * [1, 0] + np.maximum(mixed - point, 0) * [0, 1]
        nearest = np.sqrt((lead**2).sum(axis=1)).min()
        found = float(signed_distance(point, corners))
        assert max(found, 0) == pytest.approx(nearest, abs=0.01)


def test_frontier_keeps_what_no_mixture_beats():
    corners = np.array([[0.8, 1.0], [0.7, 0.9], [0.6, 0.2], [0.5, 0.4]])
    assert frontier(corners).tolist() == [[0.6, 0.2], [0.8, 1.0]]
    corners[1] = [0.79, 0.5]
    assert frontier(corners).tolist() == [[0.6, 0.2], [0.79, 0.5], [0.8, 1.0]]


def test_one_graph_has_no_interval(told_of):
    told = told_of(preset=replace(PRESET, graph_seeds=(0,)))
    assert verdicts(told) == [HOLDS, HOLDS]
    assert all("[" not in cell for cell in told.tables[1][1].iloc[0].astype(str))


# The literal dual rule


def test_literal_duals_rise_from_0_without_a_budget():
    for method in literal_plan.METHODS:
        (first, *_) = literal_plan.evaluations(PAPER, method)
        config = first.policy.config
        assert (config.setting.budget, config.ppo.dual_start) == (0.0, 0.0)
        assert (config.steps, config.graph_seed, config.seed) == (800_000, 0, 0)
        same = replace(config, ppo=PAPER.ppo, steps=PAPER.steps).with_env(setting=PAPER.setting)
        assert same == PAPER.config(method, 0)
    assert set(literal_plan.METHODS) == {"SS", "DR", "PM-ST", "RAPO"}
    assert len(study("literal").plan(PAPER)) == 10 + 4 * 5


def test_literal_table(tmp_path, write_result):
    for task in study("literal").plan(PRESET):
        seed = task.policy.config.graph_seed
        cost = {"budget": 0.0, "spent": 0.7 + 0.1 * seed, "met": False, "dual": 3.0}
        kept = 100.0 if task.name == "GE" else 96.0
        episodes = {name: [1.0, 1.0] for name in ("RAG", "AUC_R", "SM_R")}
        episodes |= {"ReplayReturn": [kept] * 2}
        write_result(tmp_path, task, episodes, costs={"harm": cost})
    told = study("literal").analyse(Results(tmp_path, PRESET))
    table = told.tables[0][1].set_index("method")
    assert (
        table.loc["DR", "ReplayRet"].startswith("0.96") and "(0.96)" in table.loc["DR", "ReplayRet"]
    )
    assert table.loc["SS", "harm: spent"].startswith("0.75")
    assert told.claims == ()  # the paper's numbers are counted once


# Seeds of the optimiser


def test_components_of_a_known_mixture():
    rng = np.random.default_rng(2)
    g, s, e = 400, 3, 20
    values = (
        rng.normal(size=(g, 1, 1)) * 2.0
        + rng.normal(size=(g, s, 1)) * 0.5
        + rng.normal(size=(g, 1, e)) * 1.5
        + rng.normal(size=(g, s, e)) * 2.0
    )
    found = components(values)
    assert found["graphs"] == pytest.approx(4.0, rel=0.2)
    assert found["starts"] == pytest.approx(0.25, rel=0.25)
    assert found["episodes"] == pytest.approx(1.5**2 + 2.0**2, rel=0.1)


def test_components_by_hand():
    start_only = np.array([[[1.0, 1.0], [3.0, 3.0]], [[1.0, 1.0], [3.0, 3.0]]])
    assert components(start_only) == {"graphs": 0.0, "starts": 2.0, "episodes": 0.0}
    episode_only = start_only.transpose(0, 2, 1)
    assert components(episode_only) == {"graphs": 0.0, "starts": 0.0, "episodes": 2.0}
    graph_only = np.broadcast_to(np.array([1.0, 3.0])[:, None, None], (2, 2, 2))
    assert components(graph_only) == {"graphs": 2.0, "starts": 0.0, "episodes": 0.0}


def test_the_first_start_is_table_1s_and_the_others_train_anew():
    tasks = seeds_plan.evaluations(PAPER, "RAPO")
    assert len(tasks) == 9 and tasks[2, 0] == PAPER.evaluation("RAPO", 2)
    assert len({task.policy.key for task in tasks.values()}) == 9
    assert len({task.policy.config.seed for task in tasks.values()}) == 9
    assert {task.policy.config.steps for task in tasks.values()} == {PAPER.steps}


@pytest.mark.parametrize("graphs", [(0, 1), (0,)])
def test_seeds_table(tmp_path, write_result, graphs):
    preset = replace(PRESET, spread_seeds=graphs, starts=2)
    for task in study("seeds").plan(preset):
        c = task.policy.config
        rag = 0.4 + 0.1 * (c.seed >= APART)
        episodes = {name: [rag, rag] for name in ("RAG", "AUC_R", "SM_R")}
        episodes |= {"ReplayReturn": [100.0 + c.graph_seed] * 2}
        write_result(tmp_path, task, episodes)
    told = study("seeds").analyse(Results(tmp_path, preset))
    found = told.files["seeds"].set_index(["method", "metric"])
    if len(graphs) > 1:
        assert found.loc[("RAPO", "RAG"), "starts_share"] == pytest.approx(1.0)
        assert found.loc[("RAPO", "ReplayRet"), "graphs_share"] == pytest.approx(1.0)
    else:
        assert found["starts_of_cell"].isna().all()
