"""What a worker process does that a run starts: a terminal sends Ctrl-C to it, too, and the driver is to end it."""

from __future__ import annotations

import signal
import threading
from multiprocessing.resource_tracker import ensure_running

from distributed import Worker
from distributed.utils import LoopRunner

__all__ = ["dask_setup", "runner_without_ctrl_c"]


def dask_setup(worker: Worker) -> None:
    """Ignores SIGINT; Dask would print where the worker was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def runner_without_ctrl_c() -> LoopRunner:
    """Runs a loop in a thread of its own that does not take SIGINT, nor do processes that are started from it.

    They inherit that, so a Ctrl-C cannot strike them before `dask_setup` either, when Python would print a traceback.
    """
    runner, blocked = LoopRunner(), threading.Event()

    def block() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        blocked.set()

    ensure_running()  # multiprocessing's tracker: the thread that starts it takes SIGINT again
    runner.start()
    runner.loop.add_callback(block)
    blocked.wait()
    return runner
