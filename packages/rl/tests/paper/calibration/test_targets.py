"""Scores of settings by hand."""

from math import sqrt

import pytest

from rapo.paper.calibration.targets import REQUIREMENTS, TARGETS, UNMET, held, score, unmet

PERFECT = {
    "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "ReplayRet": 0.82, "off_RAG": 0.91,
    "off_AUC_R": 0.93, "off_SM_R": 0.92, "OddsRatio": 0.41, "slow_RAG": 0.38, "R_c_P0": 16.9,
    "R_c_kept": 8.4 / 16.9, "served": 0.85, "outside": 0.85, "correlation": 0.87, "RAG_P0": 1.0,
    "RAG_P0_std": 0.12, "low": 0.0, "failing": 0.0, "redrawn": 0.1, "low_P0": 0.97,
    "high_P0": 1.03, "gain": 0.06, "moderate_P0": 0.9, "conservative_P0": 0.8, "capped": 0.0,
    "sensitive": 0.2,
}  # fmt: skip


def loss(z):
    """One target's part of the mean."""
    return 2 * (sqrt(1 + z * z) - 1) / len(TARGETS)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.0),
        ({"RAG": 0.33 + 0.08}, loss(1)),  # one of the paper's stds
        ({"AUC_R": 0.36 - 0.5 * 0.07}, loss(0.5)),
        ({"off_RAG": 0.91 + 2 * 0.1}, loss(0.2 / 0.13)),
        ({"served": 0.78 - 0.03}, loss(1)),
        ({"served": 0.79}, 0.0),  # inside the paper's range
        ({"R_c_P0": 7.9}, loss(3)),
        ({"gain": 0.035}, UNMET / 10),
        ({"capped": 0.9}, 6 * UNMET / 10),  # a bound, so that a search still sees the others
        ({"low": 0.004}, 2 * UNMET / 10),
        ({"OddsRatio": float("nan")}, float("inf")),
    ],
)
def test_the_score_by_hand(changes, expected):
    assert score({**PERFECT, **changes}) == pytest.approx(expected, abs=1e-9)


def test_a_setting_that_holds_everything_breaks_no_requirement():
    assert unmet(PERFECT) == []
    assert held(PERFECT) == len(TARGETS)
    assert (
        held({**PERFECT, "RAG": 0.33 + 2.1 * 0.08, "SM_R": 0.31 - 1.9 * 0.06}) == len(TARGETS) - 1
    )


@pytest.mark.parametrize("rule", REQUIREMENTS, ids=lambda rule: rule.name)
def test_each_requirement_is_named_where_it_is_broken(rule):
    beyond = rule.high + 0.1 * rule.unit if rule.high < 10 else rule.low - 0.1 * rule.unit
    text = unmet({**PERFECT, rule.name: beyond})
    assert len(text) == 1
    assert text[0].startswith(f"{rule.name} ")
