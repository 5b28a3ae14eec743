"""Gymnasium environments over the cascade engine.

Its files, in the order in which data flows:

- task, field_summary, vector, single, render: observation, reward and info; a summary of the
  fields; Gymnasium, many and one; pictures
- blit: figures whose still part is drawn once
- episodes, one: RSD episodes side by side, and the only one of them, for every engine with
  phases
- stage, protocol_stage: how RSD runs them: all at once, by what a subclass overrides, by the
  protocol
"""
