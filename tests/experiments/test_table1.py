"""Table 1 on made-up pieces: GE beside the constant actions."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rapo.experiments.presets import PAPER, SMOKE
from rapo.experiments.studies import table1
from rapo.experiments.studies.section import DIFFERS, HOLDS, Store

PRESET = replace(SMOKE, graph_seeds=(0, 1, 2), episodes=2)
ACTIONS = {"aggressive": 100.0, "moderate": 90.0, "conservative": 60.0}
"""Replay returns of the made-up pieces; a graph adds its number."""


def section(root, preset, gaps):
    """Table 1 with GE's return above the aggressive action's by the gap of each graph."""
    for task in table1.plan(preset):
        seed = task.policy.config.graph_seed
        worth = ACTIONS.get(task.name, 100.0 + gaps[seed]) + seed
        episodes = {"episode": [0, 1], "ReplayReturn": [worth - 3, worth + 3]}
        episodes |= {name: [1.0, 1.1] for name in ("RAG", "AUC_R", "SM_R", "peak_replay",
                     "peak_exposure", "reach_replay", "reach_exposure", "inside_replay",
                     "inside_exposure")}  # fmt: skip
        content = {"key": task.key, "seconds": 1.0, "training": None, "shield": None,
                   "episodes": episodes, "curves": {}}  # fmt: skip
        path = task.piece(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return table1.analyse(Store(root, preset))


def claim(told):
    (found,) = (c for c in told.claims if "constant action" in c.statement)
    return found


def test_constants_share_ges_graphs_episodes_and_kernel():
    tasks = table1.constants(PAPER)
    assert len(tasks) == 3 * len(PAPER.graph_seeds) == len({task.key for task in tasks})
    ge = PAPER.evaluation("GE", 4)
    for task in tasks[12:15]:
        assert task.policy.config == ge.policy.config
        same = {**ge.spec, "policy": task.policy.key}
        assert task.spec == same


@pytest.mark.parametrize(
    ("gaps", "verdict", "ours"),
    [
        ((0.0, 0.0, 0.0), HOLDS, "ReplayRet +0.0000 [+0.0000, +0.0000]"),
        ((-1.0, 0.5, 0.2), HOLDS, "ReplayRet -0.0010 ["),  # below, but not surely
        ((2.0, 2.1, 1.9), HOLDS, "ReplayRet +0.0194 ["),
        ((-2.0, -2.1, -1.9), DIFFERS, "ReplayRet -0.0202 ["),
    ],
)
def test_ge_is_held_against_the_best_constant_action(tmp_path, gaps, verdict, ours):
    told = section(tmp_path, PRESET, gaps)
    found = claim(told)
    assert found.verdict == verdict and found.ours.startswith(ours), found
    assert "aggressive on 3 of 3 graphs" in found.ours
    rows = told.files["constant_actions"].set_index("graph_seed")
    base = np.mean([101.0 + gap for gap in gaps])
    assert rows["GE"].to_numpy() == pytest.approx(
        [(100 + g + s) / base for s, g in enumerate(gaps)]
    )
    assert rows.loc[2, "conservative"] == pytest.approx(62 / base)
    assert set(told.files["episodes"]["method"]) == set(PRESET.methods)  # a table of methods


@pytest.mark.parametrize(("gap", "verdict"), [(0.0, HOLDS), (-0.1, DIFFERS)])
def test_one_graph_has_no_interval(tmp_path, gap, verdict):
    found = claim(section(tmp_path, replace(PRESET, graph_seeds=(0,)), (gap,)))
    assert found.verdict == verdict and "[" not in found.ours and "no interval" in found.why
