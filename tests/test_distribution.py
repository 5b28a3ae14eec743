"""What pip gets: contents of the three wheels, names of extras, one version, the image's files."""

from __future__ import annotations

import email
import email.message
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from repository import ROOT

PACKAGES = {"core": "rapo_core", "rl": "rapo", "gate": "rapo_gate"}
"""The folder of every distribution below `packages`, and what it is imported as."""
PROJECTS = {
    folder: tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())["project"]
    for folder in PACKAGES
}
GATE_LEAVES_OUT = {"gymnasium", "matplotlib", "pandas", "networkx", "torch"}


def build(folder: Path, package: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder)]
    done = subprocess.run([*command, str(package)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    """The wheel of every package, as `make wheels` makes it."""
    opened = {}
    for package in PACKAGES:
        folder = tmp_path_factory.mktemp(package)
        build(folder, ROOT / "packages" / package)
        (path,) = folder.glob("*.whl")
        opened[package] = zipfile.ZipFile(path)
    return opened


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_holds_its_package_whole_and_nothing_else(
    wheels: dict[str, zipfile.ZipFile], package: str
) -> None:
    names = {n for n in wheels[package].namelist() if ".dist-info/" not in n}
    source = ROOT / "packages" / package / "src"
    files = {p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    manual = {n for n in names if n.startswith("rapo/docs/")}
    assert names - manual == {p.relative_to(source).as_posix() for p in files}
    if package == "rl":
        assert {Path(n).suffix for n in manual} == {".md"}
        assert {"rapo/docs/faq.md", "rapo/docs/gate/README.md"} <= manual


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_has_a_page_a_licence_and_types(
    wheels: dict[str, zipfile.ZipFile], package: str
) -> None:
    names = wheels[package].namelist()
    assert f"{PACKAGES[package]}/py.typed" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)
    page = str(metadata(wheels[package]).get_payload())
    assert f"pip install {PROJECTS[package]['name']}" in page
    assert not re.search(r"\]\((?!https://|#)", page)  # an index page has no relative links


def test_an_index_takes_them(wheels: dict[str, zipfile.ZipFile]) -> None:
    files = [str(wheel.filename) for wheel in wheels.values()]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_version_is_in_all_projects_the_changelog_and_the_citation() -> None:
    (version,) = {project["version"] for project in PROJECTS.values()}
    changelog = (ROOT / "CHANGELOG.md").read_text()
    first = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert first is not None and first[1] == version
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {version}\n" in citation
    assert f"date-released: {first[2]}\n" in citation
    for project in PROJECTS.values():
        optional = project.get("optional-dependencies", {}).values()
        needs = [*project["dependencies"], *(need for extra in optional for need in extra)]
        for need in needs:
            name = re.split(r"[\[=<> ]", need)[0]
            if name in ("rapo-core", "rapo-gate"):
                assert need == f"{name}=={version}"


def test_the_gate_and_the_core_name_nothing_of_the_research_half() -> None:
    for package in ("core", "gate"):
        names = {re.split(r"[\[=<>; ]", need)[0] for need in PROJECTS[package]["dependencies"]}
        assert not names & {*GATE_LEAVES_OUT, "rapo-rl"}


def test_what_the_image_copies_is_enough_to_build(tmp_path: Path) -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.*) (\S+)$", dockerfile, re.MULTILINE)
    kept = (ROOT / "deploy/Dockerfile.dockerignore").read_text().split()
    for names, target in copied:
        for name in names.split():
            assert f"!{name}" in kept
            place = tmp_path / target
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, symlinks=True)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
    for package in ("core", "gate"):
        build(tmp_path / "wheels", tmp_path / "packages" / package)


def test_extras_are_called_by_the_name_of_their_distribution() -> None:
    extras = {
        project["name"]: set(project.get("optional-dependencies", {}))
        for project in PROJECTS.values()
    }
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages += [*(ROOT / "packages").glob("*/src/**/*.py"), *(ROOT / "packages").glob("*/README.md")]
    seen = 0
    for page in pages:
        text = page.read_text()
        for line in re.findall(r"pip install.*", text):
            for name, names in re.findall(r"['\"]([\w./-]*)\[([\w,]+)\]", line):
                distribution = {f"./packages/{k}": p["name"] for k, p in PROJECTS.items()}.get(
                    name, name
                )
                assert set(names.split(",")) <= extras[distribution], f"{page}: {line}"
                seen += 1
        assert not re.search(r"pip install rapo(?![\w-])", text), page
    assert seen > 10
