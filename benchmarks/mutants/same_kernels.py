"""Pytest plugin for mutants outside kernels: an edited file makes no compiled kernel stale.

`rapo_core.jit` stamps kernels with every file of their folders; a mutant of a function that no
kernel calls would have them all compiled again.
"""

from rapo_core import jit

_names = [name for name, _, _ in jit._stamp()]
jit._stamp = lambda: tuple((name, 0.0, 0) for name in _names)
