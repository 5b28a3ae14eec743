"""The size study on made-up results: numbers against hand computation."""

from dataclasses import replace

import numpy as np
import pytest
from sweeps import PRESET, t_interval

from rapo.cascade.engine import Cascade
from rapo.graphs.generate import generate
from rapo.paper.presets import PAPER
from rapo.paper.reproduce import study
from rapo.paper.studies.sizes import analysis as sizes_analysis
from rapo.paper.studies.verdicts import DIFFERS, HOLDS


def test_sizes_are_trained_alike_and_share_rapos_policy():
    tasks = study("sizes").plan(PAPER)
    graphs = len(PAPER.size_seeds)
    again = len(PAPER.as_many)  # all but GE, with the other regions
    assert len(tasks) == (5 * 4 + again * 3) * graphs
    policies = {task.policy.key: task.policy.config for task in tasks}
    assert len(policies) == (5 * 3 + again * 2) * graphs
    assert {config.steps for config in policies.values()} == {PAPER.size_steps}


def test_larger_graphs_have_as_many_regions_as_the_main_size():
    configs = {
        (task.policy.config.nodes, task.policy.config.env_kwargs.get("regions"))
        for task in study("sizes").plan(PAPER)
        if task.method == "RAPO"
    }
    plain = {(n, None) for n in (50, 100, 250, 500, 1000)}
    assert configs == plain | {(500, "community:6.4"), (1000, "community:12.8")}
    counts = [
        Cascade(generate(n, seed=1000), 1, regions=spec).region_count
        for n, spec in ((250, None), (500, "community:6.4"), (1000, "community:12.8"))
    ]
    assert counts == [78, 78, 78]  # 250 / 3.2, rounded
    cells = replace(PAPER, setting=PAPER.setting.replace(regions="grid:5"))
    with pytest.raises(ValueError, match="grid:5"):
        study("sizes").plan(cells)


def test_sizes_with_as_many_regions_are_the_row_and_as_large_ones_a_second_table(tmp_path, section):
    preset = replace(PRESET, as_many=(100,))

    def worse_as_large(task, side, episodes):
        if task.method == "RAPO" and task.policy.config.nodes == 100:
            shift = 0.0 if task.policy.config.env_kwargs.get("regions") else 0.2
            episodes["RAG"] = [rag + shift for rag in episodes["RAG"]]

    told = section("sizes", preset, tmp_path, change=worse_as_large)
    rows = told.files["sizes"]
    assert rows["nodes"].tolist() == [50, 100, 100]
    assert rows["regions"].tolist() == ["community:3.2", f"community:{3.2 * 100 / 60:g}",
                                        "community:3.2"]  # fmt: skip
    assert np.allclose(rows["reduction"], [0.67, 0.67, 0.47])
    assert [len(frame) for _, frame in told.tables] == [2, 1]
    assert told.tables[1][1].iloc[0, 1].startswith("47%")
    assert told.claims[0].verdict == HOLDS and "47" not in told.claims[0].ours


def test_sizes_table_and_claims(tmp_path, section):
    told = section("sizes", PRESET, tmp_path)
    rows = told.files["sizes"]
    assert rows["nodes"].tolist() == [50, 100]
    assert np.allclose(rows["reduction"], 1 - 0.33)
    low, high = t_interval(0.65, 0.69)
    assert np.allclose(rows[["reduction_low", "reduction_high"]], [[low, high]] * 2, atol=1e-4)
    assert np.allclose(rows["utility"], 0.82)  # (80 + 84) / 2 over GE's (98 + 102) / 2
    assert np.allclose(rows["RAG_PM-ST"], 1.0) and np.allclose(rows["RAG_off@rep"], 1.3)
    printed = told.tables[0][1]
    assert printed.iloc[0, 1].startswith("67% [42, 92]")
    assert [claim.verdict for claim in told.claims] == [HOLDS] * 3
    assert f"2 graphs x 2 episodes a size, {PRESET.size_steps:,} training steps" in told.text[0]


def test_sizes_out_of_the_papers_range_are_named(tmp_path, monkeypatch, section):
    monkeypatch.setattr(sizes_analysis, "SIZES_REDUCTION", (0.7, 0.83))
    told = section("sizes", PRESET, tmp_path)
    assert told.claims[0].verdict == DIFFERS
    assert told.claims[0].why == (
        "out of the range: 50 nodes (interval reaches it), 100 nodes (interval reaches it)"
    )


def test_one_graph_has_no_intervals_and_undefined_values_do_no_harm(tmp_path, section):
    one = dict.fromkeys(("graph_seeds", "size_seeds", "sweep_seeds", "retrain_seeds"), (0,))
    told = section("sizes", replace(PRESET, **one), tmp_path, undefined=True)
    for _, frame in told.tables:
        assert "[" not in frame.to_string() and "nan" not in frame.to_string()
    for _, _, figure in told.figures:
        figure.canvas.draw()
