"""Has Arrow decode and encode columns with as many threads as its worker has."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from distributed import get_worker


@cache
def use_arrow_threads() -> None:
    """Give Arrow's pool of threads the size of the worker's, once in a worker process, from one of its tasks.

    Dask's nanny sets OMP_NUM_THREADS to 1 in worker processes, and Arrow sizes its pool by that variable. All tasks
    that read would then share one thread that decodes. The pool of a process that has its worker beside other code is
    left as it is.
    """
    worker = get_worker()
    if not worker.address.startswith("inproc://"):
        pa.set_cpu_count(max(pa.cpu_count(), worker.state.nthreads))
