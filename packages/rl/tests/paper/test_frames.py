"""Frames of a result: curves against hand computation."""

import json

import numpy as np
import pandas as pd
import pytest

from rapo.paper.frames import curves_of, training_of
from rapo.rsd.result import TRACES, RSDResult


def test_curves_by_hand():
    phase = np.repeat([0, 1, 2], [23, 5, 12])
    rng = np.random.default_rng(0)
    traces = {name: rng.normal(size=(4, 40)).astype(np.float32) for name in TRACES}
    odds = traces["odds_ratio"]
    odds[0, 3] = np.nan  # one step of a bin
    odds[1:, 10:20] = np.nan  # all but one episode
    odds[:, 23:28] = np.nan  # a whole phase
    result = RSDResult(frame=pd.DataFrame({"episode": range(4)}), traces=traces, phase=phase)
    curves = curves_of(result)
    bins = [(0, 10), (10, 20), (20, 23), (23, 28), (28, 38), (38, 40)]
    assert curves["step"].tolist() == [a for a, _ in bins]
    assert curves["end"].tolist() == [b for _, b in bins]
    assert (curves["episodes"] == 4).all()
    for name in TRACES:
        for i, (a, b) in enumerate(bins):
            means = []
            for row in traces[name]:
                defined = [float(v) for v in row[a:b] if not np.isnan(v)]
                if defined:
                    means.append(sum(defined) / len(defined))
            if not means:
                assert name == "odds_ratio" and a == 23 and np.isnan(curves[name][i])
                continue
            mean = sum(means) / len(means)
            spread = sum((m - mean) ** 2 for m in means) / max(1, len(means) - 1)
            assert curves[name][i] == pytest.approx(mean, rel=1e-9)
            assert curves[f"{name}_std"][i] == pytest.approx(spread**0.5, rel=1e-9, abs=1e-12)
    assert curves["odds_ratio_std"][1] == 0  # one episode has no spread


def test_a_training_has_a_row_per_cost_and_one_without_costs(tmp_path):
    assert training_of(tmp_path) is None
    paid = {"budget": 0.9, "cost": 0.7, "dual": 0.1, "met": True}
    for budgets, names in (({"trace": paid, "scar": paid}, ["trace", "scar"]), ({}, [""])):
        text = json.dumps({"seconds": 3.5, "budgets": budgets})
        (tmp_path / "summary.json").write_text(text)
        frame = training_of(tmp_path)
        assert frame["cost"].tolist() == names and (frame["seconds"] == 3.5).all()
        assert list(frame) == ["cost", "budget", "dual", "met", "spent", "seconds"]
    assert frame["spent"].isna().all()
