"""Projected memory on GPUs of shards, and of one partition in compact rows.

docs/shards.md, "On GPUs", and docs/one-gpu.md explain it to users.

A shard stores the edges that have an end of its class. Each such edge is one half; an edge whose ends are both of the
class has two entries. The vertices are distributed evenly, so one of P shards has 2/P - 1/P² halves and 2/P entries for
each edge of the graph. It owns 1/P of the edges: those whose high end is of its class.
"""

from __future__ import annotations

HALF_BYTES = 24
"""Bytes of a half while it is peeled: its ends, its count, and its positions in three lists."""
ARRIVED_BYTES = 12
"""Bytes of a half as received: its ends and the support. They are kept, as the result refers to them."""
ENTRY_BYTES = 25
"""Bytes of an entry of a row, with its share of a hash bucket and of a filter."""
VERTEX_BYTES = 16
"""Bytes of a vertex of the graph, of any class: the offset and length of its row."""
BUCKET_BYTES = 13
"""Additional bytes of an edge in its bucket. One partition takes 117 bytes an edge in a run, and 104 in peeling alone
(docs/engineering/gpus.md).
"""
SORTING_BYTES, SORTED_AT_ONCE = 60, 2**28
"""Bytes of an edge while it is sorted, besides the input and the output, and the edges that are sorted at once
(kernels/gpu/shards/triangles.py).
"""
HALVES_BYTES = 3 * ARRIVED_BYTES
"""Bytes of a half while the halves of all buckets are merged: sent, received, and merged."""
MERGING_BYTES, MERGED_AT_ONCE = 100, 2**26
"""Bytes of a half while it is merged, besides HALVES_BYTES, and the halves that are merged at once
(tasks/shards/group_edges.py).
"""
CLOSING_BYTES = 28
"""Bytes of an owned edge while the owned edges of all buckets are merged: 8 received, 8 joined, and 12 sorted."""
OWNED_BYTES = 16
"""Bytes of an owned edge while triangles are found: its entry, its position, and its sum twice."""
PASSING_BYTES = 29
"""Bytes of an edge of a streamed batch: 12 received, and 17 for counting."""
PASSED_VERTEX_BYTES = 32
"""Bytes of a vertex of the graph while batches are streamed."""
BATCH_EDGES = 2**22
"""Edges of a batch, or half of the edges that a group owns if that is more. As in `sharding`."""
LARGEST = 1.1
"""Size of the largest shard over the mean, for up to 16 shards (docs/shards.md)."""
MOST_LEAVING = 2**22
"""Most edges of one shard that are removed in one exchange. This and the next value equal those in
kernels/gpu/shards/mail.py.
"""
MOST_TELLING = 2**20
"""Most halves that send a message in one exchange."""
LEAVING_BYTES, MESSAGE_BYTES = 8, 16
"""Bytes in a mailbox of a removed edge, and of a message about a half."""

COMPACT_FINDING_BYTES = 26
"""Bytes of an edge of one partition while triangles are found: 14 for its bucket and its row in the result, its end,
its triangles, and its share of the part of the lists that is processed at a time.
"""
COMPACT_EDGE_BYTES = 14
"""Bytes of any edge while edges are peeled in compact rows, for its bucket and its row in the result. Its end, its
triangles and λ are in mapped host memory if need be.
"""
COMPACT_CLOSED_BYTES = 28
"""Bytes of an edge with triangles in the same phase: its rows (22.7), its share of lists (2.5), and of the part of the
rows that is rebuilt at a time. All of this was 22.4 bytes an edge of R-MAT 24 without the 14
(docs/engineering/gpus.md).
"""
COMPACT_VERTEX_BYTES = 72
"""Bytes of a vertex in the same phase: its id, its degree, and the offsets of its rows while they are rebuilt."""


def compact_bytes(edges: int, with_triangles: int, vertices: int, moved: bool = False) -> int:
    """Bytes that one partition takes on a GPU, from ingest to result, if it is peeled in compact rows.

    `moved`: whether edges in buckets, and their rows in the result, are in host memory meanwhile.
    """
    kept = 0 if moved else COMPACT_EDGE_BYTES
    finding = COMPACT_FINDING_BYTES - COMPACT_EDGE_BYTES + kept
    return max(edges * finding, edges * kept + with_triangles * COMPACT_CLOSED_BYTES) + vertices * COMPACT_VERTEX_BYTES


def halves_of_a_shard(edges: int, shards: int, largest: float = LARGEST) -> int:
    """Halves of the largest of `shards` shards of a graph with `edges` edges that have triangles."""
    if shards == 1:
        return edges
    return round(min(1.0, largest * (2 / shards - 1 / shards**2)) * edges)


def mailbox_bytes(edges: int, shards: int) -> int:
    """Bytes of the mailboxes of a shard. Each other shard writes into them the edges and messages of two exchanges."""
    return 2 * shards * (min(edges, MOST_LEAVING) * LEAVING_BYTES + 2 * min(edges, MOST_TELLING) * MESSAGE_BYTES)


def shards_bytes(
    edges: int, with_triangles: int, vertices: int, shards: int, here: int = 1, largest: float = LARGEST
) -> int:
    """Bytes that `here` of `shards` shards take on one GPU, from ingest to result.

    `largest` is the size of the largest shard over the mean. Edges without triangles are not peeled. A GPU runs one
    task at a time, except peeling, which runs for all its shards together.
    """
    owned = largest * edges / shards
    halves = halves_of_a_shard(with_triangles, shards, largest)
    finding = here * owned * OWNED_BYTES + vertices * PASSED_VERTEX_BYTES
    finding += min(edges, max(BATCH_EDGES, owned / 2)) * PASSING_BYTES
    arriving = (here - 1) * halves * ARRIVED_BYTES + halves * HALVES_BYTES
    arriving += MERGING_BYTES * min(halves, MERGED_AT_ONCE)
    peeling = here * (
        halves * (HALF_BYTES + ARRIVED_BYTES)
        + largest * 2 * with_triangles / shards * ENTRY_BYTES
        + vertices * VERTEX_BYTES
        + mailbox_bytes(with_triangles, shards)
    )
    closing = here * owned * OWNED_BYTES + owned * CLOSING_BYTES + SORTING_BYTES * min(owned, SORTED_AT_ONCE)
    most = max(closing, finding, arriving, peeling)
    return round(most + here * edges / shards * BUCKET_BYTES)
