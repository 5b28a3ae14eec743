"""Parts of self-contained HTML pages: frame, tables, pictures. All reports are built of them."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO
from string import Template
from typing import Any

import pandas as pd

DPI = 130
MARKS = {"MISSED": "differs", "holds": "holds"}
"""Words that a cell may end with, and how it is coloured then."""


def page_html(title: str, body: str) -> str:
    """A whole page that needs nothing from elsewhere; `body` is HTML, the title plain words."""
    return _PAGE.substitute(title=escape(title), body=body)


def table_html(frame: pd.DataFrame, caption: str = "") -> str:
    """HTML of a table; cells that say of a demand that it is missed or holds are coloured."""
    head = "".join(f"<th scope=col>{escape(str(c))}</th>" for c in frame.columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_class(str(cell))}>{escape(str(cell))}</td>" for cell in row)
        + "</tr>"
        for row in frame.itertuples(index=False)
    )
    return (
        f'<div class="wide"><table>{f"<caption>{escape(caption)}</caption>" if caption else ""}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _class(cell: str) -> str:
    """Of a cell that is a verdict, or ends with one."""
    for word, name in MARKS.items():
        if cell == word or cell.endswith(f" {word}"):
            return f' class="{name}"'
    return ""


def picture_html(figure: Any, caption: str) -> str:
    """HTML of a matplotlib figure, which the page holds itself; the caption stands below it."""
    from PIL import Image

    raw, small = BytesIO(), BytesIO()
    figure.savefig(raw, format="png", dpi=DPI)
    # a palette is enough for flat colours and takes a third of the bytes
    Image.open(raw).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    data = base64.b64encode(small.getvalue()).decode()
    words = escape(caption)
    return (
        f'<figure><img alt="{words}" src="data:image/png;base64,{data}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2430; background: #fff; max-width: 1080px;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-bottom: .3rem;
  border-bottom: 1px solid #e3e6ea; }
nav, .size, caption, figcaption { color: #5b6270; font-size: .92rem; }
a { color: #0b5fa5; }
.wide { overflow-x: auto; }
.wide img { min-width: 680px; }
table { border-collapse: collapse; font-size: .88rem; margin: .8rem 0 1.2rem; width: 100%; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .28rem .6rem .28rem 0; }
thead th { vertical-align: bottom; border-bottom: 1.5px solid #9aa0a8; }
tbody { break-inside: avoid; }
tbody th, td { border-bottom: 1px solid #eceef1; }
td { overflow-wrap: break-word; }
th small { display: block; font-weight: normal; color: #5b6270; max-width: 17rem; }
td.holds { color: #00694c; font-weight: 600; white-space: nowrap; }
td.differs { color: #a33b00; font-weight: 600; }
.number, thead .number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.none { text-align: right; color: #5b6270; font-style: italic; }
.note { color: #444; font-size: .9rem; overflow-wrap: anywhere; }
figure { margin: 1.4rem 0; break-inside: avoid; }
figcaption { margin-top: .3rem; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; }
details { border-top: 1px solid #e3e6ea; padding: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { background: #f6f7f9; padding: .8rem; overflow-x: auto; font-size: .78rem; }
.manifest td { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem;
  font-family: ui-monospace, monospace; }
.manifest th { width: 9rem; }
@media (max-width: 600px) { td { min-width: 4.2rem; } }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } }
</style>
</head>
<body>
$body
</body>
</html>
""")
