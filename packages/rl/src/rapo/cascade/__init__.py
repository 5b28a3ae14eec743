"""The cascade: the type of graphs, the setting, and the engine that runs many episodes per call.

- setting, readings/: the choices that the paper leaves open, one file; other readings of the paper
- graph, edges, regions: the immutable `Graph` and its regions
- injection, draws, phases, stats: what is injected; random draws; phases; statistics of a step
- kernel_arrays, lanes_kernel, push_kernel, backends, engine: `Cascade`, many episodes, one kernel
  call per step
- greedy_policy: the policy that reads psi
"""
