"""The study of which numbers hold together: logs, frontier, reasons, readings, picture."""

import json
import sys
from dataclasses import replace
from math import exp, inf, log

import numpy as np
import pandas as pd
import pytest

from rapo.agents.config import PPOConfig
from rapo.cascade.setting import READINGS, Setting
from rapo.cli import main
from rapo.paper.jobs import PolicyJob
from rapo.paper.studies.consistency import command, frontier, readings, shifts
from rapo.paper.studies.consistency.figure import plot_consistency
from rapo.paper.studies.consistency.numbers import OFF, ROW, SCREENED, TRAINED
from rapo.paper.studies.consistency.reasons import opens_at, reasons, spread_curve
from rapo.paper.studies.consistency.screened import CAPPED, NEEDED, read_logs
from rapo.theory import consistent_spread
from rapo_core.params import FieldParams

THE_PAPERS = {
    "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "ReplayRet": 0.82, "off_RAG": 0.91,
    "off_AUC_R": 0.93, "off_SM_R": 0.92, "OddsRatio": 0.41, "slow_RAG": 0.38, "R_c": 8.4,
    "R_c_P0": 16.9, "served": 0.85, "outside": 0.85, "correlation": 0.87, "clipped": 0.0,
    "conservative_cost": 0.4,
}  # fmt: skip
"""A setting that nobody has found: it meets everything."""


def line(key, *, support=10, score=1.0, **found):
    setting = Setting.default().replace(support=support).to_dict()
    return {"key": key, "point": {}, "setting": setting, "score": score,
            "found": {**THE_PAPERS, **found}}  # fmt: skip


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))


@pytest.fixture
def logs(tmp_path):
    """Four settings that count, and one line of each kind that does not."""
    write(
        tmp_path / "screening.jsonl",
        line("a", support=1, off_AUC_R=2.5, off_SM_R=3.0, score=2.0),
        line("b", support=2, off_AUC_R=2.0, off_SM_R=3.0, SM_R=0.1, score=5.0),
        line("c", support=3, RAG=0.8, AUC_R=0.9, SM_R=0.9, slow_RAG=0.7, score=3.0),
        line("d", support=4, RAG=0.6, OddsRatio=0.6, slow_RAG=0.58, off_AUC_R=1.25, score=4.0),
        line("capped", support=5, clipped=CAPPED + 0.001),
        {"key": "x", "point": {}, "setting": {}, "score": inf, "error": "rates too high"},
    )
    old = line("old", support=6)
    del old["found"]["off_RAG"]
    # on three graphs, so it stands for the same setting on one
    again = line("a", support=1, off_AUC_R=2.2, off_SM_R=3.0, R_c_P0=16.9 + 1 / 120)
    write(tmp_path / "again" / "second_look.jsonl", again, old)
    write(tmp_path / "training.jsonl", {"key": "t", "method": "GE", "found": {"GE": {}}})
    return tmp_path


def test_each_setting_counts_once_and_what_is_left_out_is_counted(logs):
    screened = read_logs(logs)
    assert screened.logs == ("again/second_look.jsonl", "screening.jsonl")
    assert screened.counts == {"lines": 8, "not_run": 1, "older": 1, "repeated": 1, "capped": 1}
    frame = screened.frame.set_index("key")
    assert sorted(frame.index) == ["a", "b", "c", "d"]
    assert frame.loc["a", "off_AUC_R"] == 2.2 and frame.loc["a", "graphs"] == 3
    assert frame.loc["b", "graphs"] == 1
    assert frame.loc["b", "R_c_kept"] == pytest.approx(8.4 / 16.9)


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    screened = read_logs(tmp_path / "nowhere")
    assert len(screened.frame) == 0 and screened.logs == ()
    asked = frontier.extremes(screened.frame)
    assert (asked["settings"] == 0).all() and asked["value"].isna().all()
    assert frontier.pairs(screened.frame).to_numpy().sum() == 0
    assert frontier.most_together(screened.frame) is None


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("{not json\n", "line 7"),
        (json.dumps({"point": {}}) + "\n", "line 7"),
        (json.dumps({**line("e", support=9), "found": None}) + "\n", "'e'"),
        (json.dumps(line("e", support=9, RAG="low")) + "\n", "'e'"),
    ],
)
def test_a_damaged_line_is_named(logs, damage, named):
    with (logs / "screening.jsonl").open("a") as file:
        file.write(damage)
    with pytest.raises(ValueError, match=f"{named} of .*screening.jsonl is damaged"):
        read_logs(logs)


def test_conditional_extremes_by_hand(logs):
    frame = read_logs(logs).frame
    questions = [
        frontier.Question("off_AUC_R", {"RAG": (-inf, 0.45), "SM_R": (0.22, 0.4)}),
        frontier.Question("off_AUC_R", {"RAG": (-inf, 0.45)}),
        frontier.Question("off_AUC_R", {}, held=ROW),
        frontier.Question("RAG", {"OddsRatio": (0.33, 0.49), "off_AUC_R": (-inf, 1.2)}),
        frontier.Question("slow_RAG", {"off_AUC_R": (-inf, 1.3)}),
        frontier.Question("RAG", {}, largest=True),
        frontier.Question("RAG", {"OddsRatio": (0.9, inf)}),
    ]
    asked = frontier.extremes(frame, questions)
    assert asked["settings"].tolist() == [1, 2, 1, 1, 2, 4, 0]
    assert asked["key"].tolist()[:6] == ["a", "b", "a", "c", "d", "c"]
    assert asked["value"].tolist()[:6] == [2.2, 2.0, 2.2, 0.8, 0.58, 0.8]
    assert np.isnan(asked["value"].iloc[6])
    assert asked.loc[0, "slow_RAG"] == 0.38  # the rest of the same setting
    assert frontier.printed(asked)["value"].tolist()[5:] == ["0.80", "none"]


def test_pairs_by_hand(logs):
    counts = frontier.pairs(read_logs(logs).frame)
    assert list(counts.columns) == list(counts.index) == [number.name for number in SCREENED]
    assert counts.loc["RAG", "RAG"] == 2  # a, b
    assert counts.loc["off_AUC_R", "off_AUC_R"] == 1  # c alone: d is above 1.15
    assert counts.loc["RAG", "off_AUC_R"] == counts.loc["off_AUC_R", "RAG"] == 0
    assert counts.loc["RAG", "SM_R"] == 1 and counts.loc["SM_R", "SM_R"] == 2
    assert counts.loc["OddsRatio", "served"] == 3
    never = frontier.never_together(counts, least=1)
    assert ("RAG", "off_AUC_R") in never and ("RAG", "SM_R") not in never
    # off_AUC_R is met once; off_SM_R by c and d, which meet neither of the others
    assert frontier.never_together(counts, least=2) == [
        ("RAG", "off_SM_R"), ("off_SM_R", "slow_RAG"),
    ]  # fmt: skip


def test_the_largest_set_is_that_of_one_setting(logs):
    most = frontier.most_together(read_logs(logs).frame)
    assert (most.key, most.settings) == ("a", 1)
    assert set(most.missed) == {"off_AUC_R", "off_SM_R"}
    assert set(most.met) | set(most.missed) == {number.name for number in SCREENED}


def test_every_printed_number_holds_for_itself_and_nothing_undefined_does():
    extra = {"off_ReplayRet": 0.82, "PM-ST_ReplayRet": 0.96, "R_c_kept": 8.4 / 16.9}
    for number in TRAINED:
        assert number.holds({**THE_PAPERS, **extra}[number.name]), number.name
        assert not number.holds(float("nan")), number.name
    assert not OFF[1].holds(1.16) and not OFF[1].holds(0.84) and OFF[1].holds(1.14)
    assert not ROW[0].holds(0.50) and ROW[0].holds(0.49)


def test_the_questions_ask_for_columns_that_are_there(logs):
    columns = set(read_logs(logs).frame.columns)
    for question in frontier.QUESTIONS:
        assert {question.name, *question.where} <= columns
    assert set(NEEDED) <= columns


# Reasons


def test_the_reasons_numbers():
    scar, late, spread, inside, served = reasons()
    work = log(1 / 0.41) / (2 * 0.05)
    assert scar.numbers["work"] == pytest.approx(work)
    assert scar.numbers["mean trace"] == pytest.approx(0.3 + work / 450)
    assert scar.numbers["mean trace"] == pytest.approx(0.320, abs=5e-4)
    assert late.numbers["late conductance"] == pytest.approx(0.375, abs=5e-4)
    # by hand: gate of the trace times the mean of .41^s over the second half
    mean = (0.41**0.5 - 0.41) / (0.5 * log(1 / 0.41))
    by_hand = exp(-scar.numbers["mean trace"]) * mean
    assert late.numbers["late conductance"] == pytest.approx(by_hand, rel=1e-5)
    values = list(spread.numbers.values())
    assert values[0] > values[1] == pytest.approx(1 / 0.41)
    assert spread.numbers["range opens at an odds ratio of"] == pytest.approx(0.378, abs=1e-3)
    assert [r.kind for r in (scar, late, spread, inside, served)].count("mean field") == 1


def test_the_range_opens_where_it_is_said():
    params = FieldParams()
    at = opens_at(params)
    for theta, is_open in ((at - 0.01, True), (at + 0.01, False)):
        low, high = consistent_spread(theta, params)
        assert (low < high) == is_open
    curve = spread_curve(params, points=11)
    assert ((curve["low"] < curve["high"]) == (curve["theta"] < at)).all()


def test_a_fixed_action_is_at_least_one_in_off_at_replay():
    """The bound of the reasons, in expectation; 3 standard errors for the draws."""
    task = shifts.Shift("s", Setting.default(), graphs=(1000, 1001), episodes=16, nodes=120)
    for action in (0, 2):
        found = [task._one(graph, action) for graph in task.graphs]
        assert np.mean([f["off_AUC_R"] for f in found]) > 0.97
        assert {f["aggressive_exposure"] for f in found} == {float(action == 0)}


# The whole study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The study at its smallest: short episodes, hardly any training."""
    root = tmp_path_factory.mktemp("consistency")
    both = Setting.default().replace(horizons=(60, 20, 60))
    entry = line("0-0", RAG=0.4, off_AUC_R=1.0, OddsRatio=0.8)
    write(root / "logs" / "screening.jsonl", {**entry, "setting": both.to_dict()}, line("0-1"))
    size = replace(
        readings.SIZES["smoke"], steps=256, episodes=3, nodes=50,
        ppo=PPOConfig(envs=2, rollout=128, minibatch=64, hidden=8),
    )  # fmt: skip
    named = Setting.named
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(readings.SIZES, "smoke", size)
        patch.setitem(command.SHIFTS, "smoke", {"graphs": (1000,), "episodes": 2, "nodes": 50})
        patch.setattr(readings, "reading", lambda size, name: replace(
            size, setting=named(name).replace(horizons=(60, 20, 60))))  # fmt: skip
        found = command.run_consistency("smoke", root / "out", data=root / "logs", jobs=1)
        patch.setattr(PolicyJob, "run", None)  # a second run has nothing left to do
        again = command.run_consistency("smoke", str(root / "out"), data=str(root / "logs"), jobs=1)
    return root / "out", found, again


def test_the_study_leaves_its_tables(made):
    out, found, again = made
    names = {"summary.md", "frontier.csv", "pairs.csv", "readings.csv", "shifts.csv",
             "manifest.json", "consistency.png"}  # fmt: skip
    assert names <= {path.name for path in out.iterdir()}
    assert pd.read_csv(out / "frontier.csv").shape[0] == len(frontier.QUESTIONS)
    assert pd.read_csv(out / "pairs.csv", index_col="number").equals(found.pairs)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"] == 2 and set(manifest["config"]["readings"]) == set(READINGS)
    assert (out / "consistency.png").stat().st_size > 10_000
    pd.testing.assert_frame_equal(found.readings, again.readings)


def test_every_reading_has_every_number_with_a_verdict(made):
    _, found, _ = made
    table = found.readings
    judged = table[table["paper"] != ""]
    assert set(zip(judged["reading"], judged["number"], strict=True)) == {
        (name, number.name) for name in READINGS for number in TRAINED
    }
    assert set(judged["verdict"]) <= {"holds", "differs"}
    values = table.set_index(["reading", "number"])["mean"]
    for name in READINGS:
        assert 0 < values[name, "OddsRatio"] <= 1
        assert values[name, "served"] <= 1.2
        # the policy hardly trained does not change, so the bound of 1 is in force
        assert values[name, "fixed_AUC_R"] > 0.8


def test_settings_that_meet_both_are_run_with_actions_that_never_change(made):
    out, _, _ = made
    table = pd.read_csv(out / "shifts.csv")
    assert table["policy"].tolist() == list(shifts.POLICIES) * 2
    fixed = table.set_index(["setting", "policy"])["aggressive_off@rep"]
    for name in set(table["setting"]):
        assert fixed[name, "aggressive"] == 1 and fixed[name, "conservative"] == 0


def test_a_damaged_table_of_a_shift_is_named(tmp_path):
    job = shifts.Shift("s", Setting.default())
    job.table(tmp_path).parent.mkdir(parents=True)
    job.table(tmp_path).write_text("{}")
    with pytest.raises(ValueError, match=r"shifts\.parquet is damaged"):
        shifts.read([job], tmp_path)


def test_tables_of_other_logs_are_not_overwritten(made, tmp_path):
    out, _, _ = made
    before = {path: path.read_bytes() for path in out.glob("*.*")}
    with pytest.raises(ValueError, match=r"another config.* screened"):
        command.run_consistency("smoke", out, data=tmp_path, jobs=1)
    assert {path: path.read_bytes() for path in out.glob("*.*")} == before


def test_the_picture_has_settings_paper_and_readings():
    screened = pd.DataFrame({"RAG": [0.3, 0.9], "off_AUC_R": [3, 1.1], "OddsRatio": [0.4, 0.8]})
    found = {"echo": pd.DataFrame({"RAG": [0.4, 0.5], "off_AUC_R": [2.0, 3.0]})}
    for settings, trained in ((screened, found), (screened[:0], {})):
        figure, axes = plot_consistency(settings, trained, spread_curve(FieldParams(), 12))
        figure.canvas.draw()
        assert len(axes) == 2 and axes[0].get_yscale() == "log"
        told = [text.get_text() for text in axes[0].get_legend().get_texts()]
        assert sum("echo" in word for word in told) == len(trained)
        assert any("2 screened" in word for word in told) == bool(len(settings))
    where = [ln.get_xydata().tolist() for ln in plot_consistency(screened, found,
             spread_curve(FieldParams(), 12))[1][0].lines]  # fmt: skip
    assert [[0.45, 2.5]] in where


@pytest.mark.parametrize(
    ("words", "named"),
    [(["--preset", "huge"], "huge"), (["--engine", "steam"], "steam"), (["--jobs", "0"], "jobs")],
)
def test_bad_words_are_refused_before_anything_is_written(
    tmp_path, monkeypatch, capsys, words, named
):
    place = ["--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["rapo", "reproduce", "consistency", *words, *place])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code and named in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
