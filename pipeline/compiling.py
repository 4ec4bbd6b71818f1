"""Compile all kernels before a run needs them: `python -m edgemill.pipeline.compiling`, as when an image is built.

The code goes to the cache folder (``EDGEMILL_CACHE_DIR``). What is already there is loaded.
"""

from __future__ import annotations

import time

from .. import kernels
from ..kernels.device import to_device
from ..kernels.warm import warm
from ..tasks.device import owned_to_device
from ..tasks.shards import warm_shards, warm_shards_on_gpu
from ..tasks.warm import run_clique, run_ingest

__all__ = ["compile_kernels"]

_PARTITIONS = 2
"""Kernels of several partitions include those of one."""


def compile_kernels(on_gpu: bool) -> float:
    """Compile or load the kernels of every method and, with `on_gpu`, those of this machine's GPU; without it those of
    shards on CPUs. Gives the seconds.
    """
    start = time.perf_counter()
    for method in ("peel", "band", "fixpoint"):
        warm(method, _PARTITIONS, text=True)
    if not on_gpu:
        warm_shards(threads=1)
    elif not kernels.device().lack:
        warm("band", _PARTITIONS, on_gpu=True)
        for method, partitions in (("peel", 1), ("band", _PARTITIONS)):
            run_clique(method, partitions, owned_to_device)
        run_clique("peel", 1, owned_to_device, compact_rows=True)
        run_ingest(to_device)
        warm_shards_on_gpu()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(f"kernels compiled in {compile_kernels(on_gpu=False):.1f} s")
