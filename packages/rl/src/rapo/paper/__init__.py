"""Whole experiments: environments, policies and diagnostics put together.

Its files, in the order in which data flows:

- evaluation, shields: trained policies evaluated, shields tuned
- jobs, frames: a policy with all its evaluations is one job, which writes data frames
- noisy_harm: reports of harm that are lost or noisy, for some evaluations
- results: the frames of a folder, below each other
- presets, paper, reproduce, page: sizes, the paper's numbers, `rapo reproduce`, the report
- studies/: a folder per table or figure: plan, analysis, claims, figures; shared: section,
  verdicts, graph_means, budgets
- screening, calibration/: the open settings, searched on graphs from 1000 on: targets, space,
  search, trained
"""
