from __future__ import annotations

import dataclasses
import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from rapo.cascade.graph import Graph
from rapo.rsd import report, table
from rapo.rsd.report import text_table, write_report
from rapo.rsd.result import METRICS, TRACES, RSDResult


def make(graph: Graph | None = None, *, episodes: int = 4, steps: int = 10, **metrics) -> RSDResult:
    """A result made of noise; metrics are set by name."""
    rng = np.random.default_rng(0)
    phase = np.repeat([0, 1, 2], steps)
    frame = pd.DataFrame({name: rng.random(episodes) for name in METRICS}).assign(**metrics)
    return RSDResult(
        frame=frame.assign(episode=range(episodes), seed=0, stimulus=1, undefined_odds=5),
        traces={name: rng.random((episodes, 3 * steps)).astype(np.float32) for name in TRACES},
        phase=phase,
        scars=None if graph is None else rng.random((episodes, 6)).astype(np.float32),
        cascade=None if graph is None else rng.random((3 * steps, graph.n)) < 0.2,
        graph=graph,
        manifest={
            "config": {"horizons": [steps] * 3, "policy": "<b>mine</b>"},
            "seeds": [0, 1, 2],
            "versions": {"numpy": "9.9.9"},
            "graph_hash": None if graph is None else graph.hash,
        },
    )


class Page(HTMLParser):
    """Checks that tags nest, and collects images, cells and text."""

    VOID = ("meta", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


def test_page_stands_alone(tmp_path, small_graph):
    results = {"P0": make(small_graph), "RAPO": make(small_graph)}
    path = write_report(results, tmp_path / "new" / "report.html", title="Mine")
    text, page = read(path)
    assert path.stat().st_size < report.SIZE
    assert len(page.links) == page.tags.count("img") == 3 + 2 * 2
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    assert "http:" not in text and "https:" not in text and "<script" not in text
    assert "Mine" in page.words
    assert page.tags.count("details") == 2
    for told in (small_graph.hash, "[0, 1, 2]", "numpy: 9.9.9"):
        assert any(told in word for word in page.words), told


def test_numbers_are_those_of_the_summary(tmp_path):
    result = make(RAG=[0.2, 0.4, 0.6, np.nan])
    _, page = read(write_report({"a": result}, tmp_path / "r.html"))
    rows = "|".join(word for word in page.words if word.strip())
    low, high = result.summary()["RAG"]["ci95"]
    assert f"|a|0.400 ± 0.200|[{low:.3f}, {high:.3f}]|3|1|" in rows


def test_what_is_missing_is_not_zero(tmp_path):
    bare = make(ASD=np.nan, OddsRatio=np.nan, ScarMass=np.nan, R_c=np.nan)
    for name in ("odds_ratio", "scar_mass"):
        bare.traces[name][:] = np.nan
    _, page = read(write_report({"bare": bare}, tmp_path / "r.html"))
    assert page.words.count("not available") == 4 + 1  # and the graph hash
    assert page.tags.count("img") == 1  # reach
    assert not any("without nominal" in word for word in page.words)


def test_everything_is_escaped(tmp_path):
    name = "<script>alert('$x')</script>&\""
    text, page = read(write_report({name: make()}, tmp_path / "r.html", title="<i>$table & co"))
    assert "script" not in page.tags and "i" not in page.tags and "b" not in page.tags
    assert "<b>mine" not in text
    assert "<i>$table & co" in page.words
    assert name in page.words


def test_different_schedules_get_figures_of_their_own(tmp_path):
    results = {"a": make(), "b": make(steps=12)}
    _, page = read(write_report(results, tmp_path / "r.html"))
    assert page.tags.count("img") == 2 * 3
    assert "Reach (a)" in page.words and "Reach (b)" in page.words


def test_results_of_one_graph_have_no_note_about_graphs(small_graph):
    one = {name: make(small_graph) for name in ("a", "b")}
    mixed = {"a": make(small_graph), "b": make()}
    said = [any("different graphs" in note for note in table.notes(r)) for r in (one, mixed)]
    assert said == [False, True]


def test_different_graphs_are_told(tmp_path, small_graph):
    _, page = read(write_report({"a": make(small_graph), "b": make()}, tmp_path / "r.html"))
    note = next(word for word in page.words if "different graphs" in word)
    assert f"a {small_graph.hash}, b not available" in note


def test_undefined_steps_are_told(tmp_path):
    _, page = read(write_report({"a": make()}, tmp_path / "r.html"))
    assert any("harmful mass: a 50.0%." in word for word in page.words)


def test_page_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "SIZE", 60_000)
    path = write_report({"a": make()}, tmp_path / "r.html")
    _, page = read(path)
    assert page.tags.count("img") < 3
    assert any(word.startswith("Left out to keep the page small: ") for word in page.words)


def test_nothing_is_overwritten_unless_told(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=re.escape(f"{path} exists")):
        write_report({"a": make()}, path)
    assert path.read_text() == "mine"
    assert write_report({"a": make()}, path, force=True) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(FileExistsError, match="is a folder"):
        write_report({"a": make()}, tmp_path, force=True)


def test_no_results_write_nothing(tmp_path):
    with pytest.raises(ValueError, match="no results"):
        write_report({}, tmp_path / "new" / "r.html")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="no results"):
        text_table({})


def test_same_results_make_the_same_page(tmp_path):
    pages = [write_report({"a": make()}, tmp_path / f"{i}.html").read_bytes() for i in range(2)]
    assert pages[0] == pages[1]


def shown(results) -> str:
    console = Console(width=110, record=True, file=io.StringIO())
    console.print(text_table(results))
    return console.export_text()


def test_terminal_table():
    text = shown(
        {"[bold]a": make(RAG=[1.0, 1.0, 1.0, np.nan], ASD=np.nan), "b": make(RAG=[0.5] * 4)}
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "RAG [bold]a 1.000 ± 0.000 [1.000, 1.000] 3 1" in lines
    assert "b 0.500 ± 0.000 [0.500, 0.500] 4 0" in lines
    assert "ASD [bold]a not available" in lines
    assert "AUC-R" in text and "R_c" in text


def test_one_episode_has_no_interval():
    text = shown({"a": make(episodes=1, RAG=[0.5])})
    assert re.search(r"RAG\s+(a\s+)?0\.500\s+–\s+1\s+0", text)  # noqa: RUF001


def test_small_is_not_zero():
    text = shown({"a": make(ASD=[1e-7] * 4), "b": make(ASD=0.0)})
    assert "1.0e-07 ± 0.0000" in text
    assert "0.0000 ± 0.0000" in text


def test_every_metric_is_explained():
    assert set(table.MEANINGS) == set(METRICS)


def test_nan_scars_are_no_figure(tmp_path):
    result = dataclasses.replace(make(), scars=np.full((4, 6), np.nan, np.float32))
    _, page = read(write_report({"a": result}, tmp_path / "r.html"))
    assert page.tags.count("img") == 3
