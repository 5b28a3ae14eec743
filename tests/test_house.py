"""The house: files and functions stay short, public names are visible, paths may be words."""

import ast
import re

import pytest
from repository import ROOT

import rapo
import rapo_core
import rapo_gate
from rapo.rsd.result import files_in
from rapo.show.demo import run_demo
from rapo_core.files import refuse_to_overwrite

PACKAGES = ROOT / "packages"
LONGEST_FILE, LONGEST_FUNCTION = 500, 80


def files():
    """Text of every module of the three packages, by its path below `packages`."""
    return {
        path.relative_to(PACKAGES).as_posix(): path.read_text()
        for path in PACKAGES.glob("*/src/**/*.py")
    }


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


def test_the_architecture_names_every_folder_and_files_that_are_there():
    tree = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    rows = re.findall(r"^(rapo[\w/]*) .*?(?:begin: (.*))?$", tree, re.MULTILINE)
    sources = {"rapo_core": "core", "rapo_gate": "gate", "rapo": "rl"}
    begun = [
        PACKAGES / sources[folder.partition("/")[0]] / "src" / folder / file
        for folder, begin in rows
        for file in begin.split(", ")
        if file
    ]
    assert len(begun) >= 12
    assert [path for path in begun if not path.is_file()] == []
    folders = {p.parent.name for p in (PACKAGES / "rl/src/rapo").glob("*/__init__.py")}
    assert {folder.partition("/")[2] for folder, _ in rows} - {""} == folders


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
