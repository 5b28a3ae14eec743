"""`rapo lab`: a page on this machine that answers while constants of a run are moved.

Its files, in the order in which data flows:

- choice, sources, policies: what is asked for, checked; graphs and platforms; policies by name
- constant, numbers, film, scenes: a constant action a phase per call; what is shown; one
  episode; the map it is drawn on
- code, gif: the numbers as Python and as a command; the film by `rapo.show.film`
- packing, work, answers, server, command, static/: arrays for a browser; one job at a time,
  told and stopped; questions; token and headers; `rapo lab`; the page
"""
