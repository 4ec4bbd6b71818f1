"""Worker processes that clusters of tests start are forked from one that has imported what a run needs.

Each would otherwise take two seconds to import it. Their environment variables are those of the beginning of the tests.
A test that sets some for workers starts them with `distributed.worker.multiprocessing-method` at `spawn`.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

import dask
from distributed.utils import get_mp_context


def fork_workers() -> None:
    """Start the process from which workers are forked. It imports while tests run."""
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context()  # has Dask set modules of its own
    multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", "edgemill.pipeline.run.mining"])
    forkserver.ensure_running()
