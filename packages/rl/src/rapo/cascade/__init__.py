"""Graphs, regions and the cascade engine.

Its files, in the order in which data flows:

- graph, generate, scale, spread, remarks, load, edges, layout, landmarks, regions: from data to
  an immutable Graph
- setting, readings/, echo: the open choices of the platform, one file; other readings;
  V_sens as an amplifier
- injection, rng, clock, stats, served, positions: what is injected; draws; phases; what a step
  reports; places in the kernels' arrays
- given, phased: arguments checked; how episodes are started and moved through phases
- lanes_kernel, push_kernel, backends, engine: Cascade: many episodes, one kernel call a step
- exposure, fit, fit_search, fit_outcome, fitted, idle: the operating point of a graph; regions
  and tau fitted to it; warnings
"""
