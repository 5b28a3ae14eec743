"""Self-contained HTML pages: one base template, and a template for each kind of page.

- page: `render` fills a template; `embedded` turns a figure into a part of the page
- templates/: `base` is the frame of every page, `parts` its tables and figures; `diagnostic` is
  the page of RSD, `reproduction` that of the paper's studies, `scorecard` that of the suite
"""
