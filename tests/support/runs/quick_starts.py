"""Worker processes that clusters of tests start are forked from one that has imported what a run needs.

Each would otherwise take two seconds to import it. The environment of workers is that of the beginning: a test that
sets variables for workers starts them by `spawned`.
"""

from __future__ import annotations

import multiprocessing
from contextlib import AbstractContextManager
from multiprocessing import forkserver

import dask
from distributed.utils import get_mp_context

_METHOD = "distributed.worker.multiprocessing-method"


def fork_workers() -> None:
    """Start the process from which workers are forked. It imports while tests run."""
    dask.config.set({_METHOD: "forkserver"})
    get_mp_context()  # has Dask set modules of its own
    multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", "edgemill.pipeline.run.mining"])
    forkserver.ensure_running()


def spawned() -> AbstractContextManager[object]:
    """Within it workers start as they do for users."""
    return dask.config.set({_METHOD: "spawn"})
