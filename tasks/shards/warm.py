"""Compiles what peeling by shards calls, or loads it from the cache, before the clock of a stage runs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...kernels.cpu.meeting import await_change, load, store
from ...kernels.cpu.shards import Cut, give_sides, take_sides
from ...kernels.threads import kernel_threads
from .carrier import MemoryCarrier
from .edges import ShardEdges
from .peeling import peel_shards


def warm_shards(threads: int) -> None:
    """Peel a clique in two shards of one group, and call what only several groups need, with so many threads."""
    low, high = np.array(list(combinations(range(4), 2)), np.uint32).T.copy()
    edges = ShardEdges(0, 1, Cut(4, 2), low, high, np.full(6, 2, np.int32), 6)
    (carrier,) = MemoryCarrier.open(1)
    frozen = low.copy()
    frozen.flags.writeable = False  # as arrays are that came from another worker
    edges.cut.classes(frozen)
    with kernel_threads(threads):
        peel_shards(edges, carrier)
        sides, counts = np.zeros((2, 6), np.uint32), np.zeros((3, 2), np.int64)
        fixed = (low, high, np.uint32(4), np.uint32(2), np.arange(2), 0)
        words = np.zeros((2, 6), np.uint32)
        give_sides(*fixed, *sides, counts[0], words, counts[1])
        take_sides(*fixed, words[0], np.zeros(3, np.int64), counts[2], *sides)
    carrier.close()
    own = np.zeros(1, np.uint32)
    store(own, 0, 1)
    own.flags.writeable = False  # as those of other groups are
    await_change(own, 0, load(own, 0), 1)
