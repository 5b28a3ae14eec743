"""Checks: what the types of fields take, what they refuse, and what the messages say."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo_core.checks import (
    Count,
    Ends,
    FromOne,
    FromZero,
    Level,
    OpenShare,
    Positive,
    Share,
    ShareOrNone,
    UserError,
    Within,
    check_fields,
    one_of,
    rows_of,
)
from rapo_core.params import FieldParams


@dataclass(frozen=True)
class Small:
    count: Count = 3
    share: Share = 0.5
    none: ShareOrNone = 0.0
    inner: OpenShare = 0.5
    level: Level = -2.0
    ladder: tuple[Positive, ...] = (1.0, 2.0)
    ends: Annotated[tuple[Count, Count], Ends()] = (1, 1)
    box: tuple[Annotated[tuple[FromZero, FromOne], Ends(equal=False)], ...] = ((0, 1),)
    word: Literal["a", "b"] = "a"
    truth: bool = True
    text: str = "x"
    maybe: float | None = None
    rate: Annotated[float, Within(0, 1, high_open=True), "what it is"] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


def test_what_fits_is_taken_and_lists_become_tuples():
    assert Small(maybe=1).maybe == 1
    made = Small(ladder=[1, 2.5], ends=[2, 7], box=[[0, 1], [2, 3]], share=1, word="b")
    assert made.ladder == (1, 2.5) and made.ends == (2, 7) and made.box == ((0, 1), (2, 3))
    assert hash(made) == hash(
        Small(ladder=(1, 2.5), ends=(2, 7), box=((0, 1), (2, 3)), share=1, word="b")
    )


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("count", 0, "a whole number >= 1"),
        ("count", 2.0, "a whole number"),
        ("count", True, "a whole number"),
        ("count", (1,), "a whole number"),
        ("share", 0, r"a number in \(0, 1\]"),
        ("share", 1.1, r"\(0, 1\]"),
        ("share", float("nan"), r"\(0, 1\]"),
        ("share", "1", "a number"),
        ("share", None, "a number"),
        ("none", -0.1, r"\[0, 1\]"),
        ("inner", 0.0, r"\(0, 1\)"),
        ("inner", 1.0, r"\(0, 1\)"),
        ("level", float("inf"), "a number"),
        ("level", np.array([1.0, 2.0]), "a number"),
        ("ladder", (), "several values"),
        ("ladder", 3.0, "several values"),
        ("ladder", (1.0, 0.0), "a number > 0"),
        ("ends", (2, 1), "a lower and an upper end"),
        ("ends", (1, 2, 3), "2 values"),
        ("box", ((1, 1),), "a lower and an upper end"),
        ("box", ((0, 0.5),), "a number >= 1"),
        ("word", "c", "one of"),
        ("truth", 1, "True or False"),
        ("text", 1, "a text"),
        ("maybe", "1", "a number"),
        ("rate", 1.0, r"a number in \[0, 1\), got 1.0 \(what it is\)"),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(name, value, wanted):
    with pytest.raises(UserError, match=f"{name} must be .*{wanted}"):
        Small(**{name: value})


@pytest.mark.parametrize(("kind", "inside", "outside"), [
    (Positive, (1e-9, 2), (0, -1e-9)),
    (FromZero, (0, 1e-9), (-1e-9,)),
    (FromOne, (1, 1.5), (1 - 1e-9,)),
    (ShareOrNone, (0, 0.5, 1), (-1e-9, 1 + 1e-9)),
    (Share, (1e-9, 1), (0, 1 + 1e-9)),
    (OpenShare, (1e-9, 1 - 1e-9), (0, 1)),
    (Level, (-1e300, 1e300), (float("nan"), float("inf"))),
])  # fmt: skip
def test_the_ends_of_every_named_type(kind, inside, outside):
    (rule,) = kind.__metadata__
    assert [rule.holds(v) for v in (*inside, *outside)] == [
        *[True] * len(inside), *[False] * len(outside)
    ]  # fmt: skip


def test_a_known_word_comes_back_and_another_is_shown_those_that_are():
    assert one_of("mode", None, (None, "rgb_array")) is None
    with pytest.raises(ValueError, match=r"mode must be one of \('a', 'b'\), got 'c'"):
        one_of("mode", "c", ("a", "b"))


def test_a_setting_refuses_truth_where_it_wants_a_number():
    with pytest.raises(ValueError, match="kappa must be a number, got True"):
        Setting.default().replace(kappa=True)


def test_numbers_of_numpy_become_floats_of_the_fields():
    assert type(FieldParams(tau=np.float32(0.5)).tau) is float


@pytest.mark.parametrize(
    ("episodes", "rows"),
    [(None, [0, 1, 2]), ([2, 0], [2, 0]), (1, [1]), ([], []), ([False, True, True], [1, 2])],
)
def test_episodes_are_indices_or_a_mask(episodes, rows):
    indices = rows_of(episodes, 3)
    assert indices.tolist() == rows and indices.dtype == np.int64


@pytest.mark.parametrize("episodes", [[3], [-1], [0.0], [True, False], "all"])
def test_other_episodes_are_named(episodes):
    with pytest.raises(ValueError, match=r"indices 0\.\.2 or a mask, got"):
        rows_of(episodes, 3)
