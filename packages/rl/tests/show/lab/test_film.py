"""The page and the GIF show the episode that is chosen, each side under its own setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.show.lab.film import arrays_of, gif_of, record_shown
from rapo.show.lab.metrics import measure
from rapo.show.lab.request import Episodes, SourceId
from rapo.show.lab.sources import find_source


def ignore(done, total):
    """Progress that nobody looks at."""


@pytest.fixture
def filmed(monkeypatch):
    """The recordings that are handed to the film, left and right."""
    kept = []

    def film(left, right, path, on_progress):
        kept.extend((left, right))
        for done in range(1, 121):
            on_progress(done, 120)
        path.write_bytes(b"GIF")
        return path

    monkeypatch.setattr("rapo.show.lab.film.film", film)
    return kept


def test_it_is_of_the_shown_episode_with_coupled_draws(source, filmed):
    sides = (replace(source.variant, scope="topk:3"), source.variant.nominal)
    episodes = Episodes(4, seed=5, shown=2)
    shares = []
    on_progress = lambda done, total: shares.append(done / total)  # noqa: E731
    assert gif_of(source, sides, episodes, on_progress) == b"GIF"
    each = np.arange(1, 1201) / 1200  # two recordings, then 120 frames
    assert shares == pytest.approx([*each, *each, *each[9::10]])
    assert [recording.name for recording in filmed] == ["B: P0", "A: top k"]
    for recording, side in zip(filmed[::-1], sides, strict=True):
        traces = measure(source, side, replace(episodes, coupled=True)).result.traces
        np.testing.assert_array_equal(recording.reach, traces["reach"][2])
        np.testing.assert_array_equal(recording.sensitive, traces["sensitive_mass"][2])
    assert [recording.deformed for recording in filmed] == [False, True]
    assert filmed[1].fields.closed(1200).max() > 0.5


def test_of_a_platform_too(filmed):
    source = find_source(SourceId("rapo/Routing-v0", seed=3))
    episodes = Episodes(2, seed=5, stimulus=2, shown=1)
    sides = (source.variant, source.variant.nominal)
    gif_of(source, sides, episodes, ignore)
    for recording, side in zip(filmed[::-1], sides, strict=True):
        found = measure(source, side, replace(episodes, coupled=True)).result
        np.testing.assert_array_equal(recording.reach, found.traces["reach"][1])
    assert [recording.deformed for recording in filmed] == [False, True]


def test_it_ends_when_it_is_told_to(source, filmed):
    class EndError(Exception):
        pass

    def on_progress(done, total):
        raise EndError

    with pytest.raises(EndError):
        gif_of(source, (source.variant, source.variant.nominal), Episodes(4), on_progress)


def test_the_film_is_of_the_episode_whose_curves_are_shown(source):
    episodes = Episodes(4, seed=3, shown=2)
    metrics = measure(source, source.variant, episodes)
    recording = record_shown(source, source.variant, episodes, ignore)
    arrays = arrays_of(recording)
    n = source.graph.n
    active = np.unpackbits(arrays["active"], axis=1, count=n, bitorder="little")
    np.testing.assert_array_equal(active.sum(axis=1), metrics.result.traces["reach"][2])
    inside = active[:, source.graph.sensitive].sum(axis=1)
    np.testing.assert_array_equal(inside, metrics.result.traces["sensitive_mass"][2])
    assert recording.fields.every == 1
    mass = arrays["H"].sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(mass, metrics.result.traces["scar_mass"][2], rtol=1e-4)
    assert recording.stimulus == metrics.result.frame["stimulus"][2]
    regions = source.regions(source.variant.regions)
    live = np.unique(regions[source.graph.sensitive])
    np.testing.assert_array_equal(live[arrays["region"][source.graph.sensitive]],
                                  regions[source.graph.sensitive])  # fmt: skip


@pytest.mark.parametrize("scope", ["full", "local:0.5"])
def test_the_film_tells_which_regions_are_never_deformed(source, scope):
    side = replace(source.variant, scope=scope)
    engine = source.make(side).engine
    recording = record_shown(source, side, Episodes(2), ignore)
    closed = arrays_of(recording)["never_gated"] == 0
    assert closed.any() and closed.all() == (scope == "full")
    np.testing.assert_array_equal(closed, engine.gated_regions)
