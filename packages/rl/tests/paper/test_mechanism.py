"""The mechanism study on made-up results, checked by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rapo.cascade.setting import EXPOSURE, REPLAY, Setting
from rapo.paper.presets import SMOKE
from rapo.paper.reproduce import study
from rapo.paper.results import Results
from rapo.paper.studies.mechanism import correlation, measures
from rapo.paper.studies.mechanism.plan import repeated
from rapo.paper.studies.table1.plan import twins
from rapo.paper.studies.verdicts import DIFFERS, HOLDS

NAN = float("nan")
STEPS = np.arange(0, 1200, 10)
TWO = replace(SMOKE, graph_seeds=(0, 1), episodes=4)
HORIZONS = TWO.setting.horizons


def episodes_of(name, seed):
    """Four episodes of a method: RAPO contracts and is suppressed, the others replay in full."""
    rapo = name.startswith("RAPO")
    bent = rapo or name == "off@rep"
    spread = np.array([0.0, 0.1, 0.2, 0.3]) + 0.01 * seed
    odds = 0.3 + spread if rapo else np.ones(4)
    inside = 1.0 if bent else 4.0
    out = {
        "episode": [0, 1, 2, 3],
        "stimulus": [1, 2, 3, 4],
        "RAG": (0.2 + spread if rapo else np.ones(4)),
        "AUC_R": np.ones(4),
        "SM_R": (0.1 + spread[::-1] if rapo else np.ones(4)),
        "ReplayReturn": np.ones(4),
        "OddsRatio": odds,
        "R_c": np.full(4, 8.0 if rapo else 16.0 + seed),
        "ASD": np.full(4, {"GE": 0.0, "PM-ST": 0.3, "RAPO": 0.02}.get(name, 0.0)),
        "GatingRate": np.full(4, 0.5 if rapo else 0.0),
        "peak_exposure": np.full(4, 20.0),
        "peak_replay": np.full(4, 8.0 if rapo else 20.0),
        "reach_exposure": np.full(4, inside + 6),
        "reach_replay": np.full(4, 1.0 + 3 if rapo else 10.0),
        "inside_exposure": np.full(4, inside),
        "inside_replay": np.full(4, 1.0 if rapo else 4.0),
        "served_exposure": np.full(4, 0.5),
        "served_replay": np.full(4, 0.4),
        "breadth_replay": np.full(4, 30.0 if rapo else 40.0),
    }
    for phase in ("exposure", "replay"):
        law = (0.5, 0.5, 0.0) if rapo else (1.0, 0.0, 0.0)
        out |= {f"action{a}_{phase}": np.full(4, p) for a, p in enumerate(law)}
    return out


def curves_of(name):
    n = len(STEPS)
    bent = np.ones(n)
    if name in ("RAPO", "off@rep"):
        bent[STEPS < 700] = 0.5
    if name == "RAPO":
        bent[:] = 0.5
    values = {
        "reach": np.where(STEPS >= 700, 4.0 if name == "RAPO" else 10.0, 10.0),
        "sensitive_mass": np.where(STEPS >= 700, 1.0 if name == "RAPO" else 4.0, 4.0),
        "odds_ratio": bent,
        "scar_mass": np.minimum(STEPS / 100, 5.0),
    }
    out = {"episodes": 4, "step": STEPS, "end": STEPS + 10}
    for trace, mean in values.items():
        out |= {trace: mean, f"{trace}_std": np.zeros(n)}
    return out


@pytest.fixture
def write(write_result):
    """Writes all results of the study, each perhaps changed first."""
    return lambda *words: written(write_result, *words)


def written(write_result, root, preset, change=lambda name, seed, episodes, curves: None):
    for task in study("mechanism").plan(preset):
        name, seed = task.name, task.policy.config.graph_seed
        episodes, curves = episodes_of(name, seed), curves_of(name)
        episodes = {k: np.resize(np.array(v, float), task.episodes) for k, v in episodes.items()}
        change(name, seed, episodes, curves)
        curves["episodes"] = task.episodes
        write_result(root, task, episodes, curves=curves)
    return Results(root, preset)


def rows_of(preset):
    rows = {m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in preset.methods}
    return rows | {"P0-twin": twins(preset)}


def curves_by_method(results):
    return {m: results.curves(row) for m, row in rows_of(results.preset).items()}


def frames_of(results):
    return {m: results.episodes(row) for m, row in rows_of(results.preset).items()}


def claim(section, words):
    found = [c for c in section.claims if words in c.statement]
    assert len(found) == 1, [c.statement for c in section.claims]
    return found[0]


# Measures


def test_plan_adds_only_repeats_of_rapo_to_table_1():
    keys = [set(study(name).plan(SMOKE)) for name in ("mechanism", "table1")]
    assert keys[0] - keys[1] == set(repeated(SMOKE))


def test_pooled_std_is_that_of_all_episodes(tmp_path, write):
    graphs = [np.array([0.0, 1.0, 2.0, 5.0]), np.array([3.0, 3.0, 6.0, 4.0])]

    def change(name, seed, episodes, curves):
        curves["odds_ratio"][:] = graphs[seed].mean()
        curves["odds_ratio_std"][:] = graphs[seed].std(ddof=1)
        if seed == 1:
            curves["odds_ratio"][3] = curves["odds_ratio_std"][3] = NAN
        curves["odds_ratio"][5] = NAN

    curves = curves_by_method(write(tmp_path, TWO, change))["RAPO"]
    curve = measures.pooled(curves, "odds_ratio")
    whole = np.concatenate(graphs)
    assert curve["mean"][0] == pytest.approx(3.0) == whole.mean()
    assert curve["std"][0] == pytest.approx(whole.std(ddof=1), rel=5e-5)
    assert curve["mean"][3] == pytest.approx(2.0)  # the graph that knows it, alone
    assert curve["std"][3] == pytest.approx(graphs[0].std(ddof=1), rel=5e-5)
    assert np.isnan(curve["mean"][5]) and np.isnan(curve["std"][5])


def test_in_phase_counts_from_the_start_of_the_phase(tmp_path, write):
    curves = curves_by_method(write(tmp_path, TWO))["RAPO"]
    part = measures.in_phase(measures.pooled(curves, "reach"), HORIZONS, REPLAY)
    assert len(part) == 50
    assert part["step"].iloc[0] == 0 and part["end"].iloc[-1] == 500


def test_injected_is_law_times_rates():
    frame = pd.DataFrame({f"action{a}_replay": [p, 0.0] for a, p in enumerate((0.2, 0.3, 0.5))})
    found = measures.injected(frame, (0.7, 0.35, 0.15), REPLAY)
    assert found.tolist() == pytest.approx([0.2 * 0.7 + 0.3 * 0.35 + 0.5 * 0.15, 0])
    assert measures.injected(frame, (0.7, 0.35, 0.15), EXPOSURE).isna().all()


def test_replay_over_exposure_is_a_ratio_of_means():
    frame = pd.DataFrame(
        {"graph_seed": [0, 0, 1], "peak_exposure": [1.0, 3.0, 0.0], "peak_replay": [3.0, 1.0, 1.0]}
    )
    found = measures.replay_over_exposure(frame, "peak")
    assert found[0] == 1.0  # the mean of ratios would be 5/3
    assert np.isnan(found[1])


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([[0.5]], "suppressed"),
        ([[1.0], [0.5]], "suppressed"),
        ([[0.9], [1.1]], "full"),
        ([[1.4]], "amplified"),
        ([[0.1, 1.5]], "full"),  # far below 1 on average, but the interval holds 1
        ([[0.50, 0.52, 0.51]], "suppressed"),
        ([[NAN]], "full"),
    ],
)
def test_verdict_of(ratios, word):
    assert measures.verdict_of(ratios) == word


@pytest.mark.parametrize(
    ("shift", "exposure", "replay", "word"),
    [
        (0.0, 1.0, 1.0, "neither"),
        (0.3, 1.0, 1.0, "actions"),
        (0.0, 0.5, 0.4, "kernel"),
        (0.3, 0.5, 0.4, "kernel and actions"),
        (0.0, 0.5, 1.0, "kernel of Exposure"),
        (NAN, 1.0, 1.0, "actions unknown"),
    ],
)
def test_changed_between(shift, exposure, replay, word):
    assert measures.changed_between(shift, exposure, replay) == word


def test_compounding_by_hand(tmp_path, write):
    curves = curves_by_method(write(tmp_path, TWO))
    steps = measures.compounding(curves["RAPO"], curves["P0-twin"], HORIZONS)
    assert steps["mass_ratio"].tolist() == pytest.approx([0.25] * 50)
    assert steps["odds_ratio"].tolist() == pytest.approx([0.5] * 50)
    assert steps["power"][0] == pytest.approx((1 - 0.5**10) / 10)  # 1/2 + 1/4 + ... over ten steps


def test_depth_of_a_quarter_at_a_half_is_two(tmp_path, write):
    depth = measures.depths(frames_of(write(tmp_path, TWO)))
    assert depth["mass_ratio"].tolist() == [0.25, 0.25]
    assert depth["depth"].tolist() == pytest.approx([2.0, 2.0])


def often_of(results):
    return results.episodes(repeated(results.preset))


def test_correlations_by_hand(tmp_path, write):
    results = write(tmp_path, TWO)
    found = correlation.correlations(frames_of(results), often_of(results))
    table = found.set_index(["metric", "level"])
    assert table.loc[("RAG", "episodes"), "r"] == pytest.approx(1.0)
    assert table.loc[("RAG", "episodes"), "n"] == 8
    assert table.loc[("SM_R", "episodes within graphs"), "r"] == pytest.approx(-1.0)
    assert np.isnan(table.loc[("RAG", "graph means"), "r"])  # two graphs are too few
    assert table.loc[("RAG", "graph means of all methods"), "n"] == 8  # four methods, no twin
    assert table.loc[("RAG", "stimulus means"), "n"] == 8  # four stimuli on two graphs
    assert table.loc[("SM_R", "stimulus means"), "r"] == pytest.approx(-1.0, abs=0.02)
    assert table.loc[("RAG", "episodes"), "chance"] == pytest.approx(0.0, abs=1e-12)


def test_chance_is_what_a_stimulus_leaves_open():
    rng = np.random.default_rng(0)
    graph, stimulus = np.repeat([0, 1], 4000), np.tile(np.arange(20), 400)
    own, noise = rng.normal(size=(2, 20)), 2 * rng.normal(size=8000)
    frame = pd.DataFrame(
        {"graph_seed": graph, "stimulus": stimulus, "RAG": own[graph, stimulus] + noise}
    )
    share = 4 / (4 + own.var())
    assert correlation.chance(frame, "RAG") == pytest.approx(share, abs=0.02)
    assert np.isnan(correlation.chance(frame[:20], "RAG"))  # each stimulus once


def test_a_stimulus_that_came_once_has_no_mean():
    frame = pd.DataFrame(
        {"graph_seed": 0, "stimulus": [1, 1, 2], "OddsRatio": [0.2, 0.4, 1.0],
         "RAG": [1.0, 3.0, 5.0], "AUC_R": 1.0, "SM_R": 1.0}
    )  # fmt: skip
    means = correlation.stimulus_means(frame)
    assert means.index.tolist() == [(0, 1)]
    assert means.loc[(0, 1), "OddsRatio"] == pytest.approx(0.3) and means.loc[(0, 1), "RAG"] == 2


def test_sustained_compares_the_halves_after_the_start(tmp_path, write):
    def change(name, seed, episodes, curves):
        replay = STEPS - 700
        curves["reach"] = np.where(replay < 50, 100.0, np.where(replay < 250, 5.0, 3.0))
        curves["sensitive_mass"] = np.ones(len(STEPS))

    curves = curves_by_method(write(tmp_path, TWO, change))["RAPO"]
    assert measures.sustained(curves, HORIZONS) == 0.5


def test_activity_by_hand(tmp_path, write):
    results = write(tmp_path, TWO)
    acts = measures.activity(curves_by_method(results), frames_of(results), TWO.setting)
    acts = acts.set_index("method")
    rates = Setting.default().rates
    assert acts.loc["RAPO", "injected_replay"] == pytest.approx((rates[0] + rates[1]) / 2)
    assert acts.loc["GE", "injected_replay"] == pytest.approx(rates[0])
    assert acts.loc["RAPO", "outside_replay"] == 3.0
    assert acts.loc["GE", "outside_replay"] == 6.0


# The section


def test_section_and_its_verdicts(tmp_path, write):
    section = study("mechanism").analyse(write(tmp_path, TWO))
    assert [name for name, _, _ in section.figures] == [
        "odds_ratio", "scar_mass", "reach_inside_outside", "compounding",
    ]  # fmt: skip
    rows = section.files["mechanism"].set_index("method")
    assert rows["replay"].to_dict() == {
        "GE": "full", "PM-ST": "full", "RAPO": "suppressed", "off@rep": "amplified",
        "P0-twin": "full",
    }  # fmt: skip
    assert rows.loc["RAPO", "changed"] == "kernel"
    assert rows.loc["off@rep", "changed"] == "kernel of Exposure"
    assert rows.loc["PM-ST", "changed"] == "actions"
    assert rows.loc["RAPO", "OddsRatio"] == pytest.approx(0.455)
    assert claim(section, "mean odds ratio").verdict == HOLDS
    assert claim(section, "only through").verdict == HOLDS
    assert claim(section, "containment radius").verdict == HOLDS
    assert " 0.49 " in claim(section, "containment radius").ours  # (8/16 + 8/17) / 2
    assert claim(section, "ASD of GE").verdict == HOLDS
    assert claim(section, "ASD of PM-ST").verdict == DIFFERS
    over = claim(section, "over episodes")
    assert (over.verdict == HOLDS) is (0.77 <= float(over.ours[:4]) <= 0.97)
    assert claim(section, "compounds").verdict == HOLDS
    rates = Setting.default().rates
    kept = (rates[0] + rates[1]) / 2 / rates[0]
    assert claim(section, "injection rate").ours.startswith(f"{kept:.2f}")
    inside = 0.78 <= round(kept, 2) <= 0.91
    assert claim(section, "injection rate").verdict == (HOLDS if inside else DIFFERS)
    more = write(
        tmp_path / "more", TWO, lambda name, seed, episodes, curves: episodes.update(
            {f"action{a}_replay": np.full(len(episodes["RAG"]), a == 0.0) for a in range(3)}
        ) if name == "RAPO" else None,
    )  # fmt: skip
    kept_whole = claim(study("mechanism").analyse(more), "injection rate")
    assert kept_whole.ours.startswith("1.00") and kept_whole.verdict == DIFFERS  # beyond the range
    assert claim(section, "breadth").ours.startswith("0.75")
    local = claim(section, "localised")
    assert local.verdict == HOLDS and "outside 0.50" in local.ours and "inside 0.25" in local.ours
    assert claim(section, "Scar mass").ours.startswith("4.9 after Exposure, 5.0")


def test_suppression_that_nothing_explains_breaks_the_corollary(tmp_path, write):
    def change(name, seed, episodes, curves):
        if name == "GE":
            episodes["peak_replay"][:] = 2.0

    found = claim(study("mechanism").analyse(write(tmp_path, TWO, change)), "only through")
    assert found.verdict == DIFFERS and "GE" in found.why


def test_one_graph_has_no_intervals(tmp_path, write):
    section = study("mechanism").analyse(write(tmp_path, replace(TWO, graph_seeds=(0,))))
    assert set(section.files["mechanism_correlation"]["level"]) == {
        "episodes", "stimulus means",
    }  # fmt: skip
    assert "[" not in claim(section, "mean odds ratio").ours
    assert not any("over graph means" in c.statement for c in section.claims)


@pytest.mark.parametrize("methods", [("GE", "PM-ST"), ("RAPO",), ("GE", "RAPO")])
def test_methods_may_be_missing(tmp_path, methods, write):
    section = study("mechanism").analyse(write(tmp_path, replace(TWO, methods=methods)))
    assert set(section.files["mechanism"]["method"]) == {*methods, "P0-twin"}
    assert any("odds ratio" in c.statement for c in section.claims) == ("RAPO" in methods)


def test_undefined_numbers_stay_undefined(tmp_path, write):
    def change(name, seed, episodes, curves):
        for column in ("OddsRatio", "RAG", "GatingRate", "ASD"):
            episodes[column][0] = NAN
            if seed == 1:
                episodes[column][:] = NAN
        curves["odds_ratio"][STEPS >= 700] = NAN
        for action in range(3):
            del episodes[f"action{action}_replay"]

    section = study("mechanism").analyse(write(tmp_path, TWO, change))
    assert claim(section, "over episodes").ours.endswith("n = 3")
    assert not any("injection rate" in c.statement for c in section.claims)
    for _, _, figure in section.figures:
        figure.canvas.draw()
