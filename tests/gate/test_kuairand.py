"""Real likes and hates: the weights are causal, the gate agrees with its fold, rivals are fair."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from rapo.gate.kuairand.command import PLACES, find_data, run_kuairand, verdict
from rapo.gate.kuairand.data import DELAY, FILE, HOUR, Grain, Stream, Trial, read, sparsity, split
from rapo.gate.kuairand.live import replay
from rapo.gate.kuairand.methods import METHODS, Method, weigh_by_damping
from rapo.gate.kuairand.score import at_level, taken, tune

SETTING = {
    "grain": "bands:8", "hours": 1, "harm": 0.3, "skip": 0.5, "lam": 0.1, "tau": 0.15, "eta": 0.5,
    "w_G": 1.0, "prior": 10.0,
}  # fmt: skip


def made_up(n=1500, seed=0):
    """A stream with a few regions, one of them hated; no real data needed."""
    rng = np.random.default_rng(seed)
    video = rng.integers(0, 12, n)
    hated = rng.random(n) < np.where(video < 3, 0.6, 0.05)
    time = np.sort(1_649_376_000 + rng.uniform(0, 13.5 * 86400, n))
    return Stream(
        user=rng.integers(0, 60, n), video=video,
        day=20220408 + (time // 86400 - 19090).astype(int), time=time,
        duration=1000 * (1 + video), hated=hated,
        skipped=rng.random(n) < np.where(hated, 0.5, 0.1),
    )  # fmt: skip


def real():
    """The folder of the data, or a skip."""
    places = [Path(os.environ.get("RAPO_KUAIRAND", "nowhere")), *PLACES]
    found = next((p for p in places if (p / FILE).exists()), None)
    if found is None:
        pytest.skip(f"no {FILE} in {', '.join(map(str, places))}; set RAPO_KUAIRAND to its folder")
    return found


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_a_row_is_weighted_by_the_past_alone(method):
    stream = made_up()
    cut = 900
    until = stream.time[cut]
    other = made_up(seed=1)
    later = stream.time > until - DELAY * HOUR
    changed = Stream(
        stream.user, stream.video, stream.day, stream.time, stream.duration,
        np.where(later, other.hated, stream.hated), np.where(later, other.skipped, stream.skipped),
    )  # fmt: skip
    before = stream.time <= until
    for setting in method.grid[:: max(1, len(method.grid) // 8)]:
        region = Grain(setting["grain"], stream).regions(stream)
        one, two = (method.weigh(s, region, setting) for s in (stream, changed))
        np.testing.assert_array_equal(one[before], two[before])
        assert one.min() >= 0 and one.max() <= 0.9 + 1e-12


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_what_nobody_reported_is_never_held_back(method):
    stream = made_up()
    quiet = stream.video == 11
    stream = Stream(
        stream.user, stream.video, stream.day, stream.time, stream.duration,
        stream.hated & ~quiet, stream.skipped & ~quiet,
    )  # fmt: skip
    for setting in method.grid[:: max(1, len(method.grid) // 8)]:
        assert not method.weigh(stream, stream.video, setting)[quiet].any()


def test_a_real_gate_weighs_every_row_as_the_fold_does():
    stream = made_up(800)
    for hours in (1, 6):
        setting = {**SETTING, "hours": hours}
        region = Grain("bands:8", stream).regions(stream)
        weights, verified = replay(stream, region, setting)
        assert verified["ok"] and weights.any()
        np.testing.assert_array_equal(weights, METHODS[0].weigh(stream, region, setting))


def test_damping_suppresses_after_six_flaps_and_lets_go_within_an_hour():
    minutes = np.concatenate([np.arange(8), [12, 20, 50, 75]]) + 0.0
    n = minutes.size
    stream = Stream(
        np.arange(n), np.zeros(n, int), np.full(n, 20220408), 60 * minutes, np.ones(n, int),
        np.arange(n) < 8, np.zeros(n, bool),
    )  # fmt: skip
    late = Stream(*(np.concatenate([getattr(stream, f), getattr(stream, f)]) for f in (
        "user", "video", "day", "time", "duration", "hated", "skipped")))  # fmt: skip
    late.time[n:] += DELAY * HOUR
    late.hated[n:] = False
    weights = weigh_by_damping(late, late.video, {"half_life": 900.0, "skip": 0.0})[n:]
    # each flap adds 1000, halved every 15 minutes: the 7th takes it over 6000, and after the 8th
    # it needs 48 minutes to 750
    assert not weights[:6].any()
    assert weights[6:11].all() and not weights[11:].any()


def test_people_and_days_of_the_test_are_not_in_tuning():
    tuning, test = split(made_up(), 0)
    assert not set(tuning.stream.user) & set(test.stream.user)
    assert tuning.stream.day.max() < test.stream.day[test.scored].min()
    assert tuning.scored.any() and not tuning.scored.all()


def test_enforcing_less_scales_both_shares():
    assert at_level(0.4, 0.2, 0.1) == pytest.approx(0.2)
    assert at_level(0.4, 0.05, 0.1) == 0.4
    assert at_level(0.3, 0.0, 0.1) == 0.3


def test_tuning_takes_the_setting_that_takes_most():
    stream = made_up()
    trial = Trial(stream, np.ones(len(stream), bool))
    oracle = lambda s, r, setting: 0.9 * (s.hated if setting["good"] else ~s.hated)  # noqa: E731
    method = Method("oracle", oracle, ({"good": False, "grain": "video"},
                                       {"good": True, "grain": "video"}))  # fmt: skip
    assert all(setting["good"] for setting, _ in tune(method, trial).values())
    hated, liked = taken(trial, 0.9 * stream.hated).shares()
    assert hated == pytest.approx(0.9) and liked == 0


def test_the_verdict_admits_defeat():
    rows = [
        {"method": "gate", "level": 0.05},
        {"method": "a", "level": 0.05, "gate_minus_this": [-2.0, -1.0]},
        {"method": "b", "level": 0.05, "gate_minus_this": [-1.0, 1.0]},
    ]
    assert verdict(rows) == "The gate is worse than a (at 5%); not told apart from b (at 5%)."


def test_data_that_is_not_there_or_not_what_it_should_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_data(None) is None
    with pytest.raises(FileNotFoundError, match="there is no interactions"):
        find_data(tmp_path)
    (tmp_path / FILE).write_text("not gzip")
    with pytest.raises(ValueError, match="cannot be read as likes and hates"):
        read(tmp_path)


def test_the_real_data_are_as_described():
    data = sparsity(read(real()))
    assert (data["rows"], data["people"], data["videos"]) == (41828, 664, 9359)
    assert data["hated_rows"] == 8083
    assert data["hated_rows_hated_before"] < 0.05


def test_a_part_of_the_real_data_gives_tables_and_files(tmp_path):
    folder = real()
    few = tuple(Method(m.name, m.weigh, m.grid[:: max(1, len(m.grid) // 6)]) for m in METHODS)
    out = io.StringIO()
    console = Console(file=out, width=130)
    found = run_kuairand(folder, out=tmp_path, console=console, methods=few, most_rows=6000)
    assert found["live"]["largest_difference_to_fold"] == 0 and found["live"]["verified"]
    assert "Not an exposure log" in out.getvalue()
    table = pd.read_csv(tmp_path / "kuairand.csv")
    assert len(table) == 4 * len(METHODS) and set(table["method"]) == {m.name for m in METHODS}
    assert json.loads((tmp_path / "kuairand.json").read_text())["seed"] == 0
    with pytest.raises(FileExistsError, match=r"kuairand\.csv exists"):
        run_kuairand(folder, out=tmp_path, console=console, methods=few, most_rows=6000)
