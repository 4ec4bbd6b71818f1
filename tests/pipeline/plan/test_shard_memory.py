"""The bytes that a plan counts for shards are those of the arrays that groups build; and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from drive import order_buckets
from edgemill.kernels.cpu.shards import ShardGroup
from edgemill.pipeline.stages import shard_memory as memory
from edgemill.pipeline.stages.shard_memory import ShardMemory
from edgemill.tasks.shards import group_edges, supports
from shard_edges import buckets_of, shard
from sharding import ordered, peel_in_groups

VERTICES, EDGES = 60, 900
"""So dense that each edge has triangles, and each vertex a row in every shard."""


def drawn() -> list[tuple[int, int]]:
    pairs = [(u, v) for v in range(VERTICES) for u in range(v)]
    return Random(1).sample(pairs, EDGES)


def counted(groups: int, shards: int, **changed: float) -> ShardMemory:
    made = ShardMemory(EDGES, 1.0, VERTICES, groups, shards, in_process=False)
    return replace(made, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(("groups", "shards"), [(1, 1), (1, 4), (3, 6), (4, 4)])
def test_edges_of_groups(groups: int, shards: int) -> None:
    """What is sent to groups, and what they have then."""
    built = shard(order_buckets(buckets_of(drawn(), VERTICES, 2)), groups, shards)
    stored = sum(len(own.edges.low) for own in built.groups)
    assert stored == pytest.approx(counted(groups, shards)._stored * EDGES, rel=0.05)
    sent = [
        group_edges.send_supported_edges(edges, counted, built.assignment)
        for edges, counted in zip(built.sorted, built.supports, strict=True)
    ]
    arrays = [array for one in sent for part in one.parts.values() for array in vars(part).values()]
    assert sum(array.nbytes for array in arrays) == memory.SENT_BYTES * stored + memory.SENT_ROW_BYTES * EDGES
    own = [own.edges for own in built.groups]
    assert sum(e.low.nbytes + e.high.nbytes + e.support.nbytes for e in own) == memory.STORED_BYTES * stored
    rows = [own.rows for own in built.groups]
    assert sum(own.bucket.nbytes + own.row.nbytes for own in rows) == memory.OWNED_BYTES * EDGES
    runs = [part for edges in built.sorted for part in supports.send_edges(edges, built.assignment).parts.values()]
    sent_edges = sum(run.low.nbytes + run.high.nbytes for run in runs)
    assert sent_edges < memory.CLOSING_BYTES * EDGES


@pytest.mark.parametrize(("groups", "shards"), [(1, 1), (1, 4), (3, 6), (4, 4)])
def test_arrays_of_shards(groups: int, shards: int) -> None:
    made: dict[int, ShardGroup] = {}
    states = peel_in_groups(ordered(drawn()), shards, groups, tamper=made.__setitem__)
    told, own = counted(groups, shards), list(made.values())
    assert sum(group.rows.entry.nbytes for group in own) == 2 * memory.ENTRY_BYTES * EDGES
    all_halves = sum(len(group.count) for group in own)
    assert all_halves == pytest.approx(told._halves * EDGES, rel=0.05)
    assert sum(group.count.nbytes + group.role.nbytes for group in own) == memory.COUNT_BYTES * all_halves
    assert sum(group.rows.edge.nbytes + group._state.partner.nbytes for group in own) == memory.HALF_BYTES * all_halves
    rows = sum(group.rows.row.nbytes for group in own)
    assert rows == memory.ROW_BYTES * min(VERTICES * shards, 2 * EDGES)
    assert sum(group._state.marks.nbytes for group in own) == pytest.approx(memory.CLASS_BYTES * VERTICES, rel=0.2)
    bits = sum(group.rows.has_row.nbytes for group in own)
    assert bits == 16 * shards == pytest.approx(memory.BITS_BYTES * VERTICES * shards, rel=0.1)
    assert sum(state.low.nbytes + state.high.nbytes for state in states) == memory.ANSWER_BYTES * EDGES
    counts = sum(group.endpoint_counts().nbytes for group in own)
    assert counts == pytest.approx(memory.SIDE_BYTES * told._stored * EDGES, rel=0.05)


def test_what_takes_most() -> None:
    """Peeling in one group; in several their mail, which is there twice; edges as they are, where few have triangles.
    Packets, of which every group gets all, are what more groups do not make smaller.
    """
    one, two = counted(1, 4), counted(2, 4)
    assert one.in_memory == int(one._peeling) > one._sending > one._closing
    assert two.in_memory == int(two._sending / 2) > two._peeling / 2
    assert counted(1, 4, with_triangles=0.1).in_memory == int(counted(1, 4, with_triangles=0.1)._closing)
    assert one.in_memory / 2 < two.in_memory < one.in_memory
    heard = memory.LEAVING * memory.HEARD_BYTES * EDGES
    assert counted(10**6, 10**6)._peeling / 10**6 > heard
    assert replace(one, in_process=True).in_memory == int(memory.SCATTERED * one._peeling)


@pytest.mark.parametrize("groups", [1, 2, 16])
def test_rows_in_files_take_less(groups: int) -> None:
    told = counted(groups, 2 * groups)
    assert told.peeling_in_files <= told.in_files < told.in_memory
    rows = 2 * memory.ENTRY_BYTES + memory.HALF_BYTES * told._halves + memory.SIDE_BYTES * told._stored
    ends = memory.STORED_BYTES * told._stored + memory.OWNED_BYTES
    left = told._peeling / groups - told.peeling_in_files
    assert left == pytest.approx((told._kept + (rows + ends) * EDGES) / groups, abs=1)


def test_no_triangles() -> None:
    told = counted(2, 2, with_triangles=0.0)
    assert (told.in_memory, told.in_files) == (int(told._closing / 2), told.peeling_in_files)
