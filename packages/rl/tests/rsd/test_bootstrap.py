"""Heavy tails: what is called so, and what it changes in the tables."""

import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import t as student

import rapo
from rapo.rsd import evaluate
from rapo.rsd.bootstrap import HEAVY, judge_tails, ratio_bootstrap, variation
from rapo.rsd.report import text_table, write_report
from rapo.rsd.table import rows_of


def always(x):
    return 0


@pytest.fixture(scope="module")
def light():
    """All stimuli lie inside V_sens, so that their Exposures are alike."""
    setting = rapo.Setting.named("compact")
    graph = rapo.generate(250, 0, setting)
    env = rapo.GraphDiffusionVectorEnv(
        1, graph=graph, setting=setting, deformation="off", fit=False
    )
    return evaluate(env, always, episodes=8, seed=1000, horizons=(60, 20, 60))


@pytest.fixture(scope="module")
def heavy(light):
    """The same episodes, each as much larger as a lognormal law has it, in both phases alike."""
    size = np.random.default_rng(0).lognormal(size=(8, 1)).astype(np.float32)
    traces = {name: trace * size for name, trace in light.traces.items()}
    return dataclasses.replace(light, traces=traces)


def test_variation_is_the_coefficient_of_variation():
    values = np.array([3.0, 5.0, 10.0, np.nan])
    assert variation(values) == pytest.approx(np.std(values[:3], ddof=1) / 6)
    for scale in (100, 0.01):
        assert variation(scale * values) == pytest.approx(variation(values))
    assert (
        np.isnan(variation([1.0])) and np.isnan(variation([0.0, 0.0])) and np.isnan(variation([]))
    )
    assert variation([4.0, 4.0]) == 0


def test_the_largest_variation_decides():
    spread = np.array([1 - 0.99 * HEAVY, 1.0, 1 + 0.99 * HEAVY])
    assert not judge_tails({"RAG": spread}).heavy
    wide = np.array([1 - 1.01 * HEAVY, 1.0, 1 + 1.01 * HEAVY])
    found = judge_tails({"RAG": spread, "AUC_R": wide, "SM_R": [np.nan] * 3})
    assert found.heavy and found.metric == "AUC_R"
    assert found.variation == pytest.approx(1.01 * HEAVY)
    nothing = judge_tails({"RAG": [5.0], "SM_R": []})
    assert not nothing.heavy and nothing.metric is None


def test_a_lognormal_law_is_heavy_and_a_narrow_one_is_not():
    rng = np.random.default_rng(0)
    assert judge_tails({"RAG": rng.lognormal(size=20)}).heavy
    assert judge_tails({"RAG": rng.pareto(1.5, size=20)}).heavy
    assert not judge_tails({"RAG": rng.normal(25, 3, size=20)}).heavy


def test_a_result_judges_its_exposure(light, heavy):
    assert not light.heavy_tailed and heavy.heavy_tailed
    assert light.tails.variation < HEAVY < heavy.tails.variation
    late = {name: trace.copy() for name, trace in light.traces.items()}
    for name in ("reach", "sensitive_mass"):
        late[name][:, light.phase == 2] *= np.arange(1, 9)[:, None] ** 3
    assert not dataclasses.replace(light, traces=late).heavy_tailed  # Replay's spread is a finding


@pytest.mark.parametrize("kind", ["light", "heavy"])
def test_what_stands_first_follows_the_tails(kind, light, heavy, tmp_path):
    result = {"light": light, "heavy": heavy}[kind]
    names = list(rows_of({"a": result}))
    for metric in ("RAG", "AUC_R", "SM_R"):
        step = names.index(f"{metric} pooled") - names.index(metric)
        assert step == (1 if kind == "light" else -1)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(text_table({"a": result}))
    page = write_report({"a": result}, tmp_path / "r.html").read_text(encoding="utf-8")
    for text in (console.export_text(), page[page.index("<tbody>") :]):
        pooled, plain = text.index("SM-R pooled"), text.replace("SM-R pooled", "").index("SM-R")
        assert (pooled < plain) is (kind == "heavy")
        assert f"{result.tails.variation:.2f}" in text  # the note says on what it was decided
        assert ("Heavy tails" in text) is (kind == "heavy")


def test_one_heavy_result_puts_the_pooled_ratios_of_all_first(light, heavy):
    names = list(rows_of({"a": light, "b": heavy}))
    assert names.index("RAG pooled") < names.index("RAG")


def test_pooled_rows_show_the_pooled_numbers(heavy):
    found = heavy.pooled()["AUC_R"]
    (row,) = rows_of({"a": heavy})["AUC_R pooled"]
    assert float(row.value) == pytest.approx(found["ratio"], rel=1e-2) and row.n == "8"
    shown = [float(part) for part in row.interval.strip("[]").split(",")]
    assert shown == pytest.approx(found["ci95"], rel=1e-2)


def test_metrics_that_nobody_asked_for_have_no_row(light):
    names = list(rows_of({"a": light}))
    assert "EventOdds" in names and not {"SM_vs_P0", "Selectivity"} & set(names)


def test_a_single_episode_is_not_judged(light):
    one = dataclasses.replace(
        light,
        frame=light.frame[:1],
        traces={name: trace[:1] for name, trace in light.traces.items()},
    )
    assert not one.heavy_tailed
    assert list(rows_of({"a": one}))[:2] == ["RAG", "RAG pooled"]


@pytest.mark.parametrize(("n", "seed"), [(8, 3), (10, 2)])
def test_the_interval_is_never_narrower_than_students_t(n, seed):
    """Pairs whose resamples understate their spread: the quantile of t decides."""
    rng = np.random.default_rng(seed)
    before = rng.uniform(9, 11, n)
    after = before * rng.uniform(0.4, 0.6, n)
    result = ratio_bootstrap(after, before, rng=0)
    ratio = after.sum() / before.sum()
    error = np.sqrt(n / (n - 1) * ((after - ratio * before) ** 2).sum()) / before.sum()
    factor = np.exp(student.ppf(0.975, n - 1) * error / ratio)
    assert (result.low, result.high) == pytest.approx((ratio / factor, ratio * factor), rel=1e-6)
