"""The GIF shows the episode that is chosen, each side under its own setting and name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.show.lab.gif import gif_of
from rapo.show.lab.numbers import answer
from rapo.show.lab.request import Draws, Place
from rapo.show.lab.sources import find_source


@pytest.fixture
def filmed(monkeypatch):
    """The recordings that are handed to the film, left and right."""
    kept = []

    def film(left, right, path, tick):
        kept.extend((left, right))
        for _ in range(120):
            tick(1)
        path.write_bytes(b"GIF")
        return path

    monkeypatch.setattr("rapo.show.lab.gif.film", film)
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
    under_p0, gated = (recording.view.scar for recording in filmed)
    assert not under_p0.any() and gated.max() > 0.5


def test_of_a_platform_too(filmed):
    source = find_source(Place("rapo/Routing-v0", seed=3))
    draws = Draws(2, seed=5, stimulus=2, shown=1)
    sides = (source.side, source.side.nominal)
    gif_of(source, sides, draws, lambda: None, lambda share: None)
    for recording, side in zip(filmed[::-1], sides, strict=True):
        found = answer(source, side, replace(draws, coupled=True), lambda: None).result
        np.testing.assert_array_equal(recording.reach, found.traces["reach"][1])
    assert [recording.view.scars for recording in filmed] == [False, True]


def test_it_ends_when_it_is_told_to(source, filmed):
    class EndError(Exception):
        pass

    def check():
        raise EndError

    with pytest.raises(EndError):
        gif_of(source, (source.side, source.side.nominal), Draws(4), check, lambda share: None)
