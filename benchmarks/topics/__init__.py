"""One file per topic; the command finds every file here by itself.

A topic module has `TITLE` (a line of text) and `measure(effort)`, which returns the rows of its
table. It imports peers inside `measure`, so that a missing package costs its rows and not the run.
"""
