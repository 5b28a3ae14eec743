"""The cascade: the type of graphs, the setting, and the engine that runs many episodes a call.

- setting, readings/: the open choices of the paper, one file; other readings
- graph, edges, regions: the immutable Graph and its regions
- injection, draws, clock, stats, served, kernel_arrays: what is injected; draws; phases; what a
  step reports; the kernels' arrays
- checks, phased: arguments checked; how episodes are started and moved through phases
- lanes_kernel, push_kernel, backends, engine: Cascade: many episodes, one kernel call a step
"""
