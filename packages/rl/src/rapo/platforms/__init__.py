"""Platforms: many users, flows, robots or units that choose among candidates, with harm memory.

Its files, in the order in which data flows:

- hooks, proposal, batch: what a domain says; candidates and harm; `BatchPlatform`
- kernel, memory, phases, report: psi, law, draw and counts in one call; regions or a scar
  field; clocks and keys; info
- vector, single, episode_memory, registration: Gymnasium: many, one, ids
- data, settings, canvas: what all domains share: real data or a stand-in, open values by type,
  dark pictures
- feed/, routing/, warehouse/, twin/: a domain: platform, setting, its tables and
  kernels, the field's own baseline, picture
- walkers, walker_platform, tabular: walkers that are asked one by one; transition tables
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
