"""Memory that shards take on GPUs, as a plan projects it. docs/shards.md, "On GPUs", has what the bytes are for.

A shard stores the edges that have an end of its class. Each such edge is one half; an edge whose ends are both of the
class has two entries. The vertices are dealt evenly, so a shard of P has (2/P - 1/P²) of the edges as halves and 2/P as
entries.
"""

from __future__ import annotations

__all__ = ["halves_of_a_shard", "mailbox_bytes", "shard_bytes"]

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
CLOSING_BYTES = 45
"""Of an edge that the group owns while triangles are found: its entry, its ends, its number, and its sum twice."""
PASSING_BYTES = 24
"""Of an edge of a batch that passes by: its ends and its count, of two batches."""
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


def halves_of_a_shard(edges: int, shards: int) -> int:
    """Halves of the largest of so many shards of a graph of `edges` edges with triangles."""
    if shards == 1:
        return edges
    return round(min(1.0, LARGEST * (2 / shards - 1 / shards**2)) * edges)


def mailbox_bytes(edges: int, shards: int) -> int:
    """What a shard keeps for the others to write into: two exchanges of edges and of messages, from each."""
    return 2 * shards * (min(edges, MOST_LEAVING) * LEAVING_BYTES + 2 * min(edges, MOST_TELLING) * MESSAGE_BYTES)


def shard_bytes(edges: int, with_triangles: int, vertices: int, shards: int) -> int:
    """Memory of the largest of so many shards, from ingest to result. Edges without triangles are not peeled."""
    peeling = (
        halves_of_a_shard(with_triangles, shards) * (HALF_BYTES + ARRIVED_BYTES)
        + LARGEST * 2 * with_triangles / shards * ENTRY_BYTES
        + vertices * VERTEX_BYTES
        + mailbox_bytes(with_triangles, shards)
    )
    owned = LARGEST * edges / shards
    triangles = owned * CLOSING_BYTES + min(edges, max(BATCH_EDGES, owned / 2)) * PASSING_BYTES
    return round(max(peeling, triangles) + edges / shards * BUCKET_BYTES)
