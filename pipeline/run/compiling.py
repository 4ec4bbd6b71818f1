"""Compiles all kernels before a run needs them, as in the build of an image. `edgemill warm` calls it.

The compiled code goes to the cache folder (``EDGEMILL_CACHE_DIR``). Kernels that are there already are loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from ... import kernels
from ...kernels.cpu.arrays.strings import are_plain_numbers
from ...kernels.runtime.threads import cores
from ...kernels.runtime.warm import warm
from ...tasks.device import MemorySpace
from ...tasks.programs.warm import warm_program
from ...tasks.shards import warm_shards, warm_shards_on_gpu
from ...tasks.update.warm import warm_orders, warm_updates
from ...tasks.warm import run_clique
from ..programs.making import shipped_programs
from ..stages.kernels import compile_for_gpus
from ..stages.tiny_run import run_stages

_PARTITIONS = 2
"""A run with several groups of shards uses all kernels of a run with one partition."""


def compile_kernels(on_gpu: bool) -> float:
    """Compile or load the kernels of every method, and either those of the GPU or those of shards on CPUs.

    Updates do not run on workers, so their kernels are left out. Gives the seconds that it took.
    """
    start = time.perf_counter()
    for method in ("peel", "band", "fixpoint", "butterflies"):
        warm(method, _PARTITIONS, text=True, processes=cores(), records=method == "peel")
    are_plain_numbers(b"1,2\n", ord(","))
    if not on_gpu:
        warm_shards(threads=1)
    elif not kernels.device().missing:
        warm("peel", _PARTITIONS, on_gpu=True)
        for method in ("peel", "fixpoint"):
            run_clique(method, MemorySpace.DEVICE)
        for compact_rows in (False, True):
            run_clique("peel", MemorySpace.DEVICE, whole=True, compact_rows=compact_rows)
        run_stages(MemorySpace.DEVICE)
        warm_shards_on_gpu()
    return time.perf_counter() - start


def compile_updates() -> float:
    """Compile or load the kernels of updates. Gives the seconds that it took."""
    start = time.perf_counter()
    warm_updates(cores())
    warm_orders()
    return time.perf_counter() - start


def compile_programs() -> float:
    """Compile or load the kernels of all vertex programs of edgemill on CPUs. Gives the seconds that it took."""
    start = time.perf_counter()
    for program in shipped_programs():
        for order in ("synchronous", "asynchronous"):
            warm_program(program, order=order)
        warm_program(program, at_once=True)
        warm_program(program, blocks=2, directed=True)
    return time.perf_counter() - start


PARTS: Mapping[str, Callable[[], float]] = {
    "lambda": partial(compile_kernels, on_gpu=False),
    "updates": compile_updates,
    "programs": compile_programs,
    "gpu": compile_for_gpus,
}
"""Functions that compile the kernels of a part of edgemill, by name. Each gives the seconds that it took. All but the
last compile kernels for CPUs.
"""
