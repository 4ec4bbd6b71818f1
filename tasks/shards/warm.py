"""Compiles the kernels of runs by shards, on CPUs and GPUs, or loads them from the cache, before a stage is timed."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ... import kernels
from ...kernels.cpu.arrays.indexing import SERIAL, copy_words
from ...kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from ...kernels.cpu.shards import Cut, read_endpoint_words, write_endpoint_words
from ...kernels.runtime.cache import compiling
from ...kernels.runtime.threads import kernel_threads
from ..device import MemorySpace, move_arrays
from ..ingest.degrees import OrientedEdges
from ..messages import collect
from . import group_edges, supports
from .assignment import ShardAssignment
from .carriers.carrier import MemoryCarrier
from .gpu.groups import peel_groups_on_gpu
from .group_edges import GroupInput, ShardEdges
from .peeling import peel_shards
from .supports import BucketSupports

CLIQUE = 6
"""Vertices of each clique that a GPU peels."""
CLIQUES = 1024
"""Enough cliques that no array is small: CuPy has separate kernels for small arrays."""
BUCKETS = 2


def warm_shards_on_gpu() -> int:
    """Send cliques to shards on the GPU, peel them, and return λ to the buckets; returns the sum of all λ.

    Buckets are on the GPU or on the host, and messages go through mailboxes or through carriers.
    """
    total = 0
    for groups in (1, 2):  # a kernel that uses the GPU alone is compiled separately
        for space, way in ((MemorySpace.DEVICE, "auto"), (MemorySpace.HOST, "memory")):
            by_bucket, own = find_groups(groups, MemorySpace.DEVICE, space)
            carriers = MemoryCarrier.open(groups)
            try:
                states = peel_groups_on_gpu([one.edges for one in own], carriers, way=way)
            finally:
                for carrier in carriers:
                    carrier.close()
            sent = [
                group_edges.send_intervals(one.rows, state.low, state.high)
                for one, state in zip(own, states, strict=True)
            ]
            for b, found in enumerate(by_bucket):
                total += kernels.total(group_edges.collect_intervals(found, collect(b, sent)).low)
    return total


def find_groups(
    groups: int, space: MemorySpace, bucket_space: MemorySpace
) -> tuple[list[BucketSupports], list[GroupInput]]:
    """Count the triangles of cliques, and bring their edges to `groups` groups of one shard.

    Returns the supports of each bucket, in `bucket_space`, and the edges of each group, in `space`.
    """
    oriented = [move_arrays(own, bucket_space) for own in _oriented()]
    assignment = ShardAssignment.of(CLIQUE * CLIQUES, groups, groups)
    found = list(map(supports.sort_edges, oriented))
    everyone = range(groups)
    runs = [supports.send_edges(own, assignment) for own in found]
    owned = [supports.collect_owned_edges(g, assignment, space, collect(g, runs)) for g in everyone]
    counted = [supports.count_streams(own, [bucket.stream for bucket in found]) for own in owned]
    total = supports.add_partials(None, [counted[0].partial])
    total = supports.add_partials(total, [state.partial for state in counted[1:]])
    sums = [supports.send_sums(own, state) for own, state in zip(owned, counted, strict=True)]
    starts = [0, len(found[0])]
    by_bucket = [
        supports.collect_supports(found[b], assignment, total, starts[b], collect(b, sums)) for b in range(BUCKETS)
    ]
    supports.check_triangles([own.total for own in by_bucket], [state.triangles for state in counted])
    sent = [
        group_edges.send_supported_edges(own, own_supports, assignment)
        for own, own_supports in zip(found, by_bucket, strict=True)
    ]
    edges = sum(own.closed for own in by_bucket)
    return by_bucket, [
        group_edges.build_group_edges(g, assignment, edges, space, bucket_space, collect(g, sent)) for g in everyone
    ]


def _oriented() -> list[OrientedEdges]:
    """The edges of all cliques, distributed over the buckets."""
    one = np.array(list(combinations(range(CLIQUE), 2)), np.int32)
    ends = (CLIQUE * np.arange(CLIQUES, dtype=np.int32)[:, None, None] + one).reshape(-1, 2)
    return [
        OrientedEdges(b, own[:, 0].copy(), own[:, 1].copy(), np.zeros(len(own), np.bool_))
        for b, own in enumerate(np.split(ends, BUCKETS))
    ]


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
