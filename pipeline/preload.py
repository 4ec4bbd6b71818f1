"""Preload module of Dask workers: `dask worker … --preload edgemill.pipeline.preload`, also for `dask cuda worker`."""

from __future__ import annotations

from typing import Any

from .cluster.workers.preload import prepare_worker
from .run.compiling import compile_kernels


async def dask_setup(worker: Any) -> None:
    """Compare versions and load the kernels: Dask calls this before a worker registers with the scheduler."""
    await prepare_worker(worker, compile_kernels)
