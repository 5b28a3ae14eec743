"""How results are written for a reader: self-contained HTML pages, Markdown, the terminal.

- page: `render` fills a template, `embedded` turns a figure into a part of the page
- templates/: `base` is the frame of every page, `parts` its tables and figures; `diagnostic` is
  the page of RSD, `report` that of the paper's studies and of the suite, also as Markdown, `lab`
  the page of `rapo lab`
- figures: figures in one look, for the studies and the suite
- terminal: tables and curves in a terminal
"""
