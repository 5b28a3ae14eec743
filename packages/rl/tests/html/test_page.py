"""Pages: everything is escaped, holds what it shows, and can be read in the dark and on a phone."""

import re

import pandas as pd
import pytest
from jinja2 import UndefinedError
from matplotlib.figure import Figure

from rapo.html.page import Section, embedded, markdown, render, verdict_of

EVIL = "<script>document.title = 'broken'</script> & \"so\" {{ 7 * 7 }}"

WIDE = {f"column {i}": ["a long cell of several words", "0.31 MISSED"] for i in range(9)}


def drawn():
    figure = Figure(figsize=(8, 3))
    figure.add_subplot().plot([0, 1])
    return figure


@pytest.fixture(scope="module")
def report():
    figure = drawn()
    frame = pd.DataFrame({"claim": ["a", "b"], EVIL: [EVIL, "holds"]})
    tables = [(EVIL, frame), ("", frame), ("wide", pd.DataFrame(WIDE))]
    part = Section("one", f"First {EVIL}", [EVIL], tables, [("file", EVIL, figure)])
    return render(
        "report.html", title=EVIL, heading=EVIL, size="small", headline=EVIL, notes=[EVIL],
        sections=[part], manifest=EVIL,
    )  # fmt: skip


def test_everything_is_escaped_and_nothing_is_fetched(report):
    assert "<script" not in report and "{{ 7 * 7 }}" in report
    # title, heading, link, headline, note, section's title, text, caption, caption and alt of its
    # figure, manifest; column, cell and the column's name at both cells of both tables
    assert report.count("&lt;script&gt;") == 11 + 2 * 4
    assert not re.search(r"https?://|<link|@import|url\(", report)
    sources = re.findall(r'src="([^"]*)"', report)
    assert len(sources) == 1 and all(s.startswith("data:image/png;base64,") for s in sources)


def test_a_name_that_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="'size' is undefined"):
        render("report.html", title="a")


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [
        ("holds", "holds"), ("0.31 holds", "holds"), ("0.31 MISSED", "differs"),
        ("differs", "differs"), ("nobody knows whether it holds", ""), ("withholds", ""), (1.5, ""),
    ],
)  # fmt: skip
def test_only_verdicts_are_coloured(cell, verdict):
    assert verdict_of(cell) == verdict


def test_markdown_cells_do_not_break_their_table():
    assert (
        markdown(pd.DataFrame({"a": ["x|y"], "b": [1]}))
        == "| a | b |\n| --- | --- |\n| x\\|y | 1 |"
    )


def test_the_same_figure_gives_the_same_bytes():
    assert embedded(drawn()) == embedded(drawn())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_phone_in_both_schemes(browser, report, tmp_path, scheme):
    path = tmp_path / "page.html"
    path.write_text(report)
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"file://{path}")
    assert page.title() == EVIL
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    heads = page.evaluate(
        "() => [...document.querySelectorAll('table')].map((t) => t.tHead.offsetHeight > 0)"
    )
    assert heads == [False, False, True]  # rows with sentences are paragraphs
    label = "td => getComputedStyle(td, '::before').content"
    assert EVIL.split()[0] in page.eval_on_selector(".stack td + td", label)
    ink, paper = page.evaluate(
        "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; }"
    )
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
    assert abs(brightness[0] - brightness[1]) > 450
    context.close()
