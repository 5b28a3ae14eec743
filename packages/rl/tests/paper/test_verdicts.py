"""The rules of the verdicts: limits on both sides, and nothing undefined holds."""

import ast
from pathlib import Path

import numpy as np
import pytest

from rapo.paper import studies
from rapo.paper.paper import TABLE1
from rapo.paper.studies import verdicts

NAN = float("nan")


@pytest.mark.parametrize("sign", [-1, 1])
def test_every_allowance_is_the_same_to_either_side(sign):
    assert verdicts.within_stds(0.33 + sign * 0.16, 0.33, 0.08)
    assert not verdicts.within_stds(0.33 + sign * 0.17, 0.33, 0.08)
    assert verdicts.bare(0.38 + sign * 0.08, 0.38, "RAG")
    assert not verdicts.bare(0.38 + sign * 0.09, 0.38, "RAG")
    assert verdicts.bare(16.9 + sign * 3.3, 16.9) and not verdicts.bare(16.9 + sign * 3.5, 16.9)
    assert verdicts.correlates(0.87 + sign * 0.1, 0.87)
    assert not verdicts.correlates(0.87 + sign * 0.11, 0.87)
    assert verdicts.full_replay([1 + sign * 0.15, 1.0])
    assert not verdicts.full_replay([1 + sign * 0.16, 1.0])


def test_slow_decay_at_half_is_not_the_papers():
    assert not verdicts.bare(0.51, 0.38, "RAG")


@pytest.mark.parametrize(
    ("ours", "holds"), [(0.774, False), (0.776, True), (0.914, True), (0.916, False)]
)
def test_a_range_has_two_ends(ours, holds):
    assert verdicts.in_range(ours, (0.78, 0.91)) is holds


def test_the_papers_own_cells_hold():
    for method, row in TABLE1.items():
        for metric, (number, std) in row.items():
            assert verdicts.cell(number, method, metric)
            assert not verdicts.cell(number - 2.1 * std, method, metric)
            assert not verdicts.cell(number + 2.1 * std, method, metric)


def test_a_ratio_on_the_other_side_of_full_replay_is_no_match():
    assert not verdicts.cell(1.02, "Shield-UM", "RAG")  # within two stds of 0.78
    assert verdicts.cell(0.84, "Shield-UM", "RAG") and not verdicts.cell(0.84, "GE", "RAG")
    assert verdicts.cell(0.87, "Shield-UM", "ReplayRet")  # a return is no ratio of phases


@pytest.mark.parametrize(
    ("middle", "low", "high", "up", "down"),
    [
        (0.2, 0.1, 0.3, True, False),
        (0.2, -0.1, 0.5, False, False),
        (-0.2, -0.3, -0.1, False, True),
        (0.2, NAN, NAN, True, False),
        (-0.2, NAN, NAN, False, True),
        (NAN, NAN, NAN, False, False),
    ],
)
def test_a_direction_needs_its_whole_interval(middle, low, high, up, down):
    assert verdicts.above(middle, low) is up and verdicts.below(middle, high) is down


def test_nothing_undefined_holds():
    assert not verdicts.within_stds(NAN, 1.0, 0.1) and not verdicts.bare(NAN, 1.0)
    assert not verdicts.in_range(NAN, (0.0, 1.0)) and not verdicts.correlates(NAN, 0.87)
    assert not verdicts.full_replay([NAN]) and verdicts.side(NAN) == "undefined"
    assert not verdicts.as_good(NAN, NAN) and not verdicts.cell(np.nan, "GE", "RAG")


def test_studies_judge_by_these_rules_alone():
    """No study writes a verdict or a kind of its own."""
    words = {verdicts.HOLDS, verdicts.DIFFERS, *verdicts.KINDS}
    for path in Path(studies.__file__).parent.rglob("*.py"):
        if path.name == "verdicts.py":
            continue
        tree = ast.parse(path.read_text())
        found = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not words & {value for value in found if isinstance(value, str)}, path.name


def test_a_claim_gives_the_reason_of_its_verdict():
    words = ("R1", "statement", "paper", "ours")
    holds = verdicts.judge(*words, True, verdicts.PREDICTED, "near", "far")
    differs = verdicts.judge(*words, False, verdicts.PREDICTED, "near", "far")
    assert (holds.verdict, holds.why) == (verdicts.HOLDS, "near")
    assert (differs.verdict, differs.why) == (verdicts.DIFFERS, "far")
    assert verdicts.judge(*words, False, verdicts.PREDICTED, "near").why == "near"
    assert verdicts.judge(*words, np.bool_(False), verdicts.PREDICTED, "").verdict == "differs"


def test_a_mean_lies_above_a_floor_with_its_whole_interval():
    assert verdicts.mean_above([0.2, 0.21, 0.19]) and not verdicts.mean_above([0.2, -0.3, 0.4])
    assert verdicts.mean_above([1.1], 1.0) and not verdicts.mean_above([NAN, NAN])
