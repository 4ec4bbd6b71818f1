"""Compile all kernels before a run needs them: `python -m edgemill.pipeline.compiling`, as when an image is built.

The code goes to the cache folder (``EDGEMILL_CACHE_DIR``). What is already there is loaded.
"""

from __future__ import annotations

from .. import kernels
from ..kernels.device import to_device
from ..kernels.warm import warm
from ..tasks.device import owned_to_device
from ..tasks.warm import run_clique, run_ingest

__all__ = ["compile_kernels"]

_PARTITIONS = 2
"""Kernels of several partitions include those of one."""


def compile_kernels(on_gpu: bool) -> float:
    """Compile or load the kernels of every method, and with `on_gpu` those of this machine's GPU; gives the seconds."""
    seconds = sum(warm(method, _PARTITIONS, text=True).seconds for method in ("peel", "band", "fixpoint"))
    if on_gpu and not kernels.device().lack:
        seconds += warm("band", _PARTITIONS, on_gpu=True).seconds
        for method, partitions in (("peel", 1), ("band", _PARTITIONS)):
            run_clique(method, partitions, owned_to_device)
        run_ingest(to_device)
    return seconds


if __name__ == "__main__":
    print(f"kernels compiled in {compile_kernels(on_gpu=False):.1f} s")
