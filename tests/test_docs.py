"""Every Python snippet of the README and the docs runs, in order, file by file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data" / "email_eu_core"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p)], ids=lambda page: page.name)
def test_snippets_run(page, monkeypatch, tmp_path):
    names = {}
    for code in snippets(page):
        reads_a_network = "edges.csv.gz" in code
        if reads_a_network and not DATA.exists():
            continue
        monkeypatch.chdir(DATA if reads_a_network else tmp_path)
        exec(compile(code, str(page), "exec"), names)


def test_the_readme_has_snippets_and_its_picture():
    assert len(snippets(ROOT / "README.md")) >= 3
    for image in re.findall(r"!\[.*?\]\((.*?)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / image).stat().st_size > 10_000


def test_links_between_pages_exist():
    for page in PAGES:
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
