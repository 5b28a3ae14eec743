"""`rapo lab`: a page on this machine that answers while constants of a run are moved.

Its files, in the order in which data flows:

- request: a source, two variants and the episodes, as the page asks for them, checked
- sources, policies: graphs and platforms; the policies that can be run on them
- metrics: metrics and curves, with a cache of runs
- film, scenes: the shown episode, for the page and as a GIF; the picture that it is drawn on
- code: the metrics as a Python program and as a command
- wire, latest_job, api: arrays for a browser; one job at a time; what the page can ask for
- server, serve, static/: token and headers; the address; the page
"""
