"""Settings: a field takes what its type says, and says what it takes."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from rapo.platforms import settings as s


@dataclass(frozen=True)
class Small(s.FrozenSetting):
    count: s.Count = 3
    share: s.Share = 0.5
    none: s.ShareOrNone = 0.0
    level: s.Level = -2.0
    ladder: tuple[s.Positive, ...] = (1.0, 2.0)
    ends: Annotated[tuple[s.Count, s.Count], s.Ends()] = (1, 1)
    box: tuple[Annotated[tuple[s.FromZero, s.FromOne], s.Ends(equal=False)], ...] = ((0, 1),)
    word: Literal["a", "b"] = "a"


def test_what_fits_is_taken_and_lists_become_tuples():
    made = Small(ladder=[1, 2.5], ends=[2, 7], box=[[0, 1], [2, 3]], share=1, word="b")
    assert made.ladder == (1, 2.5) and made.ends == (2, 7) and made.box == ((0, 1), (2, 3))
    assert hash(made) == hash(
        Small(ladder=(1, 2.5), ends=(2, 7), box=((0, 1), (2, 3)), share=1, word="b")
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("count", 0, r"a whole number in \[1, inf\]"),
        ("count", 2.0, "a whole number"),
        ("count", True, "a whole number"),
        ("count", (1,), "a whole number"),
        ("share", 0, r"a number in \(0, 1\]"),
        ("share", 1.1, r"\(0, 1\]"),
        ("share", float("nan"), r"\(0, 1\]"),
        ("none", -0.1, r"\[0, 1\]"),
        ("level", float("inf"), "a number"),
        ("ladder", (), "several values"),
        ("ladder", 3.0, "several values"),
        ("ladder", (1.0, 0.0), r"\(0, inf\]"),
        ("ends", (2, 1), "a lower and an upper end"),
        ("ends", (1, 2, 3), "2 values"),
        ("box", ((1, 1),), "a lower and an upper end"),
        ("box", ((0, 0.5),), r"\[1, inf\]"),
        ("word", "c", "one of"),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(name, value, words):
    with pytest.raises(ValueError, match=f"{name} must be .*{words}"):
        Small(**{name: value})
