"""What is made when the distribution is built: its index page, its addresses, its manual.

An index page shows the README far from its repository, where relative links and pictures lead
nowhere. With the repository's address in `pyproject.toml` they become absolute, and the project's
URLs are given; without one, links become plain words and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:", "#")


def for_index(text: str, repository: str, version: str) -> str:
    """The README as an index page can show it; code blocks stay as they are.

    `repository` is an address whose files are at `blob/TAG/PATH` and, raw, at `raw/TAG/PATH`.
    """

    def picture(found: re.Match[str]) -> str:
        if found["path"].startswith(ELSEWHERE):
            return found[0]
        address = f"{repository}/raw/v{version}/{found['path']}"
        return f"![{found['words']}]({address})" if repository else ""

    def link(found: re.Match[str]) -> str:
        if found["path"].startswith(ELSEWHERE):
            return found[0]
        address = f"{repository}/blob/v{version}/{found['path']}"
        return f"[{found['words']}]({address})" if repository else found["words"]

    parts = FENCE.split(text)
    prose = [LINK.sub(link, PICTURE.sub(picture, part)) for part in parts[::2]]
    parts[::2] = [re.sub(r"\n{3,}", "\n\n", part) for part in prose]
    return "".join(parts)


def addresses(repository: str, version: str) -> dict[str, str]:
    """The project's URLs, all from the repository's; none without one."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/v{version}/README.md",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


class IndexPage(MetadataHookInterface):
    """Fills in `readme` and `urls`, which `pyproject.toml` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both to the metadata, by the hook's `repository` setting."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        if repository and not repository.startswith("https://"):
            raise ValueError(f"repository must be an https address or empty, got {repository!r}")
        version = metadata["version"]
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_index(text, repository, version),
        }
        metadata["urls"] = addresses(repository, version)


class Manual(BuildHookInterface[Any]):
    """Puts the pages of `docs` beside the package, where `rapo docs` finds them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each page to what the wheel holds; a checkout has them already."""
        if version == "editable":
            return
        folder = Path(self.root, "docs")
        for page in folder.rglob("*.md"):
            inner = page.relative_to(folder)
            if inner.parts[0] != "reference":  # directives of the site, not prose
                build_data["force_include"][str(page)] = f"rapo/docs/{inner.as_posix()}"
