"""Compiles the kernels of runs by shards on CPUs, or loads them from the cache, before a stage is timed."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...kernels.cpu.arrays.indexing import SERIAL, copy_words
from ...kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from ...kernels.cpu.shards import Cut, read_endpoint_words, write_endpoint_words
from ...kernels.runtime.cache import compiling
from ...kernels.runtime.threads import kernel_threads
from .carriers.carrier import MemoryCarrier
from .edges import ShardEdges
from .peeling import peel_shards


def warm_shards(threads: int) -> None:
    """Peel a clique in two shards of one group with `threads` threads, and call the kernels that only several groups
    use. One process of a machine compiles them, and the others load them.
    """
    with compiling("peeling of shards"):
        _warm_shards(threads)


def _warm_shards(threads: int) -> None:
    low, high = np.array(list(combinations(range(4), 2)), np.uint32).T.copy()
    edges = ShardEdges(0, 1, Cut(4, 2), low, high, np.full(6, 2, np.int32), 6)
    (carrier,) = MemoryCarrier.open(1)
    frozen = low.copy()
    frozen.flags.writeable = False  # arrays from other workers are read-only
    edges.cut.classes(frozen)
    with kernel_threads(threads):
        peel_shards(edges, carrier)
        words, counts = np.zeros((2, 6), np.uint32), np.zeros((3, 2), np.int64)
        fixed = (low, high, np.uint32(4), np.uint32(2), np.arange(2), 0)
        block = np.zeros((2, 6), np.uint32)
        write_endpoint_words(*fixed, *words, counts[0], block, counts[1])
        read_endpoint_words(*fixed, block[0], np.zeros(3, np.int64), counts[2], *words)
    carrier.close()
    copy_words(np.zeros(SERIAL + 1, np.uint32), np.zeros(SERIAL + 1, np.uint32))
    own = np.zeros(1, np.uint32)
    store_release(own, 0, 1)
    own.flags.writeable = False  # words of other groups are read-only
    spin_until_at_least(own, 0, load_acquire(own, 0), 1)
