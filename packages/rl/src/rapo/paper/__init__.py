"""Whole experiments: environments, policies and diagnostics put together.

Its files, in the order in which data flows:

- throttle, evaluation, shields: a scripted controller, trained policies evaluated, shields tuned
- task, tasks, cost, greedy, noisy_reports: train, tune, evaluate as values: a key says all that
  a result depends on
- pool, schedule, ray_engine: one way to run them: calls side by side, tasks in the order of
  their needs, processes or Ray
- pieces, piece_folder, piece_content, piece_reader: a Parquet file per result, or one for all:
  written, found and packed, made of a result, checked and read
- presets, paper, reproduce, page: sizes, the paper's numbers, `rapo reproduce`, the report
- studies/: a folder per table or figure: plan, analysis, claims, figures; shared: section,
  verdicts, graph_means, budgets, drawing
- screening, calibration/: the open settings, searched on graphs from 1000 on: targets, space,
  search, trained
- networks/: RAPO on networks that nothing was tuned for: catalogue, plan, analysis, figure,
  command
- suite/: one scorecard on every platform: domains, measure, rows, bars, figure, scorecard,
  command
- consistency/: which of the paper's numbers hold together: numbers, screened, frontier, shifts,
  readings, reasons, figure, summary, command
"""
