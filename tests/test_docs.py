"""Every Python snippet of the README and the docs runs, in order, file by file."""

import gzip
import re

import pytest
from repository import ROOT

import rapo

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def write_network(folder):
    """The files that the README's real-network snippet reads: a ring of people and departments."""
    people = range(60)
    edges = [(u, (u + step) % 60) for u in people for step in (1, 2, 5)] + [(7, 7)]
    with gzip.open(folder / "edges.csv.gz", "wt") as file:
        file.write("src,dst\n" + "".join(f"{u},{v}\n" for u, v in edges))
    with gzip.open(folder / "labels.csv.gz", "wt") as file:
        file.write("node,department\n" + "".join(f"{u},{10 + u // 12}\n" for u in people))


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p)], ids=lambda page: page.name)
def test_snippets_run(page, monkeypatch, tmp_path):
    write_network(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in snippets(page):
        exec(compile(code, str(page), "exec"), names)


def test_the_readme_has_snippets_and_its_picture():
    assert len(snippets(ROOT / "README.md")) >= 3
    for image in re.findall(r"!\[.*?\]\((.*?)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / image).stat().st_size > 10_000


def test_links_between_pages_exist():
    for page in PAGES:
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_page_on_the_paper_quotes_the_setting_in_force():
    page = (ROOT / "docs" / "reading-the-paper.md").read_text()
    setting = rapo.Setting.default()
    quotes = (
        f"`s = {setting.persistence:g}`",
        f"scaled until \\|A_t\\| is {setting.cascade_target:g} on average",
        f"{setting.inside_weight:g} times stronger inside, {setting.entering_weight:g} times "
        f"entering, {setting.leaving_weight:g} times leaving",
        f"turned inwards with probability {setting.echo:g}",
        f"| {setting.support} nodes around",
        f"On a loaded graph {setting.loaded_support} nodes",
        "similar rates, " + " / ".join(f"{rate:g}" for rate in setting.rates),
        f"exp({setting.influence_tilt:g} influence)",
        f"exp(-{setting.risk_tilt:g} risk)",
        f"| {setting.psi_min:g} in the setting",
        f"communities of {setting.regions.removeprefix('community:')} nodes",
    )
    for quote in quotes:
        assert quote in page, quote
