"""What a worker does before it takes tasks: `dask worker … --preload edgemill.pipeline.preload`, or `cuda worker`.

It compares its version of edgemill with the scheduler's and exits if they differ. Then it compiles the kernels of all
methods, or loads them from their cache, so that no run waits for them. Meanwhile it tells the scheduler that it
prepares, and answers /ready beside Dask's /health.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from math import inf
from typing import NoReturn

from distributed import Worker

from ..execution import GPU
from ..versions import PACKAGE, version_difference
from .ready import serve_ready, tell_preparing

_WARNING_SECONDS = 20
"""Time between two warnings that the scheduler does not answer. An attempt takes up to 30 s."""
_log = logging.getLogger("distributed.edgemill")  # Dask shows the records of loggers below its own name


async def prepare_worker(worker: Worker, compile_kernels: Callable[[bool], float]) -> None:
    """Ends the process with exit code 2 if the scheduler has another version of edgemill, or none.

    `compile_kernels` compiles the kernels of GPUs or of CPUs, or loads them, and returns the seconds that it took.
    """
    if not isinstance(worker, Worker):
        _refuse(
            worker,
            "edgemill.pipeline.preload is for workers: leave it out where a scheduler or nanny is started",
        )
    serve_ready(worker)
    warned = -inf
    while True:
        try:
            versions = await worker.scheduler.versions(packages=[PACKAGE])
            break
        except OSError as error:  # the scheduler does not run yet; Dask limits the wait by --death-timeout
            if time.monotonic() - warned >= _WARNING_SECONDS:
                warned = time.monotonic()
                _log.warning("waiting for the scheduler at %s: %s", worker.scheduler.address, error)
            await asyncio.sleep(1)
    found = version_difference(versions)
    if found is not None:
        _refuse(worker, f"this worker does not match its cluster: the scheduler at {worker.scheduler.address} {found}")
    telling = asyncio.create_task(tell_preparing(worker))
    try:
        seconds = await asyncio.to_thread(compile_kernels, GPU in worker.state.total_resources)
    finally:
        telling.cancel()
        await asyncio.wait([telling])
    _log.info("edgemill's kernels are ready, after %.1f s", seconds)


def _refuse(worker: Worker, reason: str) -> NoReturn:
    """End the process. An exception would not: Dask logs the exceptions of a preload and starts the worker anyway."""
    print(f"Error: {reason}", file=sys.stderr, flush=True)
    if getattr(worker, "nanny", None) is None:
        raise SystemExit(2)
    os._exit(2)  # the nanny sees that its worker does not start, and ends
