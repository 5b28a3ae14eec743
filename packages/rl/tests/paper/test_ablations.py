"""The ablations on made-up results: numbers against hand computation."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sweeps import PRESET, table

from rapo.cascade.engine import Cascade
from rapo.paper.jobs import misattributed
from rapo.paper.reproduce import study
from rapo.paper.studies.ablations.claims import reach_vs_free
from rapo.paper.studies.verdicts import DIFFERS, HOLDS


def test_ablations_numbers(tmp_path, section):
    told = section("ablations", PRESET, tmp_path)
    rows = told.files["ablations"].set_index(["part", "name"])
    expected = {
        ("decay", "delta 0.999"): 0.37,
        ("decay", "delta 1 (RAPO)"): 0.33,
        ("scope", "top-k, k = 2"): 0.53,
        ("scope", "none (P0)"): 1.0,
        ("regions", "node"): 0.95,
        ("harm", "50% misattributed"): 0.48,
    }
    for name, rag in expected.items():
        assert np.isclose(rows.loc[name, "RAG"], rag), name
        assert rows.loc[name, "graphs"] == 2
    assert np.isnan(rows.loc[("regions", "node, one-step activation"), "ReplayRet"])
    scope = table(told, "Partial").set_index("")
    # the second graph reaches twice as far, also under P0
    assert scope.loc["local, 25% of the regions", "reach vs P0"] == "0.83 [0.83, 0.83]"
    regions = table(told, "Regions").set_index("")
    assert regions.loc["node, one-step activation", "ReplayRet"] == "-"
    assert regions.loc["node", "scar mass"] == "1.50 [1.50, 1.50]"


def test_ablations_claims(tmp_path, section):
    told = section("ablations", PRESET, tmp_path)
    verdicts = {claim.statement: claim.verdict for claim in told.claims}
    assert verdicts["Slow-decay scars maintain suppression (delta 0.999)"] == HOLDS
    # half of the reduction of 0.33 is RAG 0.665: top-k has 0.53, local 0.83
    assert verdicts["Partial deployment retains suppression: top-k, k = 8"] == HOLDS
    local = "Partial deployment retains suppression: local, 50% of the regions"
    assert verdicts[local] == DIFFERS
    assert verdicts["Suppression with node-level regions: node"] == DIFFERS
    wrong = next(claim for claim in told.claims if claim.name == "Limits")
    assert wrong.verdict == HOLDS and "RAG +0.15 [+0.15, +0.15]" in wrong.ours
    assert verdicts["Harm that goes unreported weakens suppression (50% unreported)"] == DIFFERS
    assert verdicts["Noisy harm weakens suppression (noise of ±100%)"] == DIFFERS


@pytest.mark.parametrize(
    ("metric", "verdict"), [("RAG", DIFFERS), ("reach_replay", DIFFERS), ("AUC_R", HOLDS)]
)
def test_partial_deployment_must_keep_rag_and_reach_low(metric, verdict, tmp_path, section):
    def change(task, _, episodes):
        if task.method == "top-k":
            episodes[metric] = [1.4 * value for value in episodes[metric]]

    told = section("ablations", PRESET, tmp_path, change=change)
    claim = next(c for c in told.claims if "top-k" in c.statement)
    assert claim.verdict == verdict  # 1.4 x 0.53 is above 0.665
    # half of the way from 0.33 to 1, whose last digit single precision decides
    assert re.search(r"asks for RAG 0.6[67] and reach vs P0 0.6[67] or less$", claim.why)
    reach = "0.74 [0.74, 0.74]" if metric == "reach_replay" else "0.53 [0.53, 0.53]"
    assert claim.ours.endswith(f"; reach vs P0 {reach}, full 0.33 [0.33, 0.33]")


def test_reach_is_divided_on_the_same_graph():
    few = pd.DataFrame({"reach_replay": [6.0, 1.0, 3.0]}, index=[2, 1, 3])
    found = reach_vs_free(few, pd.Series({0: 1.0, 1: 4.0, 2: 8.0, 3: 0.0}))
    assert found.index.tolist() == [2, 1, 3]
    assert np.allclose(found, [0.75, 0.25, np.nan], equal_nan=True)


def test_ablations_change_what_they_say():
    tasks = {
        task.name: task for task in study("ablations").plan(PRESET) if task.policy.config.graph_seed
    }
    assert dict(tasks["slow-decay-0.95"].params) == {"delta": 0.95}
    assert tasks["slow-decay"] == PRESET.evaluation("slow-decay", 1)
    assert dict(tasks["top-k-2"].options) == {"deformation": "topk:2"}
    assert dict(tasks["local-0.25"].options) == {"deformation": "local:0.25"}
    assert dict(tasks["RAPO-lost0.5"].options) == {"lost": "0.5"}
    assert dict(tasks["RAPO-noisy1"].options) == {"spread": "1"}
    made = [
        task.policy.config for task in study("ablations").plan(PRESET) if task.name == "retrained"
    ]
    literal = [config for config in made if config.setting.persistence == 0]
    assert len(made) == 8 and {config.env_kwargs.get("regions") for config in literal} == {"node"}
    assert {config.steps for config in made} == {PRESET.retrain_steps}


def test_one_graph_has_no_intervals_and_undefined_values_do_no_harm(tmp_path, section):
    one = dict.fromkeys(("graph_seeds", "size_seeds", "sweep_seeds", "retrain_seeds"), (0,))
    told = section("ablations", replace(PRESET, **one), tmp_path, undefined=True)
    for _, frame in told.tables:
        assert "[" not in frame.to_string() and "nan" not in frame.to_string()
    for _, _, figure in told.figures:
        figure.canvas.draw()


def test_misattributed_credit(small_graph, short):
    engine = Cascade(small_graph, 1, setting=short)
    inside = engine.graph.sensitive
    assert np.array_equal(misattributed(engine, 0.0, 3), engine.regions)
    last = np.zeros(small_graph.n, bool)
    for share in (0.25, 0.5, 1.0):
        credit = misattributed(engine, share, 3)
        wrong = credit != engine.regions
        assert wrong.sum() == round(share * inside.sum()) and not wrong[~inside].any()
        assert np.isin(credit[wrong], engine.harm_regions).all()
        assert (wrong | ~last).all()  # a larger share errs where a smaller one does
        last = wrong
    assert np.array_equal(credit, misattributed(engine, 1.0, 3))
    with pytest.raises(ValueError, match=r"in \[0, 1\], got 1.5"):
        misattributed(engine, 1.5, 0)
    whole = Cascade(small_graph, 1, setting=short, regions=np.zeros(small_graph.n, int))
    with pytest.raises(ValueError, match="needs two that hold harm"):
        misattributed(whole, 0.5, 0)
