"""The Replay Suppression Diagnostic: does a system replay what harmed it before?

Its files, in the order in which data flows:

- protocol, stage: what an environment must offer: RSD's calls, or a stage of its own choice
- policy, saved_models: policies of all kinds as actors
- runner, plan, episodes, frame: `evaluate`: what is run, the phases of one run, the numbers of
  its episodes
- metrics, statistics, bootstrap, tails, pooled, result: pure functions on what was found
- plots, table, report: figures; the table of metrics; the HTML page of RSD
- checker, trial, restart: what an environment or a policy breaks, in words
- wrappers: environments that offer what RSD needs, under the names of this package
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
