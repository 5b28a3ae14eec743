"""Rules of fields: what they take, what they refuse, and what they say then."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

from rapo.agents import config as agents_config
from rapo.agents.config import PPOConfig
from rapo.cascade import setting as cascade_setting
from rapo.cascade.setting import Setting
from rapo_core import params as core_params
from rapo_core.checks import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    SHARE,
    TRUTH,
    WHOLE,
    Rule,
    between,
    check_fields,
    one_of,
    rows_of,
)
from rapo_core.params import FieldParams


@pytest.mark.parametrize(("module", "kind"), [
    (core_params, FieldParams), (cascade_setting, Setting), (agents_config, PPOConfig),
])  # fmt: skip
def test_every_field_has_a_rule(module, kind):
    assert set(module._RULES) == {field.name for field in fields(kind)}


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), np.array([1, 2])])
def test_a_rule_about_numbers_takes_nothing_else(value):
    assert not Rule("a number", lambda v: True).allows(value)


def test_ends_of_an_interval():
    open_end, closed = between(0, 1, low_open=True), between(0, 1, low_open=False)
    assert [open_end.allows(v) for v in (0, 1e-9, 1, 1.01)] == [False, True, True, False]
    assert [closed.allows(v) for v in (-1e-9, 0, 1, 1.01)] == [False, True, True, False]
    assert (open_end.words, closed.words) == ("in (0, 1]", "in [0, 1]")


@pytest.mark.parametrize(("rule", "inside", "outside"), [
    (WHOLE, (1, 2), (0, -1)),
    (POSITIVE, (1e-9, 2), (0, -1e-9)),
    (NOT_NEGATIVE, (0, 1e-9), (-1e-9,)),
    (AT_LEAST_ONE, (1, 1.5), (1 - 1e-9,)),
    (PROBABILITY, (0, 0.5, 1), (-1e-9, 1 + 1e-9)),
    (SHARE, (1e-9, 1 - 1e-9), (0, 1)),
])  # fmt: skip
def test_the_ends_of_every_named_rule(rule, inside, outside):
    assert [rule.allows(v) for v in (*inside, *outside)] == [
        *[True] * len(inside), *[False] * len(outside)
    ]  # fmt: skip


def test_truth_is_no_number_and_a_number_no_truth():
    assert TRUTH.allows(False) and not TRUTH.allows(0)
    assert WHOLE.allows(1) and not WHOLE.allows(True) and not WHOLE.allows(1.0)


def test_each_entry_of_a_tuple_is_checked_and_the_whole_is_named():
    check_fields(SimpleNamespace(rates=(1, 2)), {"rates": WHOLE})
    with pytest.raises(ValueError, match=r"rates must be a whole number >= 1, got \(1, 0\)"):
        check_fields(SimpleNamespace(rates=(1, 0)), {"rates": WHOLE})


def test_a_known_word_comes_back_and_another_is_shown_those_that_are():
    assert one_of("mode", None, (None, "rgb_array")) is None
    with pytest.raises(ValueError, match=r"mode must be one of \('a', 'b'\), got 'c'"):
        one_of("mode", "c", ("a", "b"))


def test_a_setting_refuses_truth_where_it_wants_a_number():
    with pytest.raises(ValueError, match="kappa must be a positive number, got True"):
        Setting.default().replace(kappa=True)


def test_numbers_of_numpy_become_floats_of_the_fields():
    assert type(FieldParams(tau=np.float32(0.5)).tau) is float


@pytest.mark.parametrize(
    ("episodes", "rows"),
    [(None, [0, 1, 2]), ([2, 0], [2, 0]), (1, [1]), ([], []), ([False, True, True], [1, 2])],
)
def test_episodes_are_indices_or_a_mask(episodes, rows):
    found = rows_of(episodes, 3)
    assert found.tolist() == rows and found.dtype == np.int64


@pytest.mark.parametrize("episodes", [[3], [-1], [0.0], [True, False], "all"])
def test_other_episodes_are_named(episodes):
    with pytest.raises(ValueError, match=r"indices 0\.\.2 or a mask, got"):
        rows_of(episodes, 3)
