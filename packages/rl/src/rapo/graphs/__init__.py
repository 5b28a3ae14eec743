"""From data to an immutable graph, and constants that are fitted to it.

A graph's scale factor and its fit are measured by running cascades, so this package is above
`rapo.cascade`, which holds the type `Graph` and the engine.

- generate, load, layout: graphs that are drawn, and graphs that are read
- edge_weights, landmarks: V_sens as an amplifier; V_sens and stimuli
- scale, spread, warnings: the usual cascade size; what a user should know of a loaded graph
- exposure, fit, fit_search: the operating point of a graph; regions
  and tau fitted to it; warnings
"""
