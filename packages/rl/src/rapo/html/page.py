"""`render`: a page from its template. A page holds all that it shows and fetches nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

DPI = 130
"""Pixels per inch of embedded figures."""
_COLOURS = 128
"""Colours of an embedded figure: enough for flat colours, and a third of the bytes."""
SENTENCE = 30
"""Characters of a cell above which it counts as a sentence."""
_VERDICT = re.compile(r"(?:\S+ )?(holds|differs|MISSED)")
"""A cell that is a verdict, or a number with one after it."""


@dataclass(frozen=True)
class Section:
    """A part of a page that has a heading of its own."""

    name: str
    """Anchor of the section within its page."""
    title: str
    text: Sequence[str] = ()
    """Paragraphs."""
    tables: Sequence[tuple[str, pd.DataFrame]] = ()
    """Caption and cells of each table, ready to print."""
    figures: Sequence[tuple[str, str, Any]] = ()
    """File name, caption and matplotlib figure."""


def render(template: str, **context: Any) -> str:
    """Fill a template of this package; everything in `context` is escaped in HTML.

    Args:
        template: name of a file in `templates`, such as `diagnostic.html`.
        context: what the template names. A name that is missing is an error.
    """
    return _templates().get_template(template).render(context)


def embedded(figure: Any) -> str:
    """The `data:` address of a matplotlib figure as a PNG, for the source of an image."""
    from PIL import Image

    drawn, reduced = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    picture = Image.open(drawn).convert("RGB")
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(reduced, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(reduced.getvalue()).decode()}"


def markdown(frame: pd.DataFrame) -> str:
    """A table in Markdown."""

    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    rows = frame.itertuples(index=False)
    return "\n".join([line(frame.columns), line(["---"] * frame.shape[1]), *map(line, rows)])


def wordy(frame: pd.DataFrame) -> bool:
    """Whether a table has a sentence in some cell; on a phone its rows become paragraphs."""
    return any(len(str(cell)) > SENTENCE for row in frame.itertuples(index=False) for cell in row)


def verdict_of(cell: Any) -> str:
    """`holds` or `differs` if a cell ends with such a verdict, else nothing."""
    match = _VERDICT.fullmatch(str(cell))
    return "" if match is None else "holds" if match[1] == "holds" else "differs"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    templates = Environment(
        loader=PackageLoader("rapo.html"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "embedded": embedded,
        "markdown": markdown,
        "verdict": verdict_of,
        "wordy": wordy,
    }
    return templates
