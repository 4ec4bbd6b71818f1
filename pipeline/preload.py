"""What a worker does before it takes work: `dask worker … --preload edgemill.pipeline.preload`, or `cuda worker`.

It compares its release with the scheduler's, and goes if they differ; then it compiles the kernels of all methods, or
loads them from their cache, so that no run waits for them. /ready, beside Dask's /health, says when it has joined.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from math import inf
from typing import NoReturn

from distributed import Worker

from .compiling import compile_kernels
from .engine import GPU
from .ready import serve_ready
from .releases import PACKAGE, difference

__all__ = ["dask_setup"]

_TELL_SECONDS = 20
"""Between two warnings that the scheduler is not there. A try takes up to 30 s, or none where it refuses at once."""
_log = logging.getLogger("distributed.edgemill")  # Dask shows what is below its own name


async def dask_setup(worker: Worker) -> None:
    """Ends the process with exit code 2 if the scheduler has another release of edgemill, or none.

    Dask calls this between the start of a worker and the moment at which it tells the scheduler that it is there.
    """
    if not isinstance(worker, Worker):
        _refuse(worker, "edgemill.pipeline.preload is for workers: leave it out where a scheduler or nanny is started")
    serve_ready(worker)
    told = -inf
    while True:
        try:
            theirs = await worker.scheduler.versions(packages=[PACKAGE])
            break
        except OSError as error:  # not there yet; Dask itself waits as long, until --death-timeout
            if time.monotonic() - told >= _TELL_SECONDS:
                told = time.monotonic()
                _log.warning("waiting for the scheduler at %s: %s", worker.scheduler.address, error)
            await asyncio.sleep(1)
    found = difference(theirs)
    if found is not None:
        _refuse(
            worker, f"this worker does not go with its cluster: the scheduler at {worker.scheduler.address} {found}"
        )
    seconds = await asyncio.to_thread(compile_kernels, GPU in worker.state.total_resources)
    _log.info("edgemill's kernels are ready, after %.1f s", seconds)


def _refuse(worker: Worker, why: str) -> NoReturn:
    """Raising an error would not do: Dask logs what goes wrong in a preload, and starts the worker all the same."""
    print(f"Error: {why}", file=sys.stderr, flush=True)
    if getattr(worker, "nanny", None) is None:
        raise SystemExit(2)
    os._exit(2)  # the nanny sees that its worker does not start, and ends
