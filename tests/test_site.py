"""The documentation as a site: links carried over, nothing fetched from elsewhere, clean notebooks.

Building it strictly, with its notebooks run, is `make docs`.
"""

import importlib.util
import json
import re

import pytest
import yaml
from repository import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("mkdocs_hooks", ROOT / "mkdocs_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Page:
    """What the hook asks of a page of mkdocs."""

    def __init__(self, uri):
        self.file = type("File", (), {"src_uri": uri})
        self.meta = {}


@pytest.mark.parametrize(
    ("uri", "before", "after"),
    [
        ("index.md", "[x](docs/faq.md)", "[x](faq.md)"),
        ("index.md", "![x](docs/images/replay.png)", "![x](images/replay.png)"),
        (
            "index.md",
            "[x](docs/notebooks/what-replay-is.ipynb)",
            "[x](notebooks/what-replay-is.md)",
        ),
        ("faq.md", "[x](../README.md#ten-lines)", "[x](index.md#ten-lines)"),
        ("gate/deploy.md", "[`deploy/`](../../deploy)", "`deploy/`"),
        (
            "suite.md",
            "[x](../packages/rl/src/rapo/cli/options.py)",
            "[x](repo/packages/rl/src/rapo/cli/options.py)",
        ),
        ("gate/client.md", "[x](../../CHANGELOG.md)", "[x](../repo/CHANGELOG.md)"),
        ("repo/CHANGELOG.md", "[x](docs/suite.md)", "[x](../suite.md)"),
        ("faq.md", "[x](https://a.b/c) [y](#z)", "[x](https://a.b/c) [y](#z)"),
        ("faq.md", "```\n[x](../README.md)\n```", "```\n[x](../README.md)\n```"),
    ],
)
def test_links_by_the_repository_become_links_by_the_site(hooks, uri, before, after):
    assert hooks.on_page_markdown(before, page=Page(uri)) == after


@pytest.mark.parametrize(
    ("text", "suffix", "found"),
    [
        ('<a href="https://a.b">x</a><img src="c.png">', ".html", 0),
        ('<link rel="canonical" href="https://a.b">', ".html", 0),
        ('<script src="https://a.b/c.js"></script>', ".html", 1),
        ('<link rel="stylesheet" href="//a.b/c.css">', ".html", 1),
        ('<img src="https://a.b/c.png">', ".html", 1),
        ('<p style="background: url(https://a.b/c.png)">', ".html", 1),
        ("@font-face { src: url(https://a.b/c.woff2) }", ".css", 1),
        ("@font-face { src: url(c.woff2) }", ".css", 0),
    ],
)
def test_what_a_page_fetches_from_another_host_is_found(hooks, text, suffix, found):
    assert len(hooks.fetched_elsewhere(text, suffix)) == found


def test_every_page_has_its_place_in_the_navigation():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = set(re.findall(r"[\w/.-]+\.md", json.dumps(config["nav"])))
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    pages |= {f"notebooks/{p.stem}.md" for p in NOTEBOOKS}
    assert pages <= named


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_they_print(path):
    cells = json.loads(path.read_text())["cells"]
    assert len(cells) > 5
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
