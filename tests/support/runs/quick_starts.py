"""Worker processes that clusters of tests start are forked from one that has imported what a run needs.

Each would otherwise take three seconds of a core to import it. Their environment variables are those of the beginning
of the tests. A test that sets some for workers starts them with `distributed.worker.multiprocessing-method` at `spawn`.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import forkserver
from pathlib import Path

import dask
from distributed.utils import get_mp_context


def fork_workers() -> None:
    """Start the process from which workers are forked. It imports while tests run."""
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context()  # has Dask set modules of its own
    multiprocessing.get_context("forkserver").set_forkserver_preload(["before_forks"])
    paths = os.environ.get("PYTHONPATH")  # of Python 3.11 to 3.13 that process looks there alone
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *([paths] if paths else [])])
    try:
        forkserver.ensure_running()
    finally:
        if paths is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = paths
