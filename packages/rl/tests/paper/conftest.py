"""Fixtures of the experiments' tests: tasks run here and now, and what they left."""

import json
import queue
from concurrent.futures import Future

import pytest

from rapo.paper.piece_folder import read_content
from rapo.paper.schedule import LocalEngine


class Inline:
    """An executor that runs here and now, and remembers what it ran."""

    def __init__(self):
        self.ran = []

    def submit(self, function, task, *args):
        self.ran.append(task.key)
        future = Future()
        try:
            future.set_result(function(task, *args))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="session")
def inline():
    """Makes engines of this process; `engine.executor.ran` has the keys of what ran."""
    return lambda slots=1: LocalEngine(Inline(), slots, queue.Queue())


@pytest.fixture(scope="session")
def found():
    """Reads the pieces of tasks by key, without what a clock says."""

    def read(tasks, root):
        out = {}
        for task in tasks:
            content = read_content(task.piece(root))
            del content["seconds"]
            for name in ("seconds", "steps_per_second", "environment_share"):
                del content["training"][name]
            out[task.key] = json.dumps(content)  # NaN is NaN there
        return out

    return read
