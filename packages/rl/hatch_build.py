"""Put the manual into the wheel: `rapo docs` shows its pages where there is no checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Manual(BuildHookInterface[Any]):
    """Adds each page of the repository's `docs` folder to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the pages that the wheel holds; an editable install reads them in the checkout."""
        if version == "editable":
            return
        folder = Path(self.root).parents[1] / "docs"
        for page in folder.rglob("*.md"):
            relative = page.relative_to(folder)
            if relative.parts[0] != "reference":  # directives of the site, not prose
                build_data["force_include"][str(page)] = f"rapo/docs/{relative.as_posix()}"
