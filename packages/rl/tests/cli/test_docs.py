"""`rapo docs`: every page of the manual, from a checkout and from an installed wheel."""

import pytest
from repository import DOCS

import rapo
from rapo.cli import docs as manual
from rapo.cli.main import app


def shown(capsys, *words):
    app(["docs", *words], standalone_mode=False)
    return capsys.readouterr().out


def test_every_page_is_listed_once(capsys):
    told = shown(capsys)
    names = [line.split()[0] for line in told.splitlines() if line and "PAGE" not in line]
    assert len(names) == len(set(names))
    prose = [p for p in DOCS.rglob("*.md") if "reference" not in p.parts]
    assert len(names) == len(prose)
    assert {"faq", "gate", "gate/operate", "methods"} <= set(names)


@pytest.mark.parametrize("name", ["faq", "docs/faq.md", "gate/operate"])
def test_a_page_is_shown(capsys, name):
    assert len(shown(capsys, name)) > 1000


def test_an_unknown_page_is_named(capsys):
    with pytest.raises(ValueError, match="no page is called 'nope'"):
        shown(capsys, "nope")


def test_the_pages_of_a_wheel_come_before_those_of_a_checkout(monkeypatch, tmp_path):
    package = tmp_path / "site-packages" / "rapo"
    (package / "docs").mkdir(parents=True)
    (package / "docs" / "only.md").write_text("# Only\n")
    monkeypatch.setattr(rapo, "__file__", str(package / "__init__.py"))
    assert list(manual.pages()) == ["only"]


def test_a_package_without_pages_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(rapo, "__file__", str(tmp_path / "a" / "rapo" / "__init__.py"))
    with pytest.raises(ValueError, match="no pages are at"):
        manual.pages()
