"""Harm memory and deformation: the mathematics, written once.

Names load on first use, see `__init__.pyi`: importing the package loads neither NumPy nor numba.

Its files, in the order in which data flows:

- params, memory, deformation: `FieldParams`, `HarmMemory`, conductance and what it does to kernels
- fields: G, H, psi and harm as functions that kernels inline
- lanes: 32 episodes, or 32 reactors, as one value inside numba kernels
- bits, bundle: sets as bits of words; many arrays as one argument of a kernel
- jit, kernel_stamp: the decorators of kernels; what a cached kernel was made from
- operating_point: steady traces against tau: which regions can scar, and when a scar bites
- action_probs, checks: distributions over actions; checks that name what they received
- files: files that are written whole, and never overwritten unasked
- version: of the installed package, and who else has its name
- command_line: errors of a command as one line
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
