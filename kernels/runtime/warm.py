"""Compile every kernel of a run, or load it from the cache, before a stage's time is measured."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import cpu
from ..cpu.arrays.strings import hash_strings, sort_strings
from ..cpu.nest import nest_many, subtree_minima, subtree_sums
from ..cpu.shards.cut import Cut
from ..graph import Topology


@dataclass(frozen=True)
class WarmUp:
    """Result of `warm`."""

    compiled: int
    """Kernels that were compiled. The others came from the cache or had been loaded before."""
    seconds: float


def warm(method: str, partitions: int, on_gpu: bool = False, text: bool = False) -> WarmUp:
    """Call each kernel that `method` (peel, band or fixpoint) uses with `partitions` partitions, on one triangle.

    With `text` also the kernels for strings. A run on GPUs sorts and nests on the CPU, so with `on_gpu` these kernels
    are called. The GPU's kernels that are chosen by the shape of the graph are then compiled, or loaded from CuPy's
    cache (``CUPY_CACHE_DIR``); `tasks.warm` calls all others.
    """
    start = time.perf_counter()
    before = _compiled()
    if text:
        sort_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8))
        hash_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.uint64(1))
    one = np.ones(1, np.int32)
    parent = cpu.nest(one, one, one, 2).parent
    nest_many(one, one, one, 2)
    subtree_minima(parent, subtree_sums(parent, np.ones(1, np.int64)))
    if on_gpu:
        from ..gpu.tables import compile_all

        cpu.order_pairs(np.zeros(1, np.int32), np.ones(1, np.int32), 2, 2)
        compile_all()
    else:
        _warm_bounding(method, partitions)
    return WarmUp(_compiled() - before, time.perf_counter() - start)


def _warm_bounding(method: str, partitions: int) -> None:
    low, high = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    offsets = np.array([0, 2, 3, 3], np.int64)
    cpu.order_pairs(low, high, 3, 3)
    cpu.intersect(offsets, high, offsets, high, np.ones(3, np.bool_))
    topology = Topology(low, high, 3)
    rows = cpu.adjacency(topology)
    cpu.compact(rows, np.ones(3, np.bool_))
    one = np.ones(3, np.int32)
    if partitions > 1:
        cpu.pack_lists(offsets, high, np.array([0, 1, 1], np.int16), 0, 2)
        cpu.lookup(np.arange(3), np.arange(3))
        _warm_third_vertex()
    if method == "peel":
        cpu.Peeling(topology, one).advance()
    elif method == "band":
        table, zero = np.full(3, 2, np.int32), np.zeros(3, np.int32)
        _, count, _, frontier = cpu.reband(zero, one, one, zero, np.ones(3, np.bool_), table)
        cpu.Cascade(topology, rows).run(rows, count, frontier, table, zero)
    else:
        rounds = cpu.Fixpoint(topology, rows, np.ones(3, np.bool_), 1)
        rounds.evaluate(one, np.arange(3, dtype=np.int32), False)
        rounds.unsettle(one, np.arange(3, dtype=np.int32))


def _warm_third_vertex() -> None:
    """Supports by shards, of a triangle whose edges come in two runs."""
    low, high, starts = (np.array(part, np.uint32) for part in ([0, 1, 0], [1, 2, 2], [0, 2, 3]))
    runs, one = np.array([0, 2, 3]), np.ones(3, np.int32)
    merged = cpu.merge_rows(low, high, runs, 3)
    cpu.to_merged_order(merged.origin, one > 0, low, one, one, runs, np.zeros(2, np.int16))
    frozen = low.copy()
    frozen.flags.writeable = False  # arrays from another worker cannot be written to: another type to the compiler
    for ends in (low, frozen):
        Cut(3, 1).classes(ends)
    rows = cpu.third_vertex_rows(merged, Cut(3, 1), 0, 1)
    cpu.count_by_third_vertex(rows, starts, low[:2], merged.high, np.zeros(3, np.int32))


def _compiled() -> int:
    """Number of kernels that this process has compiled, called by `warm` or not."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{cpu.__name__}.")]
    # By identity: some modules import kernels of others.
    found: dict[int, Any] = {id(k): k for module in modules for k in vars(module).values() if hasattr(k, "stats")}
    return sum(sum(k.stats.cache_misses.values()) for k in found.values())
