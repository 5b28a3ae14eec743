"""Studies on real data: scores are causal, losses are exact, choices see what they may see."""

import numpy as np
import pytest
from benchmarks.effort import Effort
from benchmarks.real import defaults, kuairand, otc, otc_study, report
from benchmarks.real.held_back import auc, held_at, interval, resampled
from benchmarks.real.kuairand import DELAY, HOUR, Grain, Stream, split
from benchmarks.real.kuairand_methods import METHODS, Method
from benchmarks.real.kuairand_study import lifts, mean_lifts, study, tune
from benchmarks.real.otc import KEPT_OUT, Ratings, day_at, kept_out
from benchmarks.real.otc_choose import GATE, Objective, best_of_all, choice_part, climbed
from benchmarks.real.otc_methods import METHODS as OTC_METHODS
from benchmarks.real.otc_study import scored_parts
from benchmarks.topics import gate_real

SETTING = {
    "gate": {"harm": "size", "half_life": 90.0, "shrinkage": 1.0, "base_rate": 0.05, "z": 0.1,
             "scale": 0.4, "lam": 0.6, "tau": 0.1, "eta": 0.01, "delta": 0.999, "w_G": 1.0,
             "w_H": 1.0},
    "rate": {"harm": "one", "half_life": 90.0, "shrinkage": 1.0, "base_rate": 0.05},
    "flap damping": {"harm": "one", "half_life": 30.0},
}  # fmt: skip
SETTING["trace only"] = SETTING["gate"]


def likes(n=1500, seed=0):
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


def trust(n=3000, seed=0):
    """Ratings of a hundred traders, some of them bad; no real data needed."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 100, n)
    bad = rng.random(n) < np.where(target < 15, 0.5, 0.03)
    return Ratings(
        rng.integers(100, 400, n), target, np.where(bad, -rng.integers(1, 11, n), 3),
        np.sort(rng.integers(0, 1000, n)),
    )  # fmt: skip


def folder_of(module):
    """Where the data is, or a skip."""
    found = next((p for p in module.PLACES if (p / module.FILE).exists()), None)
    if found is None:
        pytest.skip(f"no {module.FILE} in {' or '.join(map(str, module.PLACES))}")
    return found


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_a_like_is_scored_by_the_past_alone(method):
    stream, other = likes(), likes(seed=1)
    until = stream.time[900]
    later = stream.time > until - DELAY * HOUR
    changed = Stream(
        stream.user, stream.video, stream.day, stream.time, stream.duration,
        np.where(later, other.hated, stream.hated), np.where(later, other.skipped, stream.skipped),
    )  # fmt: skip
    before = stream.time <= until
    for setting in method.grid[:: max(1, len(method.grid) // 8)]:
        region = Grain(setting["grain"], stream).regions(stream)
        one, two = (
            method.score(s, region, {**setting, "base_rate": 0.1}) for s in (stream, changed)
        )
        np.testing.assert_array_equal(one[before], two[before])
        assert one.any() and not np.array_equal(one, two)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_what_nobody_reported_is_never_held_back(method):
    stream = likes()
    quiet = stream.video == 11
    stream = Stream(
        stream.user, stream.video, stream.day, stream.time, stream.duration,
        stream.hated & ~quiet, stream.skipped & ~quiet,
    )  # fmt: skip
    for setting in method.grid[:: max(1, len(method.grid) // 8)]:
        assert not method.score(stream, stream.video, {**setting, "base_rate": 0.1})[quiet].any()


def test_people_and_days_of_the_test_are_not_in_tuning():
    tuning, test = split(likes(), 0)
    assert not set(tuning.stream.user) & set(test.stream.user)
    assert tuning.stream.day.max() < test.stream.day[test.scored].min()
    assert tuning.scored.any() and not tuning.scored.all()


def test_tuning_takes_the_setting_that_holds_back_most():
    tuning, test = split(likes(), 0)
    oracle = lambda s, r, setting: (s.hated if setting["good"] else ~s.hated) + 0.0  # noqa: E731
    grid = tuple({"good": good, "grain": "video", "skip": 0.0} for good in (False, True))
    assert tune(Method("oracle", oracle, grid), tuning)["good"]
    assert np.isnan(lifts(test, np.zeros(len(test.stream)))).all()


def test_a_study_of_likes_has_a_row_for_each_split_method_and_level():
    few = tuple(Method(m.name, m.score, m.grid[:2]) for m in METHODS)
    rows = study(likes(4000), [0, 1], few)
    assert len(rows) == 2 * len(few) * 4
    assert mean_lifts(rows)["gate"] > 1.5


@pytest.mark.parametrize("name", OTC_METHODS)
def test_a_rating_is_scored_by_the_days_before_it(name):
    ratings, cut = trust(), 500
    rating = np.where(ratings.day >= cut, -ratings.rating, ratings.rating)
    changed = Ratings(ratings.rater, ratings.target, rating, ratings.day)
    one, two = (OTC_METHODS[name](r, SETTING[name]) for r in (ratings, changed))
    known = ratings.day <= cut
    np.testing.assert_array_equal(one[known], two[known])
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("name", OTC_METHODS)
def test_bad_traders_score_higher(name):
    ratings = trust()
    late = ratings.day > 300
    scores = OTC_METHODS[name](ratings, SETTING[name])[late]
    assert auc(scores, ratings.target[late] < 15, np.ones(late.sum())) > 0.9


def test_only_scars_outlast_a_long_silence():
    ratings = Ratings(
        np.arange(12), np.zeros(12, int), np.array([-10] * 6 + [5] * 6),
        np.array([0, 1, 2, 3, 4, 5, 3000, 3001, 3002, 3003, 3004, 3005]),
    )  # fmt: skip
    scores = {name: OTC_METHODS[name](ratings, SETTING[name])[6] for name in OTC_METHODS}
    assert scores["gate"] > 0.01
    assert scores["trace only"] < 1e-6 and scores["flap damping"] < 1e-6


def test_silence_is_the_time_since_the_last_rating():
    ratings = Ratings(*(np.array(x) for x in (
        [1, 2, 3, 4, 5], [7, 8, 7, 7, 8], [1, 1, -1, 1, 1], [0, 5, 5, 70, 70])))  # fmt: skip
    assert ratings.silence.tolist() == [-1, -1, 5, 65, 65]


def test_a_choice_sees_neither_the_later_part_nor_kept_out_targets():
    ratings = trust()
    seen = choice_part(ratings)
    assert seen.day.max() < day_at(ratings, 0.6) <= ratings.day.max()
    assert (seen.target % KEPT_OUT != 0).all() and len(seen)
    later = scored_parts(ratings)
    assert ratings.day[later["later part"]].min() >= day_at(ratings, 0.6)
    assert not (later["later part"] & kept_out(ratings)).any()
    assert later["kept-out targets"].sum() == kept_out(ratings).sum()


def test_the_search_finds_what_is_worth_most():
    def worth(setting):
        return -abs(setting["tau"] - 0.1) - abs(setting["eta"] - 0.01) - abs(setting["z"] - 0.25)

    grid = {"tau": GATE["tau"], "eta": GATE["eta"], "z": GATE["z"]}
    best = {"tau": 0.1, "eta": 0.01, "z": 0.25}
    assert climbed(worth, grid) == best == best_of_all(worth, grid)
    objective = Objective(trust(), 300)
    bad = objective.ratings.bad + 0.0
    assert objective(bad) == pytest.approx(3) and objective(1 - bad) < 0.2


def test_exactly_so_much_of_the_good_is_lost():
    score = np.array([9, 8, 7, 7, 5, 5, 0, 0])
    bad = np.array([1, 0, 1, 0, 1, 0, 1, 0], bool)
    found = held_at(score + 0.0, bad, (0.1, 0.25, 0.5, 0.75, 1.0), np.ones(8))
    # the first bad costs nothing; ties go together; what scores 0 is not held back
    np.testing.assert_allclose(found, [0.25, 0.25, 0.5, 0.75, 0.75])
    assert auc(score + 0.0, bad, np.ones(8)) == pytest.approx((4 + 2.5 + 1.5 + 0.5) / 16)


def test_weights_count_rows_as_often():
    rng = np.random.default_rng(0)
    score, bad = rng.integers(1, 9, 200) + 0.0, rng.random(200) < 0.3
    times = rng.integers(0, 4, 200)
    again = np.repeat(np.arange(200), times)
    ones = np.ones(again.size)
    levels = (0.05, 0.3)
    np.testing.assert_allclose(
        held_at(score, bad, levels, times + 0.0), held_at(score[again], bad[again], levels, ones)
    )
    assert auc(score, bad, times + 0.0) == pytest.approx(auc(score[again], bad[again], ones))
    draws = resampled(rng.integers(0, 20, 200), 50, 0)
    assert draws.shape == (50, 200)
    assert interval(np.full(100, np.nan)) is None


@pytest.mark.parametrize("module", [kuairand, otc])
def test_data_that_is_not_there_or_not_what_it_should_be(tmp_path, module):
    with pytest.raises(FileNotFoundError, match="there is no"):
        module.read(tmp_path)
    (tmp_path / module.FILE).write_text("not gzip")
    with pytest.raises(ValueError, match="cannot be read as"):
        module.read(tmp_path)


def test_the_likes_and_hates_are_as_described():
    data = kuairand.sparsity(kuairand.read(folder_of(kuairand)))
    assert (data["rows"], data["people"], data["videos"]) == (41828, 664, 9359)
    assert data["hated_rows"] == 8083
    assert data["hated_rows_hated_before"] < 0.05


def test_the_ratings_are_as_described():
    ratings = otc.read(folder_of(otc))
    assert len(ratings) == 35592
    assert ratings.bad.mean() == pytest.approx(0.1, abs=0.001)
    assert np.unique(np.stack([ratings.rater, ratings.target]), axis=1).shape[1] == len(ratings)
    assert (np.diff(ratings.day) >= 0).all()


def test_the_recommended_settings_act_as_they_should():
    found = {row["case"]: row for row in defaults.table(seeds=2)}
    (usual,) = [row for name, row in found.items() if name.startswith("1% reported")]
    assert usual["psi"] == 1 and usual["lowest_psi"] > 0.98 and usual["scarred"] == 0
    assert found["1%, 0.2 a tick, a week"]["psi"] == 1
    bad = found["5%, 100 a tick, a day"]
    assert bad["psi"] < 0.6 and bad["scarred"] == 1
    assert found["20%, 100 a tick, a day"]["psi"] < 0.11
    alone = found["all of 0.2 a tick reported by one person, a day"]
    assert alone["lowest_psi"] == 1
    quiet, busy = (found[f"20%, {n} a tick, a day"]["G"] for n in ("1", "1000"))
    assert busy - quiet < 0.2


def test_without_the_data_the_topic_says_what_it_misses(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "OUT", tmp_path)
    for module in (kuairand, otc):
        monkeypatch.setattr(module, "find", lambda: None)
    monkeypatch.setattr(defaults, "table", lambda: [])
    rows = gate_real.measure(Effort())
    assert [row.verdict for row in rows] == ["not measured"] * 2
    assert "edges.csv.gz" in rows[0].note and "interactions.csv.gz" in rows[1].note


def test_tables_and_the_figure_are_written(tmp_path):
    likes_rows = study(
        likes(3000), [0], tuple(Method(m.name, m.score, m.grid[:1]) for m in METHODS)
    )
    traders_rows = otc_study.study(trust(2000), SETTING, resamples=20)
    file = report.write_table(traders_rows, "traders.csv", tmp_path)
    assert {"held", "held_low", "held_high"} <= set(file.read_text().splitlines()[0].split(","))
    assert len(file.read_text().splitlines()) == 1 + len(traders_rows) == 1 + 3 * 3 * 5 * 4
    report.draw(traders_rows, likes_rows, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
