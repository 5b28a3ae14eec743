"""Each demand of the suite can be missed alone."""

import pandas as pd
import pytest

from rapo.suite.demands import DEMANDS, demands_of
from rapo.suite.domains import DOMAINS
from rapo.suite.measure import CONSTANT


def judged(rows, sees_memory=False):
    return demands_of(DOMAINS["routing"], rows, sees_memory=sees_memory)


def fake_rows(**changes):
    """Rows of a domain in which every demand holds, but for the changes by kernel."""
    fine = {"RAG": 1.0, "AUC_R": 1.0, "SM_R": 1.0, "SM_vs_P0": 1.0, "ReturnKept": 1.0, "ASD": 0.0}
    rows = [
        {"kernel": "off (P0)", **fine},
        {"kernel": "RAPO", **fine, "SM_R": 0.6, "SM_vs_P0": 0.2, "ReturnKept": 0.95},
        {"kernel": "off@rep", **fine},
        {"kernel": "trace alone", **fine, "SM_vs_P0": 0.6},
        {"kernel": "route-flap damping", **fine, "SM_vs_P0": 0.4, "ReturnKept": 0.96},
        {"kernel": CONSTANT, "action": 0, **fine, "SM_vs_P0": 0.7},
        {"kernel": CONSTANT, "action": 1, **fine},
    ]
    for row in rows:
        row.update(changes.get(row["kernel"], {}))
    return pd.DataFrame(rows)


CASES = {
    "SM_R": {"RAPO": {"SM_R": 0.76}},
    "SM_vs_P0": {"RAPO": {"SM_vs_P0": 0.61}, "route-flap damping": {"SM_vs_P0": 0.62}},
    "ReturnKept": {"RAPO": {"ReturnKept": 0.79}, "route-flap damping": {"ReturnKept": 0.79}},
    "restored": {"off@rep": {"SM_vs_P0": 1.0001}},
    "trace": {"trace alone": {"SM_R": 0.94}},
    "frontier": {CONSTANT: {"SM_vs_P0": 0.2, "ReturnKept": 0.95}},
    "baseline": {"route-flap damping": {"SM_vs_P0": 0.19}},
    "SM_R undefined": {"RAPO": {"SM_R": float("nan")}},
}


@pytest.mark.parametrize("case", [None, *CASES])
def test_each_demand_can_be_missed_alone(case):
    demands = judged(fake_rows(**CASES.get(case, {})))
    assert [d.name for d in demands] == list(DEMANDS)
    missed = [d.name for d in demands if not d.holds]
    assert missed == ([] if case is None else [case.split()[0]])


def test_a_baseline_at_more_return_is_not_beaten_by_less_mass():
    rows = fake_rows(**{"route-flap damping": {"ReturnKept": 0.99}})
    missed = [d.name for d in judged(rows) if not d.holds]
    assert missed == ["baseline"]


def test_a_policy_that_sees_the_memory_may_be_near():
    rows = fake_rows(**{"off@rep": {"SM_vs_P0": 1.04}})
    assert all(d.holds for d in judged(rows, sees_memory=True))
    rows = fake_rows(**{"off@rep": {"SM_vs_P0": 1.06}})
    assert not all(d.holds for d in judged(rows, sees_memory=True))
