"""Processes side by side, one thread each: torch with several collapses on small machines."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from multiprocessing.managers import SyncManager
from threading import Thread
from time import sleep
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def end_with(parent: int) -> None:
    """End this process soon after its parent: an orphan would train on and hold its folder.

    Ctrl-C reaches all processes of a terminal; the parent alone answers it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            sleep(0.2)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def pool(jobs: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes for tasks; default one per core.

    What waits is dropped on an error; Ctrl-C also ends what runs.
    """
    others = set(active_children())
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # children read it when they load NumPy
    executor = ProcessPoolExecutor(
        jobs or os.cpu_count() or 1,
        mp_context=get_context("spawn"),
        initializer=end_with,
        initargs=(os.getpid(),),
    )
    try:
        yield executor
    except BaseException as error:
        executor.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, KeyboardInterrupt):
            for process in set(active_children()) - others:
                process.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def as_they_end(
    executor: Executor,
    calls: Mapping[Key, Sequence[Any]],
    *,
    between: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Key, Any]]:
    """Run calls side by side; the key and the result of each as it ends. An error ends it all.

    Args:
        executor: where, such as a `pool`.
        calls: function and arguments, by key.
        between: called a few times a second while they run.
    """
    running = {executor.submit(*call): key for key, call in calls.items()}
    waiting = set(running)
    while waiting:
        between()
        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            yield running[future], future.result()


@contextmanager
def channel() -> Iterator[Any]:
    """A queue through which such processes tell the parent how far they are."""
    manager = SyncManager(ctx=get_context("spawn"))
    manager.start(end_with, (os.getpid(),))
    with manager:
        yield manager.Queue()
