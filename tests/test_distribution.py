"""What pip gets: contents of the wheel, the index page, names of extras, addresses."""

from __future__ import annotations

import email
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RELATIVE = re.compile(r"\]\((?!https://|http://|mailto:|#)[^)]*\)")
SOMEWHERE = "https://host.example/owner/rapo"


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source distribution and the wheel made from it, as `python -m build` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as file:
        yield file


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_the_wheel_holds_the_package_whole_and_nothing_else(wheel):
    names = [n for n in wheel.namelist() if ".dist-info/" not in n]
    files = {p for p in (ROOT / "src").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    package = {p.relative_to(ROOT / "src").as_posix() for p in files}
    manual = {n for n in names if n.startswith("rapo/docs/")}
    assert set(names) - manual == package
    assert {Path(n).suffix for n in manual} == {".md"}
    assert {"rapo/docs/faq.md", "rapo/docs/gate/README.md"} <= manual


@pytest.mark.parametrize(
    "name",
    [
        "rapo/py.typed",
        "rapo/cascade/setting.toml",
        "rapo/cascade/readings/compact.toml",
        "rapo/platforms/feed/setting.toml",
        "rapo/gate/service/templates/base.html",
        "rapo/gate/service/static/page.css",
        "rapo/gate/service/static/vendor/htmx.min.js",
    ],
)
def test_the_wheel_holds_what_is_no_python(wheel, name):
    assert len(wheel.read(name)) >= (name != "rapo/py.typed")


def test_the_source_distribution_holds_what_the_wheel_is_made_of(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as file:
        tops = {Path(name).parts[1] for name in file.getnames() if len(Path(name).parts) > 1}
    assert {"src", "README.md", "LICENSE", "hatch_build.py", "pyproject.toml"} <= tops
    assert not tops & {"tests", "results", "benchmarks", "chaos"}


def test_what_the_image_copies_is_enough_to_build(tmp_path):
    copied = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / "deploy/Dockerfile").read_text(), re.M
    )
    kept = (ROOT / "deploy/Dockerfile.dockerignore").read_text().split()
    for name in " ".join(copied).split():
        assert f"!{name}" in kept
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_index_takes_both(built):
    files = [str(path) for path in built.iterdir()]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_an_index_has_no_link_that_leads_nowhere(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    page = metadata.get_payload()
    assert "rapo demo" in page
    assert not RELATIVE.findall(page)


def test_with_a_repository_links_and_pictures_lead_there(hook):
    text = (ROOT / "README.md").read_text()
    page = hook.for_index(text, SOMEWHERE, "0.2.0")
    assert not RELATIVE.findall(page)
    assert f"![{'x'}]({SOMEWHERE}/raw/v1/a.png)" == hook.for_index("![x](a.png)", SOMEWHERE, "1")
    assert f"[x]({SOMEWHERE}/blob/v1/a.md#b)" == hook.for_index("[x](a.md#b)", SOMEWHERE, "1")
    paths = re.findall(rf"{SOMEWHERE}/(?:raw|blob)/v0\.2\.0/([^)#]*)", page)
    assert len(paths) > 5
    assert all((ROOT / path).exists() for path in paths)


def test_code_and_links_elsewhere_stay_as_they_are(hook):
    text = "[a](https://b.c)\n\n```python\nx[0](y)\n```\n\n[d](#e) ![f](https://g.h/i.png)\n"
    assert hook.for_index(text, "", "1") == text
    assert hook.for_index(text, SOMEWHERE, "1") == text


def test_without_a_repository_nothing_is_invented(hook):
    assert hook.addresses("", "1") == {}
    assert hook.for_index("see [x](a.md)\n\n![y](a.png)\n\nend", "", "1") == "see x\n\nend"


def test_with_a_repository_the_project_has_addresses(hook):
    found = hook.addresses(SOMEWHERE, "1")
    assert {"Source", "Changelog", "Issues", "Documentation"} == set(found)
    assert all(address.startswith(SOMEWHERE) for address in found.values())


def test_the_version_is_in_the_dated_changelog_and_the_citation(metadata):
    version = metadata["Version"]
    assert version == PROJECT["project"]["version"]
    first = re.search(
        r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert first[1] == version
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {version}\n" in citation
    assert f"date-released: {first[2]}\n" in citation


def test_extras_are_called_by_the_name_of_the_distribution():
    known = set(PROJECT["project"]["optional-dependencies"])
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = 0
    for page in pages:
        text = page.read_text()
        for line in re.findall(r"pip install.*", text):
            for name, extra in re.findall(r"['\"]([\w.-]*)\[([\w,]+)\]", line):
                assert name in ("rapo-rl", "."), f"{page}: {line}"
                assert set(extra.split(",")) <= known, f"{page}: {line}"
                named += 1
        assert not re.search(r"pip install rapo(?!-rl)\b", text), page
    assert named > 10
