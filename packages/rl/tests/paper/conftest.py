"""Fixtures of the studies' tests: results that are written by hand."""

import pandas as pd
import pytest
from sweeps import write

from rapo.jobs.tables import write_table
from rapo.paper.jobs import append
from rapo.paper.reproduce import study
from rapo.paper.results import Results


@pytest.fixture(scope="session")
def write_result():
    """Write what a job leaves of an evaluation."""

    def write(root, evaluation, episodes, *, curves=None, costs=None, shield=None, tuning=None):
        folder = root / "jobs" / evaluation.policy.key
        frames = {
            "episodes": pd.DataFrame(episodes).astype(float),
            "curves": pd.DataFrame(curves or {"step": [0], "end": [10]}),
            "evaluations": pd.DataFrame([{"seconds": 1.0, **(shield or {})}]),
        }
        append(root, evaluation, frames)
        if costs:
            rows = [{"cost": name, "seconds": 1.0, **paid} for name, paid in costs.items()]
            write_table(folder / "training.parquet", pd.DataFrame(rows))
        if tuning is not None:
            write_table(folder / "tuning.parquet", pd.DataFrame(tuning))

    return write


@pytest.fixture
def section(write_result):
    """Makes a study of results by hand."""

    def made(name, preset, root, **options):
        plan, analyse = study(name)
        for task in plan(preset):
            write(write_result, task, root, **options)
        return analyse(Results(root, preset))

    return made
