"""`rapo-gate demo`: the story is what it says, the same every time, and in words."""

import io
import warnings

import numpy as np
import pytest
from rich.console import Console

from rapo_gate import Gate
from rapo_gate.config import SimulatedClock
from rapo_gate.demo import (
    CONFIG,
    CREATORS,
    HARMFUL,
    LIAR,
    LIES,
    PHASES,
    SLANDERED,
    START,
    play,
    run_demo,
    tell,
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A gate after the story, the story, the fields before the telling, and what was told."""
    clock = SimulatedClock(START)
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gate = Gate.open(tmp_path_factory.mktemp("demo") / "gate.db", CONFIG, clock=clock)
    with gate:
        story = play(gate, clock, 0)
        fields = gate.fields()
        tell(Console(file=out, width=110), gate, story)
        yield gate, story, fields, out.getvalue()


def test_the_harmful_creator_does_not_come_back_in_full(told):
    _, story, fields, _ = told
    phase = np.array(story.phase)
    proposed, served = np.array(story.proposed), np.array(story.served)
    assert proposed[phase == "return"].mean() == pytest.approx(proposed[phase == "exposure"].mean())
    assert served[phase == "return"].mean() < 0.35 * proposed[phase == "return"].mean()
    assert served[phase == "return"][0] < served[phase == "exposure"][0]
    assert fields[HARMFUL].H > 0.1


def test_nobody_else_is_buried_and_one_liar_achieves_no_scar(told):
    _, story, fields, _ = told
    assert fields[SLANDERED].H == 0
    assert min(story.slandered) > 0.85
    assert min(story.slandered) < 1  # the lies did count for something
    others = [fields[c] for c in CREATORS if c not in (HARMFUL, SLANDERED)]
    assert all(f.H == 0 and f.psi > 0.95 for f in others)


def test_the_rollback_takes_out_the_lies_alone(told):
    gate, _, before, _ = told
    after = gate.fields()
    assert after[SLANDERED].psi > before[SLANDERED].psi
    assert after[HARMFUL] == before[HARMFUL]
    assert gate.verify()["ok"]


def test_it_is_told_in_about_two_screens(told):
    _, story, _, text = told
    for words in (HARMFUL, LIAR, f"{LIES} reports", "exactly", "the same; database ok", story.last):
        assert words in text
    assert "WRONGLY" not in text and "NOT" not in text
    assert 30 < len(text.splitlines()) < 70
    assert len(story.at) == sum(PHASES.values())


def test_an_old_figure_is_not_overwritten(tmp_path):
    (tmp_path / "gate.png").write_text("mine")
    with pytest.raises(FileExistsError, match=r"gate\.png exists; choose another --out"):
        run_demo(out=tmp_path)
    assert (tmp_path / "gate.png").read_text() == "mine"


def test_it_draws_a_figure_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("rapo_gate.demo.PHASES", {"exposure": 25, "washout": 12, "return": 15})
    monkeypatch.setattr("rapo_gate.demo.LYING", range(5))
    out = io.StringIO()
    run_demo(out=tmp_path / "figures", console=Console(file=out, width=110))
    assert (tmp_path / "figures" / "gate.png").stat().st_size > 10_000
    assert "gate.png" in out.getvalue()
