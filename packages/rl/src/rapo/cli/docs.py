"""`rapo docs`: the manual's pages in a terminal, from the installed package or the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import rapo
from rapo_core.checks import UserError

NOT_SHOWN = ("reference",)
"""Folders that only the site shows; in Python `help` has the same text."""


def manual() -> Path:
    """The folder of the pages: inside the package in a wheel, at the root of a checkout."""
    package = Path(rapo.__file__).parent
    inside, checkout = package / "docs", package.parents[3] / "docs"
    return inside if inside.is_dir() else checkout


def pages() -> dict[str, Path]:
    """Pages by name, such as `faq`; the `README` of a folder has the folder's name."""
    folder = manual()
    names = {}
    for path in sorted(folder.rglob("*.md")):
        inner = path.relative_to(folder)
        if inner.parts[0] not in NOT_SHOWN:
            name = inner.parent if path.stem == "README" else inner.with_suffix("")
            names[name.as_posix()] = path
    if not names:
        raise UserError(f"no pages are at {folder}; install rapo-rl from its wheel, or a checkout")
    return names


def docs(
    page: Annotated[
        str | None, typer.Argument(help="A page, such as faq; default: list them all.")
    ] = None,
) -> None:
    """Read the manual in the terminal; without a page, list its pages.

    \b
    rapo docs faq
    rapo docs your-network | less -R
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rich.console import Console
    from rich.markdown import Markdown

    paths = pages()
    console = Console()
    if page is None:
        for name, path in paths.items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            console.print(f"{name:<24} {title}", highlight=False, markup=False)
        console.print("\nrapo docs PAGE shows one.", highlight=False)
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in paths:
        raise UserError(f"no page is called {page!r}; rapo docs lists them")
    console.print(Markdown(paths[name].read_text(encoding="utf-8"), hyperlinks=False))
