"""The gate: harm memory in front of a real platform.

It needs the core alone; the research side knows nothing of it. Names load on first use: a platform
that only calls the service (`rapo_gate.client`) does not wait for numba.

Its files, in the order in which data flows:

- config, events: settings; what the log holds and how it is written
- log/: one appender, unique keys, snapshots, the writer's lock on a file; SQLite, PostgreSQL
- fold/: from events to fields, in whole numbers and fixed order
    - attribution, ledger, exposure: a report's regions and weights; rows that counted; exposures
    - formula, kernels, records, fold: the formula; one region, one tick; all regions, refolds
    - registry, names, traffic: names as numbers; counts and alarms
    - state, snapshot: events to everything; to bytes and back
- writer, engine: the state in step with the log, by one thread
- reports, decide, gate: the two hot paths; `Gate`, which has an engine
- fields, declare, actions: what people do, each action declared once: method, endpoint, command,
  form, dry run and log line follow
- chains, audit, bias: why a decision changed; reporters, outcomes, what an action would change;
  rates by group
- retention: what is taken out of a log for good
- format, tables: numbers and times in words, what people type; what is printed, files of
  reports
- service/: the API and the page of reviewers
- shadow_log, fit: a log as arrays, folded under any settings; settings from it, in words and as
  a figure
- cli, commands, upkeep, demo: `rapo-gate …`, the bundled stream
- client: for platforms that call the service: one file, the standard library alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
