"""The `rapo` command. Bad input ends with one clear line and exit code 2.

- main: the table of commands; each is loaded when it is called, so that `rapo --help` is quick
- options: what several commands share
- demo, graph, training, replay, watch, lab, suite, studies, docs, bench: a file for each command,
  or for two that belong together (`rsd` and `report`, `reproduce` and `calibrate`)
"""

from rapo.cli.main import main

__all__ = ["main"]
