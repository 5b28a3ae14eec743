"""Calibration: distances by hand, a search that goes on where it was cut, and its graphs."""

import json
import tomllib
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from rapo.agents.config import PPOConfig
from rapo.cascade.setting import ACTIONS, Setting
from rapo.jobs.run import as_they_end
from rapo.paper.calibration import command, search, space, trained
from rapo.paper.calibration.command import calibrate, calibrate_from_words
from rapo.paper.calibration.log import Log
from rapo.paper.calibration.space import (
    SPACE,
    STARTS,
    from_box,
    setting_of,
    setting_text,
    to_box,
)
from rapo.paper.calibration.targets import SIZE_TARGETS, TARGETS, UNMET, score, shortfalls
from rapo.paper.screening import screen

PERFECT = {
    "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "ReplayRet": 0.82, "OddsRatio": 0.41, "R_c": 8.4,
    "served": 0.85, "outside": 0.85, "alive": 0.5, "off_RAG": 0.91, "off_AUC_R": 0.93,
    "off_SM_R": 0.92, "slow_RAG": 0.38, "gain": 0.05, "RAG_P0": 1.0, "RAG_P0_std": 0.12,
    "R_c_P0": 16.9, "conservative_cost": 0.5, "moderate_return": 0.9, "conservative_return": 0.8,
    "clipped": 0.0, "sensitive": 0.2,
}  # fmt: skip
SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


# Scores


def bent(z, weight=1.0):
    return weight * 2 * (sqrt(1 + z * z) - 1)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.0),
        ({"RAG": 0.33 + 0.08}, bent(1, 2)),  # one of the paper's stds
        ({"AUC_R": 0.36 - 2 * 0.07}, bent(2, 2)),
        ({"ReplayRet": 0.82 + 0.03, "SM_R": 0.31 + 0.06}, 2 * bent(1, 2)),
        ({"OddsRatio": 0.41 + 0.08}, bent(1)),
        ({"off_RAG": 0.91 * np.exp(0.13)}, bent(1, 1.5)),
        ({"off_AUC_R": 3.72}, bent(log(4) / 0.35, 0.5)),
        ({"served": 0.78 - 0.04}, bent(1)),
        ({"served": 0.79}, 0.0),  # inside the paper's range
        ({"outside": 0.91 + 0.16}, bent(2)),
        ({"alive": 0.1}, bent(2)),
        ({"R_c": 16.9 * (8.4 / 16.9 + 0.05)}, bent(1)),
        ({"slow_RAG": 0.46}, bent(1, 0.7)),
        ({"reduction_50": 0.59}, bent(1)),
        ({"gain": 0.01}, UNMET * 2),
        ({"clipped": 0.02}, UNMET),
        ({"clipped": 0.9}, UNMET * 5),  # a bound, so that a search can still compare
        ({"OddsRatio": float("nan")}, float("inf")),  # no harm ever entered: nothing to compare
    ],
)
def test_the_score_by_hand(changes, expected):
    assert score({**PERFECT, **changes}) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("conservative_cost", 0.6, 0.61),
        ("conservative_return", 0.97, 0.98),
        ("moderate_return", 0.99, 1.0),
        ("clipped", 0.01, 0.011),
        ("sensitive", 0.15, 0.149),
        ("sensitive", 0.25, 0.26),
        ("gain", 0.03, 0.029),
        ("RAG_P0", 0.901, 0.89),
        ("RAG_P0", 1.099, 1.11),
        ("RAG_P0_std", 0.16, 0.17),
        ("RAG_P0_std", 0.08, 0.07),
    ],
)
def test_requirements(name, good, bad):
    assert shortfalls({**PERFECT, name: good}) == []
    found = shortfalls({**PERFECT, name: bad})
    assert len(found) == 1 and found[0].startswith(f"{name} {bad:.3g}")


def test_screening_tells_what_is_judged():
    found = screen(SHORT, (1000,), nodes=60, episodes=4)
    derived = {"R_c_kept", *(target.name for target in SIZE_TARGETS)}
    assert {target.name for target in TARGETS} - derived <= set(found)
    assert set(PERFECT) <= set(found)
    assert found == screen(SHORT, (1000,), nodes=60, episodes=4)
    assert np.isfinite(list(found.values())).all()
    assert 0 < found["conservative_cost"] < 1 and found["OddsRatio"] < 1
    assert found["gain"] == pytest.approx(found["ReplayRet"] / found["best"] - 1)


def test_screening_of_two_graphs_is_their_mean():
    one, other = (screen(SHORT, (seed,), nodes=60, episodes=4) for seed in (1000, 1001))
    both = screen(SHORT, (1000, 1001), nodes=60, episodes=4)
    for name in ("RAG", "off_AUC_R", "slow_RAG", "served"):
        assert both[name] == pytest.approx((one[name] + other[name]) / 2)


@pytest.mark.filterwarnings("error")
def test_an_episode_that_never_enters_v_sens_has_no_odds_and_spoils_no_mean():
    rare = SHORT.replace(horizons=(12, 2, 3), delay=1, rates=(0.05, 0.05, 0.05), inside_share=0.1)
    found = screen(rare, (1000,), nodes=60, episodes=12)
    assert 0 < found["OddsRatio"] <= 1


# Settings


def points(count=20):
    rng = np.random.default_rng(0)
    yield from STARTS
    for _ in range(count):
        yield from_box(rng.random(len(SPACE)))


def test_every_setting_survives_its_file():
    for point in points():
        setting = setting_of(point)
        text = setting_text(setting)
        assert Setting.from_dict(tomllib.loads(text)) == setting
        assert max(map(len, text.splitlines())) <= 100
    for start in STARTS:
        assert all(low <= start[name] <= high for name, (low, high) in SPACE.items())


def test_the_box_holds_the_space():
    for point in points():
        assert from_box(to_box(point)) == pytest.approx(point)
        assert np.all((to_box(point) >= -1e-9) & (to_box(point) <= 1 + 1e-9))
    corner = from_box(np.full(len(SPACE), 2.0))
    assert corner == pytest.approx({name: high for name, (_, high) in SPACE.items()})
    middle = from_box(np.full(len(SPACE), 0.5))
    low, high = SPACE["psi_min"]
    assert middle["psi_min"] == pytest.approx(sqrt(low * high))  # equal ratios are equal steps


def test_the_packages_file_is_what_the_command_writes():
    own = Path(str(space.SETTING_FILE)).read_text(encoding="utf-8")
    assert own == setting_text(Setting.default())


def test_a_value_without_a_group_is_named(monkeypatch):
    groups = {k: v for k, v in space._GROUPS.items() if "budget" not in v}
    monkeypatch.setattr(space, "_GROUPS", groups)
    with pytest.raises(ValueError, match=r"no group .* holds \['budget'\]"):
        setting_text(Setting.default())


def test_a_point_becomes_numbers_one_can_remember():
    point = {**STARTS[0], "aggressive": 0.7049, "moderate_share": 0.5, "conservative_share": 0.25,
             "region_size": 4.96, "support": 13.6, "sensitive_high": 0.2249}  # fmt: skip
    setting = setting_of(point)
    assert setting.rates == (0.7, 0.35, 0.17) and setting.regions == "community:5"
    assert setting.support == 14 and (setting.sensitive_low, setting.sensitive_high) == (0.19, 0.22)


# The log


def test_a_log_goes_on(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.add("a", score=float("inf"), error="no")
    log.add("b", score=1.5)
    again = Log(tmp_path / "log.jsonl")
    assert again.entries == {
        "a": {"key": "a", "score": float("inf"), "error": "no"},
        "b": {"key": "b", "score": 1.5},
    }
    again.add("c", score=2)
    assert list(Log(tmp_path / "log.jsonl").entries) == ["a", "b", "c"]


@pytest.mark.parametrize("line", ['{"key": "b", "sc', "", '{"score": 1}', "3", "[]"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text('{"key": "a"}\n' + line + '\n{"key": "c"}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*log.jsonl is damaged; remove it"):
        Log(path)


# The search


class CutError(Exception):
    """What ends a search early."""


@pytest.fixture
def calls(monkeypatch):
    """A made-up platform whose best point is the middle of the space; what was asked of it."""
    made = {"screened": [], "trained": [], "left": 10**6}

    def count(kind, value):
        made["left"] -= 1
        if made["left"] < 0:
            raise CutError
        made[kind].append(value)

    def screened(point, graphs, sizes=()):
        count("screened", (tuple(point.values()), tuple(graphs)))
        far = float(np.square(to_box(point) - 0.5).sum())
        return {"setting": setting_of(point).to_dict(), "score": far}

    def run(setting, method, graph_seed, seed, steps):
        count("trained", (setting, method, graph_seed, seed, steps))
        row = {"RAG": 1.0, "AUC_R": 1.0, "SM_R": 1.0, "OddsRatio": 1.0, "R_c": 16.9, "ASD": 0.0,
               "ReplayReturn": 96.0, "served": 2.0, "outside": 4.0, "late": 8.0}  # fmt: skip
        found = {method: row}
        if method == "GE":
            found["GE"] = {**row, "ReplayReturn": 100.0}
        if method == "RAPO":
            found["RAPO"] = {
                **row, "RAG": 0.33 + 0.01 * (graph_seed - 1025.5) + 0.1 * (seed - 0.5),
                "AUC_R": 0.36, "SM_R": 0.31, "OddsRatio": 0.41, "R_c": 8.4, "served": 1.7,
                "outside": 3.4, "late": 4.0, "ReplayReturn": 82.0,
            }  # fmt: skip
            found["off@rep"] = {**row, "RAG": 0.91, "AUC_R": 0.93, "SM_R": 0.92}
            found["slow-decay"] = {**row, "RAG": 0.38}
            found |= {name: {**row, "ReplayReturn": 78.0} for name in ACTIONS}
        return {"method": method, "found": found, "budgets": {}}

    for module in (search, trained):  # in this process, where the platform is made up
        monkeypatch.setattr(module, "as_they_end", lambda calls, jobs: as_they_end(calls, 1))
    monkeypatch.setattr(search, "screened", screened)
    monkeypatch.setattr(trained, "_trained", run)
    return made


SIZES = {"points": 4, "rounds": 2, "around": 5, "finalists": 2, "steps": 10}


def test_a_search_finds_the_best_and_is_not_done_twice(tmp_path, calls):
    lines = []
    chosen = calibrate(tmp_path, **SIZES, report=lines.append)
    rapo = chosen["found"]["RAPO"]
    assert rapo["RAG"] == pytest.approx(0.33)  # mean of four graphs and two seeds
    assert rapo["ReplayRet"] == pytest.approx(0.82)  # over GE's return
    assert (rapo["served"], rapo["outside"]) == (pytest.approx(0.85), pytest.approx(0.85))
    assert chosen["score"] == pytest.approx(0, abs=1e-9)
    assert json.loads((tmp_path / "chosen.json").read_text()) == json.loads(json.dumps(chosen))
    first = len(STARTS) + 4 + 2 * 5
    assert len(calls["screened"]) == first + min(first, search.SECOND_LOOKS)
    assert len(calls["trained"]) == 2 * 4 * 4 * 2
    assert any("round 2" in line for line in lines)
    before = {kind: len(calls[kind]) for kind in ("screened", "trained")}
    assert calibrate(str(tmp_path), **SIZES) == chosen
    assert {kind: len(calls[kind]) for kind in before} == before


@pytest.mark.parametrize(
    ("method", "name", "value", "expected"),
    [
        ("RAPO", "RAG", 0.41, bent(1, 2)),
        ("RAPO", "R_c", 16.9 * (8.4 / 16.9 + 0.05), bent(1)),
        ("RAPO", "late", 8 * 0.15, bent(1)),
        ("off@rep", "AUC_R", 0.93 * np.exp(0.7), bent(2, 0.5)),
        ("slow-decay", "RAG", 0.54, bent(2, 0.7)),
        ("DR", "ReplayRet", 0.88, bent(2)),
        ("aggressive", "ReplayRet", 0.82 / 1.02, 1.0),  # the gain is 2%, asked are 3%
    ],
)
def test_the_score_of_trained_policies_by_hand(method, name, value, expected):
    row = {"RAG": 1.0, "AUC_R": 1.0, "SM_R": 1.0, "OddsRatio": 1.0, "R_c": 16.9, "served": 1.0,
           "outside": 1.0, "late": 8.0, "ReplayRet": 0.96}  # fmt: skip
    found = {name: dict(row) for name in ("GE", "DR", "PM-ST")}
    found |= {action: {**row, "ReplayRet": 0.75} for action in ACTIONS}
    found["RAPO"] = {**row, "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "OddsRatio": 0.41, "R_c": 8.4,
                     "served": 0.8, "outside": 0.8, "late": 4.0, "ReplayRet": 0.82}  # fmt: skip
    found["off@rep"] = {**row, "RAG": 0.91, "AUC_R": 0.93, "SM_R": 0.92}
    found["slow-decay"] = {**row, "RAG": 0.38}
    assert trained.trained_score(found) == pytest.approx(0, abs=1e-9)
    found[method][name] = value
    assert trained.trained_score(found) == pytest.approx(expected)


def test_rounds_close_in_on_the_best(tmp_path, calls):
    calibrate(tmp_path, **{**SIZES, "rounds": 4, "around": 20})
    entries = Log(tmp_path / "screening.jsonl").entries
    best = [
        min(entry["score"] for key, entry in entries.items() if key.startswith(f"{number}-"))
        for number in range(5)
    ]
    assert best[4] < 0.7 * best[0]


@pytest.mark.parametrize("after", [3, 9, 20, 40])
def test_a_cut_search_goes_on_to_the_same_choice(tmp_path, calls, after):
    whole = calibrate(tmp_path / "whole", **SIZES)
    total = len(calls["screened"]) + len(calls["trained"])
    calls["left"] = after
    with pytest.raises(CutError):
        calibrate(tmp_path / "cut", **SIZES)
    calls["left"] = 10**6
    assert calibrate(tmp_path / "cut", **SIZES) == whole
    # a round is submitted whole before its results are kept: at most that much comes again
    done = len(calls["screened"]) + len(calls["trained"]) - total
    assert total <= done <= total + 24


def test_calibration_keeps_away_from_the_graphs_of_the_tables(tmp_path, calls):
    calibrate(tmp_path, **SIZES)
    used = {seed for _, graphs in calls["screened"] for seed in graphs}
    used |= {graph for _, _, graph, _, _ in calls["trained"]} | {*search.SIZE_GRAPHS}
    assert len(used) >= 20 and min(used) >= 1000
    kinds = (search.SCREEN_GRAPHS, search.WIDE_GRAPHS, search.SIZE_GRAPHS, trained.TRAIN_GRAPHS)
    assert len({graph for kind in kinds for graph in kind}) == sum(map(len, kinds))


def test_finalists_differ():
    def entry(score, **changes):
        middle = from_box(np.full(len(SPACE), 0.5))
        return {"score": score, "point": {**middle, **changes}}

    low, high = SPACE["support"]
    near, far = (low + high) / 2 + 0.05 * (high - low), high
    entries = [entry(1.0), entry(1.1, support=near), entry(1.2, support=far), entry(1.3)]
    assert [e["score"] for e in search.distinct(entries, 2)] == [1.0, 1.2]
    assert [e["score"] for e in search.distinct(entries, 5)] == [1.0, 1.2]
    with pytest.raises(ValueError, match="no setting could be run"):
        search.distinct([entry(float("inf"))], 2)


def test_a_point_that_cannot_be_is_kept_with_its_reason(monkeypatch):
    def refuses(setting, graphs):
        raise ValueError("out of reach")

    monkeypatch.setattr(search, "screen", refuses)
    found = search.screened(STARTS[0], (1000,))
    assert found["score"] == float("inf") and found["error"] == "out of reach"
    assert found["setting"] == setting_of(STARTS[0]).to_dict()


def test_other_sizes_tell_their_reduction(monkeypatch):
    def seen(setting, graphs, nodes=250):
        assert min(graphs) >= 1000
        return {**PERFECT, "RAG": 0.33 if nodes == 250 else nodes / 1000}

    monkeypatch.setattr(search, "screen", seen)
    found = search.screened(STARTS[0], (1000,), (50, 500))["found"]
    assert found["reduction_50"] == pytest.approx(0.95)
    assert found["reduction_500"] == pytest.approx(0.5) and found["RAG"] == 0.33


def test_a_training_of_the_search(monkeypatch):
    monkeypatch.setattr(trained, "PPOConfig", lambda: TINY)
    monkeypatch.setattr(trained, "EPISODES", 2)
    found = trained._trained(SHORT, "RAPO", 1003, 1, 256)
    assert found["method"] == "RAPO" and set(found["budgets"]) == {"trace", "scar"}
    rows = found["found"]
    assert set(rows) == {"RAPO", "off@rep", "slow-decay", *ACTIONS}
    for row in rows.values():
        assert np.isfinite([row[n] for n in ("RAG", "AUC_R", "OddsRatio", "served")]).all()
    assert rows["RAPO"]["OddsRatio"] < 1 == rows["off@rep"]["OddsRatio"]


# The command


def test_the_command_writes_the_setting_only_when_asked(tmp_path, calls, monkeypatch, capsys):
    target = tmp_path / "setting.toml"
    target.write_text("before")
    monkeypatch.setattr(command, "SETTING_FILE", target)
    numbers = {"points": 2, "rounds": 1, "around": 2, "finalists": 1, "jobs": None}
    calibrate_from_words(tmp_path / "log", steps=10, write=False, **numbers)
    assert target.read_text() == "before" and "wrote" not in capsys.readouterr().out
    calibrate_from_words(tmp_path / "log", steps=10, write=True, **numbers)
    chosen = json.loads((tmp_path / "log" / "chosen.json").read_text())
    assert Setting.from_dict(tomllib.loads(target.read_text())) == Setting.from_dict(
        chosen["setting"]
    )
    assert {steps for *_, steps in calls["trained"]} == {10}


@pytest.mark.parametrize("name", ["points", "rounds", "around", "finalists"])
def test_bad_numbers_are_named(tmp_path, calls, name):
    numbers = {"points": 2, "rounds": 1, "around": 2, "finalists": 1, "jobs": None, name: 0}
    with pytest.raises(ValueError, match=f"--{name} must be a whole number >= 1, got 0"):
        calibrate_from_words(tmp_path / "log", steps=10, write=False, **numbers)
    assert calls["screened"] == [] and not (tmp_path / "log").exists()
