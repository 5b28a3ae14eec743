"""The page and the GIF show the episode that is chosen, each side under its own setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.show.lab.film import arrays_of, gif_of, recorded
from rapo.show.lab.numbers import answer
from rapo.show.lab.request import Draws, Place
from rapo.show.lab.sources import find_source


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
    sides = (replace(source.side, scope="topk:3"), source.side.nominal)
    draws = Draws(4, seed=5, shown=2)
    shares = []
    assert gif_of(source, sides, draws, lambda: None, shares.append) == b"GIF"
    assert shares == pytest.approx(np.arange(1, 121) / 120)
    assert [recording.name for recording in filmed] == ["B: P0", "A: top k"]
    for recording, side in zip(filmed[::-1], sides, strict=True):
        traces = answer(source, side, replace(draws, coupled=True), lambda: None).result.traces
        np.testing.assert_array_equal(recording.reach, traces["reach"][2])
        np.testing.assert_array_equal(recording.sensitive, traces["sensitive_mass"][2])
    assert [recording.deformed for recording in filmed] == [False, True]
    assert filmed[1].fields.closed(1200).max() > 0.5


def test_of_a_platform_too(filmed):
    source = find_source(Place("rapo/Routing-v0", seed=3))
    draws = Draws(2, seed=5, stimulus=2, shown=1)
    sides = (source.side, source.side.nominal)
    gif_of(source, sides, draws, lambda: None, lambda share: None)
    for recording, side in zip(filmed[::-1], sides, strict=True):
        found = answer(source, side, replace(draws, coupled=True), lambda: None).result
        np.testing.assert_array_equal(recording.reach, found.traces["reach"][1])
    assert [recording.deformed for recording in filmed] == [False, True]


def test_it_ends_when_it_is_told_to(source, filmed):
    class EndError(Exception):
        pass

    def check():
        raise EndError

    with pytest.raises(EndError):
        gif_of(source, (source.side, source.side.nominal), Draws(4), check, lambda share: None)


def test_the_film_is_of_the_episode_whose_curves_are_shown(source):
    draws = Draws(4, seed=3, shown=2)
    metrics = answer(source, source.side, draws, lambda: None)
    recording = recorded(source, source.side, draws, lambda: None, coupled=False)
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
    regions = source.regions(source.side.regions)
    live = np.unique(regions[source.graph.sensitive])
    np.testing.assert_array_equal(live[arrays["region"][source.graph.sensitive]],
                                  regions[source.graph.sensitive])  # fmt: skip


@pytest.mark.parametrize("scope", ["full", "local:0.5"])
def test_the_film_tells_which_regions_are_never_deformed(source, scope):
    side = replace(source.side, scope=scope)
    engine = source.make(side).engine
    recording = recorded(source, side, Draws(2), lambda: None, coupled=False)
    closed = arrays_of(recording)["open"] == 0
    assert closed.any() and closed.all() == (scope == "full")
    np.testing.assert_array_equal(closed, engine.gated_regions)
