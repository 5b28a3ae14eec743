"""Names as numbers, decisions and reports as bytes: what goes in comes out."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.gate.config import GateConfig
from rapo.gate.events import DecisionBody, checked_regions, pack_decision, packed, unpack_decision
from rapo.gate.intake import HarmReport, check, take_in
from rapo.gate.registry import UNKNOWN, IntTable, Registry
from rapo.gate.state import State

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
    reals = np.arange(len(known)) / 7
    seen = table.reals(np.array(asked, np.int64), reals).tolist()
    assert seen == [known[key] / 7 if key in known else 1.0 for key in asked]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(NUMBERS, st.text(min_size=1, max_size=5))))
def test_names_keep_their_numbers(names: list[Any]) -> None:
    registry = Registry(names)
    distinct = list(dict.fromkeys(names))
    assert registry.names == distinct
    assert registry.numbers(distinct).tolist() == list(range(len(distinct)))
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


@pytest.mark.parametrize(
    "regions",
    [[], "abc", [1, "a"], ["a", 1], [1.5], [True], [None], [2**63], ["a\n"], np.zeros((2, 2)),
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
    _, (event,) = take_in([checked], State(log.find), log, 1e6)
    assert event.body == packed(event.data())
    assert event.data()["waits_for"] == "unknown region"
