"""The Replay Suppression Diagnostic: does a system replay what harmed it before?

Its files, in the order in which data flows:

- adapters: what an environment must offer, RSD's calls or a stage of its own
- policy, saved_models: policies of all kinds as actors
- runner, episodes, frame: `evaluate`: what is run, the phases of a run, the numbers of its episodes
- metrics, statistics, bootstrap, pooled, result: pure functions on arrays; the result
- plots, table, report: figures; the table of metrics; the HTML page of RSD
- check, check_runs: what an environment or a policy breaks of the protocol, in sentences
- wrappers: environments that offer what RSD needs, under the names of this package
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
