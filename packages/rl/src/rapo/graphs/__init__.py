"""From data to an immutable graph, and constants that are fitted to it.

A graph's scale factor and its fit are measured by running cascades, so this package is above
`rapo.cascade`, which holds the type `Graph` and the engine.

- generate, ignition, load, layout: graphs that are drawn, and graphs that are read
- edge_weights, sensitive_set, stimuli: V_sens as an amplifier; V_sens and the stimuli around it
- scale, reach, spectral_radius, warnings: one factor per graph for cascades of the usual size;
  warnings about a loaded graph
- exposure, fit, fit_search: the operating point of a graph; regions and tau fitted to it
- description: what `rapo graph` prints
"""
