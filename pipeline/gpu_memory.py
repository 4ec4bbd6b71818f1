"""Memory that shards, or one partition in compact rows, take on GPUs, as a plan projects it.

docs/shards.md, "On GPUs", has what the bytes of shards are for, and docs/one-gpu.md those of compact rows.

A shard stores the edges that have an end of its class. Each such edge is one half; an edge whose ends are both of the
class has two entries. The vertices are dealt evenly, so a shard of P has (2/P - 1/P²) of the edges as halves and 2/P as
entries. It owns 1/P of the edges, those whose high end is of its class.
"""

from __future__ import annotations

__all__ = ["compact_bytes", "halves_of_a_shard", "mailbox_bytes", "shards_bytes"]

HALF_BYTES = 24
"""Of a half while it is peeled: its ends, its count, and its places in three lists."""
ARRIVED_BYTES = 12
"""Of a half as it came: its ends and the support. They stay, as the result is told by them."""
ENTRY_BYTES = 25
"""Of an entry of a row: itself, its share of a bucket, and of a filter."""
VERTEX_BYTES = 16
"""Of a vertex of the graph, whatever its class: where its row is, and how long."""
BUCKET_BYTES = 13
"""Of an edge in its bucket, beside. One partition takes 117 bytes an edge in a run and 104 in its peeling alone
(docs/performance.md).
"""
SORTING_BYTES = 48
"""Of an edge that is sorted with others, beside what is given and found (kernels/gpu/closing.py)."""
HALVES_BYTES = SORTING_BYTES + 3 * ARRIVED_BYTES
"""Of a half while those of all buckets are put in order: as they came, joined, and sorted."""
CLOSING_BYTES = SORTING_BYTES + 28
"""Of an owned edge while those of all buckets are put in order: 8 bytes as it came, 8 joined, and 12 sorted."""
OWNED_BYTES = 16
"""Of an owned edge while triangles are found: its entry, its place, and its sum twice."""
PASSING_BYTES = 29
"""Of an edge of a batch that passes by: 12 as it came, and 17 to count with."""
PASSED_VERTEX_BYTES = 32
"""Of a vertex of the graph while they pass by."""
BATCH_EDGES = 2**22
"""Edges of a batch, or half of those that a group owns where these are more; as in `pipeline.sharding`."""
LARGEST = 1.1
"""The largest of 16 shards stores so many times the mean, at most (docs/shards.md)."""
MOST_LEAVING = 2**22
"""Edges of one shard that leave in one exchange, at most; as in kernels/gpu/shard_mail.py, like the next."""
MOST_TELLING = 2**20
"""Halves that have something to tell in one."""
LEAVING_BYTES, MESSAGE_BYTES = 8, 16
"""Of an edge that leaves, and of a message about a half, in a mailbox."""

COMPACT_FINDING_BYTES = 42
"""Of an edge of one partition while triangles are found: 14 in its bucket and of where it is published, and 28, which
were measured (docs/performance.md).
"""
COMPACT_EDGE_BYTES = 18
"""Of an edge while those with triangles are peeled in compact rows: the 14, and its triangles."""
COMPACT_CLOSED_BYTES = 51
"""Of an edge with triangles then: its ends, numbers and owner (17), and its rows, lists and λ: 31 were used, and with
what CuPy's pool held beside, and what vertices take, 32 to 36.
"""
COMPACT_VERTEX_BYTES = 72
"""Of a vertex then: its id and its degree, and where its rows are while they are built anew."""


def compact_bytes(edges: int, with_triangles: int, vertices: int) -> int:
    """Memory that one partition takes on a GPU, from ingest to result, where it is peeled in compact rows."""
    peeling = edges * COMPACT_EDGE_BYTES + with_triangles * COMPACT_CLOSED_BYTES
    return max(edges * COMPACT_FINDING_BYTES, peeling) + vertices * COMPACT_VERTEX_BYTES


def halves_of_a_shard(edges: int, shards: int) -> int:
    """Halves of the largest of so many shards of a graph of `edges` edges with triangles."""
    if shards == 1:
        return edges
    return round(min(1.0, LARGEST * (2 / shards - 1 / shards**2)) * edges)


def mailbox_bytes(edges: int, shards: int) -> int:
    """What a shard keeps for the others to write into: two exchanges of edges and of messages, from each."""
    return 2 * shards * (min(edges, MOST_LEAVING) * LEAVING_BYTES + 2 * min(edges, MOST_TELLING) * MESSAGE_BYTES)


def shards_bytes(edges: int, with_triangles: int, vertices: int, shards: int, here: int = 1) -> int:
    """Memory that `here` of so many shards take on one GPU, from ingest to result. Edges without triangles are not
    peeled. Tasks run one at a time there, but for the peeling, which is of all.
    """
    owned = LARGEST * edges / shards
    halves = halves_of_a_shard(with_triangles, shards)
    finding = here * owned * OWNED_BYTES + vertices * PASSED_VERTEX_BYTES
    finding += min(edges, max(BATCH_EDGES, owned / 2)) * PASSING_BYTES
    arriving = (here - 1) * halves * ARRIVED_BYTES + halves * HALVES_BYTES
    peeling = here * (
        halves * (HALF_BYTES + ARRIVED_BYTES)
        + LARGEST * 2 * with_triangles / shards * ENTRY_BYTES
        + vertices * VERTEX_BYTES
        + mailbox_bytes(with_triangles, shards)
    )
    most = max(here * owned * OWNED_BYTES + owned * CLOSING_BYTES, finding, arriving, peeling)
    return round(most + here * edges / shards * BUCKET_BYTES)
