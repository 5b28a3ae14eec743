"""From the repository to the site: the README as its first page, notebooks run, links carried over.

Pages link to each other and to files of the repository by relative paths, as a file view needs
them. On the site, what lies outside `docs` is found below `repo/`, and comes along when a page
links to it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parent
LINK = re.compile(r"!?\[(?P<words>[^\]]*)\]\((?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
ELSEWHERE = re.compile(r"^([a-z]+:|//)")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself to show a page; links that a reader follows are not among it."""
NEVER_FETCHED = ("canonical", "next", "prev", "edit")
FETCHED_BY_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*")


def at_repository(uri: str) -> str:
    """Path in the repository of a file of the site."""
    if uri == "index.md":
        return "README.md"
    return uri.removeprefix("repo/") if uri.startswith("repo/") else f"docs/{uri}"


def at_site(path: str) -> str:
    """Path on the site of a file of the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/notebooks/"):
        path = re.sub(r"\.ipynb$", ".md", path)
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repo/{path}"


def links(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    """The text with every relative link outside code replaced."""
    parts = FENCE.split(text)
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(lambda m: m[0] if ELSEWHERE.match(m["path"]) else replace(m), parts[i])
    return "".join(parts)


def linked(path: str, text: str) -> list[str]:
    """Files of the repository that the page at `path` links to."""
    found: list[str] = []

    def note(match: re.Match[str]) -> str:
        found.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), match["path"])))
        return match[0]

    links(text, note)
    return [file for file in found if (ROOT / file).is_file()]


def run_notebook(path: Path, config: Any, files: Files) -> None:
    """Execute a notebook and add it as a page, its pictures beside it."""
    os.environ["RAPO_QUIET"] = "1"  # no word on compiling kernels among the outputs
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": os.fspath(path.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    text, resources = MarkdownExporter().from_notebook_node(notebook)
    for name, content in resources["outputs"].items():
        picture = f"{path.stem}-{name}"
        text = text.replace(f"]({name})", f"]({picture})")
        files.append(File.generated(config, f"notebooks/{picture}", content=content))
    link = f"*A notebook, run when this page was made: [{path.name}]({path.name}).*\n\n"
    title, rest = text.lstrip().split("\n", 1)
    files.append(
        File.generated(config, f"notebooks/{path.stem}.md", content=f"{title}\n\n{link}{rest}")
    )


def on_files(files: Files, config: Any) -> Files:
    """Add the README, the notebooks and whatever pages link to outside `docs`."""
    files.append(File.generated(config, "index.md", abs_src_path=os.fspath(ROOT / "README.md")))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        run_notebook(notebook, config, files)
    waiting = [file for file in files if file.src_uri.endswith(".md")]
    while waiting:
        page = waiting.pop()
        for path in linked(at_repository(page.src_uri), page.content_string):
            uri = at_site(path)
            if uri.startswith("repo/") and files.get_file_from_path(uri) is None:
                file = File.generated(config, uri, abs_src_path=os.fspath(ROOT / path))
                files.append(file)
                if uri.endswith(".md"):
                    waiting.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links by the repository's paths into links by the site's; folders become words."""
    uri = page.file.src_uri
    if uri == "index.md":
        page.meta["hide"] = ["navigation"]  # a column with one entry
    here = posixpath.dirname(at_repository(uri))

    def turned(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, match["path"]))
        if (ROOT / path).is_dir():
            return match["words"]
        if uri.startswith("notebooks/") or not (ROOT / path).is_file():
            return match[0]
        target = posixpath.relpath(at_site(path), posixpath.dirname(uri) or ".")
        return match[0].replace(f"({match['path']}", f"({target}")

    return links(markdown, turned)


class Fetches(HTMLParser):
    """Collects what a page makes a browser fetch from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an address that is not of this site."""
        given = {name: value or "" for name, value in attrs}
        address = given.get(LOADED.get(tag, ""), "")
        if given.get("rel") not in NEVER_FETCHED and re.match(r"(https?:)?//", address):
            self.found.append(address)
        self.found += FETCHED_BY_STYLE.findall(given.get("style", ""))


def fetched_elsewhere(text: str, suffix: str) -> list[str]:
    """Addresses on other hosts that a page (`.html`) or a style sheet (`.css`) loads by itself."""
    if suffix == ".css":
        return FETCHED_BY_STYLE.findall(text)
    page = Fetches()
    page.feed(text)
    return page.found


def on_post_build(config: Any) -> None:
    """Refuse a site that needs a network."""
    for path in sorted(Path(config.site_dir).rglob("*")):
        if path.suffix in (".html", ".css"):
            found = fetched_elsewhere(path.read_text(encoding="utf-8"), path.suffix)
            if found:
                raise PluginError(f"{path} loads from another host: {', '.join(found[:3])}")
