"""Platforms: many users, flows, robots or units that choose among candidates, with harm memory.

Its files, in the order in which data flows:

- hooks, candidates, platform: what a platform must say; candidates and harm; `BatchPlatform`
- kernel, memory, phases, report: psi, draw and counts in one call; regions or a scar field; clocks
  and keys; `info`
- vector, single, episode_memory: Gymnasium environments of many episodes, and of one
- entry, registration: what a platform's folder says of the platform; Gymnasium ids
- data, settings, canvas, map: what all platforms share: real data or a stand-in, open values, dark
  pictures, maps for the lab
- feed/, routing/, warehouse/, twin/: platform, setting, the field's own baseline, map, picture and
  entry, with tables and kernels of their own; cascade/: entry and baseline of the paper's cascade
- walkers, walker_platform, tabular: walkers that are asked one by one; transition tables
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
