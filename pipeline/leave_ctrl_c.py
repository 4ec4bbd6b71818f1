"""What a worker process does that a run starts: a terminal sends Ctrl-C to it, too, and the driver is to end it."""

from __future__ import annotations

import signal

from distributed import Worker

__all__ = ["dask_setup"]


def dask_setup(worker: Worker) -> None:
    """Ignores SIGINT; Dask would print where the worker was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
