"""Compiles what runs by shards call, or loads it from the cache, before the clock of a stage runs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ... import kernels
from ...kernels.cpu.meeting import await_change, load, store
from ...kernels.cpu.shards import Cut, give_sides, take_sides
from ...kernels.threads import kernel_threads
from ..degrees import OrientedEdges
from ..device import moved
from ..identity import Put
from ..messages import collect
from . import answers, halves, streams, supports
from .carrier import MemoryCarrier
from .dealing import Dealing
from .edges import ShardEdges
from .gpu_groups import peel_groups_on_gpu
from .halves import GroupEdges
from .peeling import peel_shards
from .supports import BucketSupports

CLIQUE = 6
"""Vertices of each of the cliques that a GPU peels."""
CLIQUES = 1024
"""So many that no array is small: CuPy has kernels of their own for those."""
BUCKETS = 2


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


def warm_shards_on_gpu() -> int:
    """Bring cliques to shards on the GPU, peel them, and bring λ back; gives the sum of all λ that came back.

    Buckets lie there or on the host, and mail goes through mailboxes or is carried.
    """
    total = 0
    for groups in (1, 2):  # a kernel that has the GPU alone is compiled apart
        for put, way in ((kernels.to_device, "auto"), (kernels.to_host, "memory")):
            by_bucket, own = find_groups(groups, kernels.to_device, put)
            carriers = MemoryCarrier.open(groups)
            try:
                states = peel_groups_on_gpu([one.edges for one in own], carriers, way=way)
            finally:
                for carrier in carriers:
                    carrier.close()
            sent = [
                answers.send_intervals(one.rows, state.low, state.high) for one, state in zip(own, states, strict=True)
            ]
            for b, found in enumerate(by_bucket):
                total += int(answers.collect_intervals(found, collect(b, sent)).low.sum())
    return total


def find_groups(groups: int, put: Put, put_buckets: Put) -> tuple[list[BucketSupports], list[GroupEdges]]:
    """Cliques in buckets, which lie where `put_buckets` has them, and in so many groups of one shard, where `put` has
    them.
    """
    oriented = [moved(own, put_buckets) for own in _oriented()]
    dealing = Dealing.of(CLIQUE * CLIQUES, groups, groups)
    found = list(map(streams.sort_edges, oriented))
    everyone = range(groups)
    runs = [streams.send_edges(own, dealing) for own in found]
    closing = [supports.collect_closing(g, dealing, put, collect(g, runs)) for g in everyone]
    counted = [supports.count_streams(own, [bucket.stream for bucket in found]) for own in closing]
    total = supports.add_partials(None, [counted[0].partial])
    total = supports.add_partials(total, [state.partial for state in counted[1:]])
    sums = [supports.send_sums(own, state) for own, state in zip(closing, counted, strict=True)]
    starts = [0, len(found[0])]
    by_bucket = [
        supports.collect_supports(found[b], dealing, total, starts[b], collect(b, sums)) for b in range(BUCKETS)
    ]
    supports.check_triangles([own.total for own in by_bucket], [state.triangles for state in counted])
    sent = [halves.send_halves(own, own_supports, dealing) for own, own_supports in zip(found, by_bucket, strict=True)]
    edges = sum(own.closed for own in by_bucket)
    return by_bucket, [halves.build_edges(g, dealing, edges, put, put_buckets, collect(g, sent)) for g in everyone]


def _oriented() -> list[OrientedEdges]:
    """The edges of all cliques, over all buckets."""
    one = np.array(list(combinations(range(CLIQUE), 2)), np.int32)
    ends = (CLIQUE * np.arange(CLIQUES, dtype=np.int32)[:, None, None] + one).reshape(-1, 2)
    return [
        OrientedEdges(b, own[:, 0].copy(), own[:, 1].copy(), np.zeros(len(own), np.bool_))
        for b, own in enumerate(np.split(ends, BUCKETS))
    ]
