"""Compile every kernel of a run, or load it from the cache, before the clock of its stage runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import cpu
from .cpu import adjacency, cascade, fixpoint, intersect, lists, lookup, nest, scan, sort, strings
from .cpu.shards import Cut, arrivals, closing, cut
from .graph import Topology

_MODULES = (adjacency, arrivals, cascade, closing, cut, fixpoint, intersect, lists, lookup, nest, scan, sort, strings)


@dataclass(frozen=True)
class Warmed:
    """What warming did."""

    compiled: int
    """Kernels compiled; the others came from the cache or were there."""
    seconds: float


def warm(method: str, partitions: int, on_gpu: bool = False, text: bool = False) -> Warmed:
    """Call the kernels of `method` (peel, band or fixpoint) for so many partitions on a triangle; with `text` the
    kernels of strings, too.

    What sorts is needed on the CPU where it numbers for a GPU, and what partitions always; with `on_gpu` only these,
    and the kernels of a GPU whose choice depends on the graph are compiled or loaded from CuPy's cache
    (``CUPY_CACHE_DIR``): `tasks.warm` calls all others.
    """
    start = time.perf_counter()
    before = _compiled()
    if text:
        cpu.sort_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8))
        cpu.hash_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.uint64(1))
    one = np.ones(1, np.int32)
    parent = cpu.nest(one, one, one, 2).parent
    cpu.least_up(parent, cpu.add_up(parent, np.ones(1, np.int64)))
    if on_gpu:
        from . import gpu

        cpu.sort_keys(np.arange(4), 2)
        cpu.order_pairs(np.zeros(1, np.int32), np.ones(1, np.int32), 2, 2)
        gpu.compile_all()
        return Warmed(_compiled() - before, time.perf_counter() - start)
    low, high = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    offsets = np.array([0, 2, 3, 3], np.int64)
    cpu.sort_keys(offsets, 2)
    cpu.order_pairs(low, high, 3, 3)
    cpu.intersect(offsets, high, offsets, high, np.ones(3, np.bool_))
    topology = Topology(low, high, 3)
    rows = cpu.adjacency(topology)
    cpu.compact(rows, np.ones(3, np.bool_))
    one = np.ones(3, np.int32)
    if partitions > 1:
        cpu.pack_lists(offsets, high, np.array([0, 1, 1], np.int16), 0, 2)
        cpu.lookup(np.arange(3), np.arange(3))
        _warm_closing()
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
    return Warmed(_compiled() - before, time.perf_counter() - start)


def _warm_closing() -> None:
    """Supports by shards, of a triangle whose edges come in two runs."""
    low, high, starts = (np.array(part, np.uint32) for part in ([0, 1, 0], [1, 2, 2], [0, 2, 3]))
    runs, one = np.array([0, 2, 3]), np.ones(3, np.int32)
    merged = closing.merge_rows(low, high, runs, 3)
    arrivals.arrange(merged.origin, one > 0, low, one, one, runs, np.zeros(2, np.int16))
    frozen = low.copy()
    frozen.flags.writeable = False  # as arrays are that came from another worker
    for ends in (low, frozen):
        Cut(3, 1).classes(ends)
    rows = closing.close_rows(merged, Cut(3, 1), 0, 1)
    closing.count_closed(rows, starts, low[:2], merged.high, np.zeros(3, np.int32))


def _compiled() -> int:
    """Kernels that the compiler has made in this process, whatever called them."""
    # By identity: some modules import kernels of others.
    found: dict[int, Any] = {id(k): k for module in _MODULES for k in vars(module).values() if hasattr(k, "stats")}
    return sum(sum(k.stats.cache_misses.values()) for k in found.values())
