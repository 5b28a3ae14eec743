"""Gymnasium environments over the cascade engine.

The files, in the order in which data flows:

- task, field_summary: what an environment on a graph is made of; observation, reward and info; ten
  numbers of the fields
- episodes, vector: RSD episodes side by side, of any engine with phases; those on a graph
- single_base, single: one episode as an ordinary Gymnasium environment
- stage, protocol_stage: how RSD runs the episodes, all at once or one through the protocol
- render, frame_cache: pictures; figures whose still part is drawn once
"""
