"""Worker processes that a run starts ignore Ctrl-C. A terminal sends it to them, too, but the driver must end them."""

from __future__ import annotations

import signal
import threading
from multiprocessing.resource_tracker import ensure_running

from distributed import Worker
from distributed.utils import LoopRunner


def dask_setup(worker: Worker) -> None:
    """Preload of a worker: ignore SIGINT. Dask would print a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def runner_without_ctrl_c() -> LoopRunner:
    """A started runner whose thread blocks SIGINT.

    Processes that start from this thread inherit the blocked signal. Ctrl-C cannot interrupt them before `dask_setup`
    either, when Python would print a traceback.
    """
    runner, blocked = LoopRunner(), threading.Event()

    def block() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        blocked.set()

    ensure_running()  # the resource tracker of multiprocessing: the thread that starts it unblocks SIGINT
    runner.start()
    runner.loop.add_callback(block)
    blocked.wait()
    return runner
