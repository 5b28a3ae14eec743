"""Calibration: distances by hand, a search that goes on where it was cut, and its graphs."""

import json
import tomllib
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rapo.agents.config import PPOConfig
from rapo.cascade.setting import Setting
from rapo.experiments import calibrate as module
from rapo.experiments.calibrate import (
    SPACE,
    STARTS,
    Log,
    calibrate,
    calibrate_from_words,
    screening_score,
    setting_of,
    setting_text,
    shortfalls,
    trained_score,
)
from rapo.experiments.paper import METRICS, TABLE1
from rapo.experiments.screening import screen

PERFECT = {
    "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "ReplayRet": 0.82, "OddsRatio": 0.41, "RAG_P0": 1.0,
    "RAG_P0_std": 0.1, "moderate_cost": 0.7, "conservative_cost": 0.3, "moderate_return": 0.96,
    "conservative_return": 0.65, "reach": 10.0, "clipped": 0.0, "sensitive": 0.2,
}  # fmt: skip
SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


# Scores


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 0.0),
        ({"RAG": 0.33 + 0.08}, 1.0),  # one of the paper's stds
        ({"AUC_R": 0.36 - 2 * 0.07}, 4.0),
        ({"ReplayRet": 0.82 + 0.03, "SM_R": 0.31 + 0.06}, 2.0),
        ({"OddsRatio": 0.41 + 0.08}, 1.0),
        ({"moderate_return": 0.96 - 0.04}, 1.0),
        ({"conservative_return": 0.65 + 3 * 0.05}, 9.0),
        ({"reach": 3.0, "moderate_cost": 0.1}, 0.0),  # told, not judged
        ({"clipped": 0.02}, float("inf")),
        ({"OddsRatio": float("nan")}, float("inf")),  # no harm ever entered: nothing to compare
    ],
)
def test_screening_score_by_hand(changes, score):
    assert screening_score({**PERFECT, **changes}) == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "good", "bad", "words"),
    [
        ("conservative_cost", 0.6, 0.61, "conservative costs more than 0.6"),
        ("clipped", 0.01, 0.011, "more than 1% of the edges clipped"),
        ("sensitive", 0.15, 0.149, "V_sens outside"),
        ("sensitive", 0.25, 0.251, "V_sens outside"),
        ("RAG_P0", 0.901, 0.89, "RAG under P0 not 1"),
        ("RAG_P0", 1.099, 1.11, "RAG under P0 not 1"),
        ("RAG_P0_std", 0.2, 0.21, "spread of RAG under P0"),
    ],
)
def test_requirements(name, good, bad, words):
    assert shortfalls({**PERFECT, name: good}) == []
    found = shortfalls({**PERFECT, name: bad})
    assert len(found) == 1 and found[0].startswith(words)


def test_trained_score_by_hand():
    found = {
        method: {m: TABLE1[method][m][0] for m in METRICS} | {"OddsRatio": 0.41}
        for method in module.TRAINED
    }
    assert trained_score(found) == pytest.approx(0)
    found["RAPO"]["OddsRatio"] = 0.41 + 0.16
    found["GE"]["OddsRatio"] = 9.0  # of RAPO alone it is asked
    found["PM-ST"]["RAG"] += 0.10
    found["DR"]["ReplayRet"] -= 3 * 0.04
    assert trained_score(found) == pytest.approx(4 + 1 + 9)


def test_screening_tells_what_is_judged():
    found = screen(SHORT, (1000,), nodes=40, episodes=4)
    assert set(found) == set(PERFECT)
    assert found == screen(SHORT, (1000,), nodes=40, episodes=4)
    assert np.isfinite(list(found.values())).all()
    assert 0 < found["conservative_cost"] < found["moderate_cost"] < 1
    assert found["OddsRatio"] < 1


# Settings


def points(count=20):
    rng = np.random.default_rng(0)
    yield from STARTS
    for _ in range(count):
        yield {name: rng.uniform(*bounds) for name, bounds in SPACE.items()}


def test_every_setting_survives_its_file():
    for point in points():
        setting = setting_of(point)
        text = setting_text(setting)
        assert Setting.from_dict(tomllib.loads(text)) == setting
        assert max(map(len, text.splitlines())) <= 100
    for start in STARTS:
        assert all(low <= start[name] <= high for name, (low, high) in SPACE.items())


def test_the_packages_file_is_what_the_command_writes():
    own = Path(str(module.SETTING_FILE)).read_text(encoding="utf-8")
    assert own == setting_text(Setting.default())


def test_a_value_without_a_group_is_named(monkeypatch):
    groups = {k: v for k, v in module._GROUPS.items() if "budget" not in v}
    monkeypatch.setattr(module, "_GROUPS", groups)
    with pytest.raises(ValueError, match=r"no group .* holds \['budget'\]"):
        setting_text(Setting.default())


def test_a_point_becomes_numbers_one_can_remember():
    point = {**STARTS[0], "aggressive": 0.7049, "moderate_share": 0.5, "region_size": 4.96,
             "straddle": 0.49, "support": 13.6, "kappa_s": 0.17049}  # fmt: skip
    setting = setting_of(point)
    assert setting.rates == (0.7, 0.35, 0.15) and setting.regions == "community:5"
    assert setting.straddle is False and setting.support == 14 and setting.kappa_s == 0.17


# The log


def test_a_log_goes_on(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.add("a", score=float("inf"), error="no")
    log.add("b", score=1.5)
    again = Log(tmp_path / "log.jsonl")
    assert again.known == {
        "a": {"key": "a", "score": float("inf"), "error": "no"},
        "b": {"key": "b", "score": 1.5},
    }
    again.add("c", score=2)
    assert list(Log(tmp_path / "log.jsonl").known) == ["a", "b", "c"]


@pytest.mark.parametrize("line", ['{"key": "b", "sc', "", '{"score": 1}', "3", "[]"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text('{"key": "a"}\n' + line + '\n{"key": "c"}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*log.jsonl is damaged; remove it"):
        Log(path)


# The search


class Inline:
    """An executor that runs here and now."""

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


class CutError(Exception):
    """What ends a search early."""


@pytest.fixture
def calls(monkeypatch):
    """A made-up platform whose best point is the middle of the space; what was asked of it."""
    made = {"screened": [], "trained": [], "left": 10**6}

    @contextmanager
    def pool(jobs=None):
        yield Inline()

    def count(kind, value):
        made["left"] -= 1
        if made["left"] < 0:
            raise CutError
        made[kind].append(value)

    def screened(point, graphs=module.SCREEN_GRAPHS):
        count("screened", (tuple(point.values()), tuple(graphs)))
        far = sum(
            ((point[n] - (low + high) / 2) / (high - low)) ** 2 for n, (low, high) in SPACE.items()
        )
        return {"setting": setting_of(point).to_dict(), "score": far}

    def trained(setting, method, graph_seed, steps):
        count("trained", (setting, method, graph_seed, steps))
        off = 0.0 if method == "GE" else setting.budget - 0.9  # GE pays nothing
        rag = TABLE1[method]["RAG"][0] + off + 0.01 * (graph_seed - 1004)
        worth = {"GE": 100.0, "DR": 96.0, "PM-ST": 96.0, "RAPO": 82.0}[method]
        row = {m: TABLE1[method][m][0] for m in METRICS if m != "ReplayRet"}
        found = {**row, "RAG": rag, "ReplayReturn": worth, "OddsRatio": 0.41}
        return {"method": method, "found": found, "budgets": {}}

    monkeypatch.setattr(module, "pool", pool)
    monkeypatch.setattr(module, "_screened", screened)
    monkeypatch.setattr(module, "_trained", trained)
    return made


SIZES = {"points": 4, "rounds": 2, "around": 5, "finalists": 2, "steps": 10}


def test_a_search_finds_the_best_and_is_not_done_twice(tmp_path, calls):
    told = []
    chosen = calibrate(tmp_path, **SIZES, tell=told.append)
    assert chosen["setting"]["budget"] == 0.9  # where RAG is Table 1's
    assert chosen["found"]["RAPO"]["RAG"] == pytest.approx(0.33)  # mean of three graphs
    assert chosen["found"]["RAPO"]["ReplayRet"] == pytest.approx(0.82)  # over GE's return
    assert chosen["score"] == pytest.approx(0, abs=1e-9)
    assert json.loads((tmp_path / "chosen.json").read_text()) == json.loads(json.dumps(chosen))
    first = len(STARTS) + 4 + 2 * 5
    assert len(calls["screened"]) == first + min(first, module.SECOND_LOOKS)
    # two finalists at the middle budget, then one at the others, where GE's is known
    assert len(calls["trained"]) == 2 * 4 * 3 + 2 * 3 * 3
    assert any("round 2" in words for words in told)
    before = {kind: len(calls[kind]) for kind in ("screened", "trained")}
    assert calibrate(tmp_path, **SIZES) == chosen
    assert {kind: len(calls[kind]) for kind in before} == before


def test_rounds_close_in_on_the_best(tmp_path, calls):
    calibrate(tmp_path, **{**SIZES, "rounds": 4, "around": 20})
    entries = Log(tmp_path / "screening.jsonl").known
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
    used |= {seed for _, _, seed, _ in calls["trained"]}
    assert len(used) >= 12 and min(used) >= 1000
    assert not {*module.SCREEN_GRAPHS} & {*module.TRAIN_GRAPHS}


def test_finalists_differ(monkeypatch):
    def entry(score, **changes):
        middle = {name: (low + high) / 2 for name, (low, high) in SPACE.items()}
        return {"score": score, "point": {**middle, **changes}}

    low, high = SPACE["support"]
    near, far = (low + high) / 2 + 0.05 * (high - low), high
    entries = [entry(1.0), entry(1.1, support=near), entry(1.2, support=far), entry(1.3)]
    assert [e["score"] for e in module._distinct(entries, 2)] == [1.0, 1.2]
    assert [e["score"] for e in module._distinct(entries, 5)] == [1.0, 1.2]
    with pytest.raises(ValueError, match="no setting satisfies the requirements"):
        module._distinct([entry(float("inf"))], 2)


def test_a_point_that_cannot_be_is_kept_with_its_reason(monkeypatch):
    def refuses(setting, graphs):
        raise ValueError("out of reach")

    monkeypatch.setattr(module, "screen", refuses)
    found = module._screened(STARTS[0])
    assert found["score"] == float("inf") and found["error"] == "out of reach"
    assert found["setting"] == setting_of(STARTS[0]).to_dict()


def test_a_training_of_the_search(monkeypatch):
    monkeypatch.setattr(module, "PPOConfig", lambda: TINY)
    found = module._trained(SHORT, "RAPO", 1003, 256)
    assert found["method"] == "RAPO" and set(found["budgets"]) == {"trace", "scar"}
    assert np.isfinite([found["found"][n] for n in ("RAG", "AUC_R", "SM_R", "OddsRatio")]).all()
    assert found["found"]["OddsRatio"] < 1


# The command


def test_the_command_writes_the_setting_only_when_asked(tmp_path, calls, monkeypatch, capsys):
    target = tmp_path / "setting.toml"
    target.write_text("before")
    monkeypatch.setattr(module, "SETTING_FILE", target)
    numbers = {"points": 2, "rounds": 1, "around": 2, "finalists": 1, "jobs": None}
    calibrate_from_words(tmp_path / "log", steps="1e1", write=False, **numbers)
    assert target.read_text() == "before" and "wrote" not in capsys.readouterr().out
    calibrate_from_words(tmp_path / "log", steps="1e1", write=True, **numbers)
    chosen = json.loads((tmp_path / "log" / "chosen.json").read_text())
    assert Setting.from_dict(tomllib.loads(target.read_text())) == Setting.from_dict(
        chosen["setting"]
    )
    assert {steps for *_, steps in calls["trained"]} == {10}


@pytest.mark.parametrize("name", ["points", "rounds", "around", "finalists"])
def test_bad_numbers_are_named(tmp_path, calls, name):
    numbers = {"points": 2, "rounds": 1, "around": 2, "finalists": 1, "jobs": None, name: 0}
    with pytest.raises(ValueError, match=f"--{name} must be a whole number >= 1, got 0"):
        calibrate_from_words(tmp_path / "log", steps="10", write=False, **numbers)
    assert calls["screened"] == [] and not (tmp_path / "log").exists()
