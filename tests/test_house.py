"""The house: files and functions stay short, public names are visible, paths may be words."""

import ast
import re

import pytest
from repository import ROOT

import rapo
import rapo_core
import rapo_gate
from rapo.paper.demo import run_demo
from rapo.rsd.result import files_in
from rapo_core.files import refuse_to_overwrite

PACKAGES = ROOT / "packages"
SOURCE = PACKAGES / "rl" / "src" / "rapo"
LONGEST_FILE, LONGEST_FUNCTION = 350, 80


def files():
    return {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}


def functions(text):
    """Name and lines of every function, its decorators included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            yield node.name, node.end_lineno - first + 1


def test_no_file_is_longer_than_a_reader_bears():
    assert [name for name, text in files().items() if len(text.splitlines()) > LONGEST_FILE] == []


def test_no_function_is_longer_than_a_screen():
    long = [
        f"{name}: {function} has {lines} lines"
        for name, text in files().items()
        for function, lines in functions(text)
        if lines > LONGEST_FUNCTION
    ]
    assert long == []


def test_every_package_says_what_each_of_its_files_is_for():
    for package in (path.parent for path in SOURCE.glob("*/__init__.py")):
        told = set(
            re.findall(r"\w+", ast.get_docstring(ast.parse(files()[f"{package.name}/__init__.py"])))
        )
        parts = {path.stem for path in package.glob("*.py")} | {
            path.parent.name for path in package.glob("*/__init__.py")
        }
        assert parts - told == {"__init__"}, package.name


def test_the_architecture_names_every_package_and_files_that_are_there():
    drawn = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    rows = re.findall(r"^rapo/(\w+) .*?(?:begin: (.*))?$", drawn, re.MULTILINE)
    assert {name for name, _ in rows} == {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    begun = [SOURCE / name / file for name, begin in rows for file in begin.split(", ") if file]
    assert len(begun) >= 12
    assert [path for path in begun if not path.is_file()] == []


@pytest.mark.parametrize(
    "module", [rapo, rapo.agents, rapo.rsd, rapo.platforms, rapo_core, rapo_gate]
)
def test_public_names_are_visible_and_there(module):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_words_name_places_as_paths_do(tmp_path):
    (tmp_path / "episodes.csv").write_text("")
    with pytest.raises(FileExistsError, match=r"episodes\.csv exists"):
        refuse_to_overwrite(*files_in(str(tmp_path)))
    with pytest.raises(FileExistsError, match="is a file; choose another --out"):
        run_demo(50, 0, 2, 0, str(tmp_path / "episodes.csv"))
