"""Names as numbers, decisions and reports as bytes: what goes in comes out."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo_gate.config import GateConfig
from rapo_gate.events import DecisionBody, checked_regions, pack_decision, packed, unpack_decision
from rapo_gate.fold.names import Names
from rapo_gate.fold.registry import UNKNOWN, IntTable, NameTable, Registry
from rapo_gate.fold.state import State
from rapo_gate.reports import HarmReport, check, take_in

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(NUMBERS, unique=True, max_size=50), max_size=6), st.lists(NUMBERS))
def test_the_table_is_a_dict(batches: list[list[int]], others: list[int]) -> None:
    table, known = IntTable(), dict[int, int]()
    for batch in batches:
        new = [key for key in batch if key not in known]
        known |= {key: len(known) + i for i, key in enumerate(new)}
        table.insert(np.array(new, np.int64), np.array([known[key] for key in new]))
    asked = [*known, *others]
    found = table.numbers(np.array(asked, np.int64)).tolist()
    assert found == [known.get(key, UNKNOWN) for key in asked]


WORDS = st.text(min_size=1, max_size=6).filter(lambda word: "\n" not in word)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WORDS, unique=True, max_size=40), max_size=6), st.lists(WORDS))
def test_the_table_of_names_is_a_dict(batches: list[list[str]], others: list[str]) -> None:
    table, known = NameTable(), dict[str, int]()
    for batch in batches:
        new = [key for key in batch if key not in known]
        known |= {key: len(known) + 3 * i for i, key in enumerate(new)}
        table.insert(new, [known[key] for key in new])
    asked = [*known, *others]
    found = table.numbers(Names.of(asked)).tolist() if asked else []
    assert found == [known.get(key, UNKNOWN) for key in asked]


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    table = NameTable()
    monkeypatch.setattr(table, "_factor", np.uint64(0))  # every name has hash 0
    table.insert(["a", "ab"], [5, 6])
    table.insert(["b"], [7])
    assert table.numbers(Names.of(["ab", "b", "c", "a", "abc"])).tolist() == [6, 7, -1, 5, -1]


def test_names_that_claim_to_be_equal_are_each_checked() -> None:
    class Alike(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(ValueError, match="printable"):
        checked_regions([Alike("a"), Alike("\u202e")])
    assert checked_regions([np.str_("a"), "b"]).listed() == ["a", "b"]  # type: ignore[union-attr]


def test_whoever_looked_up_before_does_not_see_what_came_after() -> None:
    registry = Registry(["a", 4])
    psi = np.array([0.25, 0.5])
    registry.add(["b", 5, *(f"n{i}" for i in range(1000))])
    assert registry.reals(Names.of(["a", "b", "n7", "x"]), psi).tolist() == [0.25, 1.0, 1.0, 1.0]
    assert registry.reals(np.array([4, 5, 6]), psi).tolist() == [0.5, 1.0, 1.0]


def test_rows_on_their_way_in_are_passed_over() -> None:
    table = NameTable()
    table.insert(["a"], [3])
    before = table._read
    table.insert(["b", "c"], [4, 5])  # into the same arrays
    assert before[0][0] is table._read[0][0]
    table._read = before
    assert table.numbers(Names.of(["a", "b", "c"])).tolist() == [3, UNKNOWN, UNKNOWN]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(NUMBERS, st.text(min_size=1, max_size=5))))
def test_names_keep_their_numbers(names: list[Any]) -> None:
    registry = Registry(names)
    distinct = list(dict.fromkeys(names))
    assert registry.names == distinct
    assert registry.numbers(distinct).tolist() == list(range(len(distinct)))
    text = [n for n in distinct if isinstance(n, str) and "\n" not in n]
    if text:
        assert [distinct[i] for i in registry.numbers(Names.of(text))] == text
    whole = np.array([n for n in distinct if isinstance(n, int)], np.int64)
    assert [distinct[i] for i in registry.numbers(whole)] == whole.tolist()
    assert registry.number("no such name") == UNKNOWN


@pytest.mark.parametrize("regions", [["a", "b", "é"], [1, -5, 2**63 - 1]])
@pytest.mark.parametrize("psi", [[1.0, 1.0, 1.0], [1.0, 0.2, 1.0]])
@pytest.mark.parametrize("stimulus", [None, "ß"])
def test_decisions_come_back_as_they_were(regions: Any, psi: list[float], stimulus: Any) -> None:
    names = checked_regions(regions)
    p = np.array([1.0, 0.0, 0.0])
    body = DecisionBody(names, p, np.array(psi), 1.0, -3, 7, True, stimulus)
    back = unpack_decision(pack_decision(body))
    assert back.ids() == regions
    assert (back.p.tolist(), back.psi.tolist()) == (p.tolist(), psi)
    assert (back.tick, back.revision, back.enforced, back.stimulus) == (-3, 7, True, stimulus)


def test_decisions_of_an_earlier_version_are_read() -> None:
    names = checked_regions(["a", "é"])
    body = DecisionBody(names, np.array([0.5, 0.5]), np.ones(2), 1.0, 3, 7, False)
    new, ids = pack_decision(body), json.dumps(["a", "é"]).encode()
    size, joined = len(ids), "a\né".encode()
    old = b"\x01" + new[1:30] + size.to_bytes(4, "little") + new[34:]
    old = old.replace(joined, ids)
    assert old != new
    assert unpack_decision(old).ids() == unpack_decision(new).ids() == ["a", "é"]
    assert unpack_decision(old).p.tolist() == [0.5, 0.5]
    assert new[0] == 2  # which a version that knows JSON alone refuses
    with pytest.raises(ValueError, match="format 3"):
        unpack_decision(b"\x03" + new[1:])


@pytest.mark.parametrize("regions", [["a b", "ok~"], ["👩‍🚀", "a\xa0b", "ß" * 200]])  # ZWJ, NBSP
def test_ordinary_names_are_taken(regions: list[str]) -> None:
    names = checked_regions(regions)
    assert isinstance(names, Names)
    assert names.listed() == regions


@pytest.mark.parametrize(
    "regions",
    [[], "abc", ["a", "\x7f"], ["b", "\u202e"], ["b", "\ud800"], ["a\nb"], ["a", "", "b"],
     [1, "a"], ["a", 1], [1.5], [True], [None], [2**63], ["a\n"], np.zeros((2, 2)),
     np.array([2**63], np.uint64), [""], ["x" * 201]],
)  # fmt: skip
def test_what_is_no_region_is_refused(regions: Any) -> None:
    with pytest.raises(ValueError, match="region"):
        checked_regions(regions)


@given(st.text(min_size=1, max_size=20), st.floats(0, 1), st.lists(NUMBERS, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_a_reports_body_is_plain_json(signal: str, harm: float, regions: list[int]) -> None:
    report = HarmReport("s", "k", harm, signal, 1e6, regions=regions)
    try:
        checked = check(report, GateConfig(), 1e6)
    except ValueError:
        return  # what cannot be printed is refused elsewhere
    log = REFERENCE["MemoryLog"]()
    _, (event,) = take_in([checked], State(), log, 1e6)
    assert event.body == packed(event.data())
    assert event.data()["waits_for"] == "unknown region"
