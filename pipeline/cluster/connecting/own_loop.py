"""The event loop of a client or a cluster that a run starts: a thread of its own, whose log records Dask keeps."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from distributed.utils import LoopRunner
from tornado.ioloop import IOLoop

from ..workers.ignore_ctrl_c import runner_without_ctrl_c

_ROOTS = ("distributed", "bokeh", "tornado")
"""Loggers of what a scheduler and its workers log, with those below them."""
_IMPORTED_LATER = "distributed.http.proxy"
"""Logger of a module that a scheduler imports when it starts, and that logs then."""


class _OfRuns(logging.Filter):
    """Drops records of Dask from threads that belong to runs, except critical ones: the exception that ends a run
    reports its failures, once.

    Levels of loggers and handlers stay as they are. They are the whole process's: other clusters in it go on logging,
    and two runs that end at the same time have nothing to restore.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads: Counter[int] = Counter()
        """Thread → the number of runs that it belongs to."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.CRITICAL or not self.threads[record.thread or 0]


_of_runs, _lock = _OfRuns(), threading.Lock()


@contextmanager
def own_loop(ignores_ctrl_c: bool = False) -> Iterator[IOLoop]:
    """An event loop in a new thread, which ends with the block. Dask logs nothing from it, nor from the thread that
    calls this, until then.

    With `ignores_ctrl_c`, processes that start from the loop do not get SIGINT.
    """
    runner = runner_without_ctrl_c() if ignores_ctrl_c else LoopRunner()
    try:
        if not runner.is_started():
            runner.start()
        with _silent(threading.get_ident(), _thread_of(runner)):
            yield runner.loop
    finally:
        runner.stop()


def _thread_of(runner: LoopRunner) -> int:
    found, told = [0], threading.Event()

    def tell() -> None:
        found[0] = threading.get_ident()
        told.set()

    runner.loop.add_callback(tell)
    told.wait()
    return found[0]


@contextmanager
def _silent(*threads: int) -> Iterator[None]:
    """Within the block, Dask logs nothing from these threads but critical records."""
    known = [name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] in _ROOTS]
    for name in (
        *_ROOTS,
        _IMPORTED_LATER,
        *known,
    ):  # a filter of a logger does not see the records of the loggers below it
        logging.getLogger(name).addFilter(_of_runs)  # once, as it is the same one
    with _lock:
        _of_runs.threads.update(threads)
    try:
        yield
    finally:
        with _lock:
            _of_runs.threads.subtract(threads)
