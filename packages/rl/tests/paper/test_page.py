"""The report: claims counted, cells escaped, nothing loaded from elsewhere."""

import base64
import json
import re

import pandas as pd
import pytest
from matplotlib.figure import Figure

from rapo.paper.page import write_page
from rapo.paper.results import Results
from rapo.paper.studies.section import Claim, Section
from rapo.paper.studies.verdicts import CALIBRATED, CONSTRUCTED, DIFFERS, HOLDS, PREDICTED

EVIL = "<script>alert('x')</script> & \"so\""


def claim(verdict, name="R1", kind=PREDICTED):
    return Claim(name, f"statement {EVIL}", "paper's", "ours | ours", verdict, "why", kind)


@pytest.fixture
def page(tmp_path):
    manifest = {"preset": "tiny<b>", "graph_seeds": [0, 1], "episodes": 3, "steps": 12_345}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    first = Section(
        name="one",
        title=f"First {EVIL}",
        text=[f"words {EVIL}", "$counts costs 5$ and ${sections}"],
        tables=[(f"caption {EVIL}", pd.DataFrame({f"a{EVIL}": [EVIL, "x|y"], "b": [1, None]}))],
        figures=[("picture", f"seen {EVIL}", figure)],
        claims=[claim(HOLDS), claim(DIFFERS), claim(HOLDS, kind=CALIBRATED)],
    )
    second = Section(name="two", title="Second", claims=[claim(HOLDS, "R2"), claim(DIFFERS)])
    files = write_page([first, second], Results(tmp_path, None), tmp_path)
    assert files == [tmp_path / "report.html", tmp_path / "summary.md"]
    return tmp_path


def test_claims_are_counted_and_listed(page):
    html, summary = ((page / name).read_text() for name in ("report.html", "summary.md"))
    for text in (html, summary):
        assert (
            "predicted: 2 hold, 2 differ; calibrated: 1 hold, 0 differ; by construction: 0 hold, "
            "0 differ"
        ) in text
        assert "2 graphs x 3 episodes, 12,345 training steps; 0.0 hours of one-thread jobs" in text
    assert html.count('class="holds"') == 3 and html.count('class="differs"') == 2
    table = pd.read_csv(page / "claims.csv")
    assert table.columns.tolist() == [
        "name",
        "statement",
        "paper",
        "ours",
        "verdict",
        "why",
        "kind",
    ]
    assert table["verdict"].tolist() == [HOLDS, DIFFERS, HOLDS, DIFFERS, HOLDS]
    assert table["kind"].tolist() == [PREDICTED, PREDICTED, CALIBRATED, PREDICTED, PREDICTED]
    assert table["name"].tolist() == ["R1", "R1", "R1", "R1", "R2"]
    assert table["statement"][0] == f"statement {EVIL}"


def test_what_differs_stands_below_the_figures_and_before_all_claims(page):
    html, summary = ((page / name).read_text() for name in ("report.html", "summary.md"))
    assert html.index("<img") < html.index("what differs") < html.index("All claims")
    assert html.index('href="#claims"') < html.index('id="one"')
    assert summary.index("## Second") < summary.index("what differs")
    differing = summary.partition("what differs")[2].partition("All claims")[0]
    assert len([line for line in differing.splitlines() if line.startswith("| R")]) == 2


def test_html_is_escaped_and_holds_everything_it_shows(page):
    html = (page / "report.html").read_text()
    assert "<script" not in html and "<b>" not in html and "tiny&lt;b&gt;" in html
    # title and its link, text, caption, header, cell, caption and alt of the figure, 5 claims,
    # of which 2 differ; 2 cells bear the name of their column for phones
    assert html.count("&lt;script&gt;") == 2 + 1 + 1 + 1 + 1 + 2 + 5 + 2 + 2
    assert "$counts costs 5$ and ${sections}" in html  # words of a study are no template
    assert not re.search(r"https?://|<link|@import|url\(", html)
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert {s for s in sources if not s.startswith("data:")} == {"#claims", "#one", "#two"}
    pictures = [s for s in sources if s.startswith("data:image/png;base64,")]
    assert base64.b64decode(pictures[0].split(",")[1]).startswith(b"\x89PNG") and len(pictures) == 1
    for name in ("one", "two", "claims", "config"):
        assert html.count(f'id="{name}"') == 1


def test_markdown_cells_do_not_break_their_table(page):
    lines = (page / "summary.md").read_text().splitlines()
    assert "![seen " + EVIL + "](figures/picture.png)" in lines
    start = lines.index("*All claims*")
    rows = [line for line in lines[start:] if line.startswith("|")]
    assert len(rows) == 2 + 5
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert any("x\\|y" in line for line in lines)


def test_a_page_without_claims(tmp_path):
    manifest = {"preset": "p", "graph_seeds": [0], "episodes": 1, "steps": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    write_page([Section(name="one", title="One")], Results(tmp_path, None), tmp_path)
    assert f"{CONSTRUCTED}: 0 hold, 0 differ" in (tmp_path / "summary.md").read_text()
    assert pd.read_csv(tmp_path / "claims.csv").empty
