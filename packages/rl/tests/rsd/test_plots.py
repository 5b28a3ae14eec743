from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from rapo.cascade.graph import Graph
from rapo.rsd import plots
from rapo.rsd.result import METRICS, TRACES, RSDResult


def make(
    graph: Graph | None = None,
    *,
    episodes: int = 4,
    horizons: tuple[int, int, int] = (20, 8, 20),
    missing: tuple[str, ...] = (),
    scars: bool = True,
    seed: int = 0,
) -> RSDResult:
    """A result made of noise; the traces named in `missing` are NaN."""
    rng = np.random.default_rng(seed)
    phase = np.repeat([0, 1, 2], horizons)
    traces = {name: rng.random((episodes, len(phase))).astype(np.float32) for name in TRACES}
    for name in missing:
        traces[name][:] = np.nan
    frame = pd.DataFrame(
        {
            "episode": range(episodes),
            "seed": range(episodes),
            "stimulus": 1,
            **{name: rng.random(episodes) for name in METRICS},
            "undefined_odds": 3,
        }
    )
    return RSDResult(
        frame=frame,
        traces=traces,
        phase=phase,
        scars=rng.random((episodes, 6)).astype(np.float32) if scars else None,
        cascade=None if graph is None else rng.random((len(phase), graph.n)) < 0.2,
        graph=graph,
        manifest={} if graph is None else {"graph_hash": graph.hash, "seeds": [0, 1]},
    )


def lines(ax) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_ydata() for line in ax.lines}


def words(figure) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def overlapping(figure) -> list[tuple[str, str]]:
    """Pairs of visible texts whose boxes intersect."""
    from matplotlib.text import Text

    figure.canvas.draw()
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    boxes = []
    for text in shown:
        box = text.get_window_extent()
        if text.get_text().endswith("\n"):  # a title whose second line is the subtitle's place
            box.y0 = box.y0 + box.height / 2
        boxes.append(box)
    return [
        (shown[i].get_text(), shown[j].get_text())
        for i in range(len(shown))
        for j in range(i)
        if boxes[i].overlaps(boxes[j])
    ]


@pytest.mark.parametrize(
    ("plot", "trace"), [(plots.plot_reach, "reach"), (plots.plot_scar_mass, "scar_mass")]
)
def test_curves_are_the_mean_over_episodes(plot, trace):
    results = {"a": make(), "b": make(seed=1)}
    figure, ax = plot(results)
    drawn = lines(ax)
    for name, result in results.items():
        np.testing.assert_allclose(drawn[name], result.traces[trace].mean(axis=0), rtol=1e-5)
    assert {"exposure", "washout", "replay"} <= set(words(figure))
    assert not overlapping(figure)


def test_band_is_the_middle_half():
    result = make(episodes=9)
    _, ax = plots.plot_reach(result)
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = np.quantile(result.traces["reach"].astype(float), (0.25, 0.75), axis=0)
    assert edge.min() == pytest.approx(low.min())
    assert edge.max() == pytest.approx(high.max())


def test_one_result_needs_no_legend():
    figure, _ = plots.plot_reach(make())
    assert not figure.legends


def test_a_fifth_name_begins_a_second_line_and_the_curves_keep_their_height():
    few, _ = plots.plot_reach({name: make() for name in "abcd"})
    many, _ = plots.plot_reach({name: make() for name in "abcde"})
    wordy, _ = plots.plot_reach({name * 40: make() for name in "ab"})
    assert [f.legends[0]._ncols for f in (few, many, wordy)] == [4, 4, 1]
    alone, _ = plots.plot_reach(make())
    assert few.get_figheight() == alone.get_figheight()
    assert many.get_figheight() == pytest.approx(few.get_figheight() + 0.2)
    assert wordy.get_figheight() == pytest.approx(few.get_figheight() + 0.2)


def test_undefined_steps_are_left_out():
    result = make()
    values = result.traces["odds_ratio"]
    values[0, 30:] = np.nan
    values[:, 35] = np.nan
    values[1:, 36] = np.nan  # one episode: a mean without a spread
    _, ax = plots.plot_odds_ratio({"a": result})
    drawn = lines(ax)["a"]
    assert len(drawn) == 20
    np.testing.assert_allclose(drawn[5], values[1:, 33].mean(), rtol=1e-5)
    assert np.isnan(drawn[35 - 28])
    assert drawn[36 - 28] == pytest.approx(values[0, 36], nan_ok=True)


def test_odds_ratio_shows_one():
    _, ax = plots.plot_odds_ratio(make())
    assert any(list(line.get_ydata()) == [1, 1] for line in ax.lines)
    assert ax.get_ylim()[1] > 1


def test_what_one_result_lacks_is_said():
    figure, _ = plots.plot_odds_ratio({"a": make(), "b": make(missing=("odds_ratio",))})
    assert "b (not available)" in words(figure)


@pytest.mark.parametrize("name", ["odds_ratio", "scar_mass", "reach"])
def test_what_no_result_has_is_refused(name):
    with pytest.raises(ValueError, match=f"no result reports {name}"):
        getattr(plots, f"plot_{name}")({"a": make(missing=(name,))})


def test_different_schedules_are_refused():
    results = {"a": make(), "b": make(horizons=(10, 8, 20))}
    for plot in (plots.plot_reach, plots.plot_scar_mass, plots.plot_odds_ratio):
        with pytest.raises(ValueError, match=r"different phases .*\[20, 8, 20\].*\[10, 8, 20\]"):
            plot(results)


def test_different_graphs_may_share_axes(small_graph):
    _, ax = plots.plot_reach({"a": make(small_graph), "b": make()})
    assert ax.get_ylabel() == "reach"


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="no results"):
        plots.plot_reach({})
    with pytest.raises(ValueError, match=r"smooth must be .* got 0"):
        plots.plot_reach(make(), smooth=0)


def test_smoothing_stays_within_a_phase():
    result = make(episodes=1)
    result.traces["reach"][:] = np.repeat([4, 2, 6], (20, 8, 20))
    result.traces["reach"][0, 3] = np.nan
    _, ax = plots.plot_reach({"a": result}, smooth=5)
    np.testing.assert_allclose(lines(ax)["a"], np.repeat([4, 2, 6], (20, 8, 20)))
    _, ax = plots.plot_reach({"a": make()}, smooth=5)
    expected = make().traces["reach"][:, 40:45].mean()
    assert lines(ax)["a"][44] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("horizons", [(2, 2, 200), (200, 2, 2), (1, 1, 1), (100, 1, 100)])
def test_names_of_short_phases_do_not_overlap(horizons):
    figure, _ = plots.plot_reach(make(horizons=horizons))
    assert not overlapping(figure)


def test_names_are_shown_as_they_are():
    names = ["_hidden", "$\\broken", "a $x$ b", *(f"method with a long name {i}" for i in range(9))]
    figure, _ = plots.plot_reach({name: make() for name in names})
    assert not overlapping(figure)
    assert len(figure.legends[0].get_texts()) == len(names)


def test_cascade_shows_the_same_moments_of_both_phases(small_graph):
    result = make(small_graph)
    figure, axes = plots.plot_cascade(result)
    titles = [ax.get_title() for ax in axes.flat]
    half = len(titles) // 2
    before = [title.split("\n")[0] for title in titles[:half]]
    after = [title.split("\n")[0] for title in titles[half:]]
    assert [t.replace("exposure", "replay") for t in before] == after
    assert f"active {int(result.cascade[-1].sum())}," in titles[-1]
    assert not overlapping(figure)


def test_cascade_at_chosen_steps(small_graph):
    _, axes = plots.plot_cascade(make(small_graph), [0, 21, 30, 40, -1])
    titles = [ax.get_title().split("\n")[0] for ax in axes.flat[:5]]
    assert axes.shape == (2, 4)
    assert titles == [
        "exposure, step 1 of 20", "washout, step 2 of 8", "replay, step 3 of 20",
        "replay, step 13 of 20", "replay, step 20 of 20",
    ]  # fmt: skip
    assert not axes.flat[-1].axison


def test_cascade_refuses(small_graph):
    with pytest.raises(ValueError, match="no graph"):
        plots.plot_cascade(make())
    with pytest.raises(ValueError, match=r"0\.\.47, got \[48\]"):
        plots.plot_cascade(make(small_graph), [1, 48])
    with pytest.raises(ValueError, match=r"got \[\]"):
        plots.plot_cascade(make(small_graph), [])


def test_scars_are_counted_per_episode():
    result = make()
    result.scars[:, :3] = 0
    figure, ax = plots.plot_scars(result)
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(3)
    assert any("50.0% of the regions carry a scar" in text for text in words(figure))


def test_no_scars():
    with pytest.raises(ValueError, match="no scars"):
        plots.plot_scars(make(scars=False))
    result = dataclasses.replace(make(), scars=np.zeros((4, 6), np.float32))
    figure, ax = plots.plot_scars(result)
    assert "no region carries a scar" in words(figure)
    assert (ax.get_xlim(), ax.get_ylim(), len(ax.get_yticks())) == ((0, 1), (0, 1), 0)


def test_pyplot_is_left_alone():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plots.plot_reach(make())
    assert pyplot.get_fignums() == before
