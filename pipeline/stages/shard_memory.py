"""Projected memory of shards on CPUs. docs/shards.md, "Memory", has their sum.

A worker has one group of the shards. The group owns its share of the edges, and stores the edges that have an end of
its classes: each of P groups stores 2 - 1/P times its share. An edge with triangles has two entries, and a half in each
of its shards: of S shards 2 - 1/S halves, as both ends may be of one class.

Two stages take the most memory. While edges go to the groups of their ends, memory has several copies of them. While
they are peeled, memory has the arrays of the shards and the data for the result. A plan uses the larger of both.
"""

from __future__ import annotations

from dataclasses import dataclass

KEPT_BYTES = 12
"""Bytes of an edge until the result is written: both ends and the triangles."""
VERTEX_BYTES = 22
"""Bytes of a vertex until the result is written: id, degree, and the index by which edges refer to it."""
STORED_BYTES = 12
"""Bytes of an edge with triangles in each group that stores it: both ends and the triangles."""
OWNED_BYTES = 6
"""Bytes of an edge with triangles in the group that owns it: bucket and row of the result."""

RANKED_BYTES = 18
"""Additional bytes of an edge until edges are with their groups: both ends by rank, sorted and unsorted."""
RANKED_VERTEX_BYTES = 10
"""Additional bytes of a vertex in the same phase."""
CLOSING_BYTES = 21
"""Bytes of an edge while groups receive the edges that they own: as sent, in one array, and merged into rows."""
SENT_BYTES, SENT_ROW_BYTES = 12, 4
"""Bytes of an edge with triangles in a message to a group (both ends and the triangles) and to its owner (the row)."""
JOINED_BYTES, JOINED_ROW_BYTES = 13, 4
"""Bytes of such an edge when the received messages are joined in one array."""
MERGED_BYTES, MERGED_ROW_BYTES = 20, 6
"""Bytes of such an edge while it is merged into the order that shards need."""

ENTRY_BYTES = 8
"""Bytes of an entry of a row."""
HALF_BYTES = 8
"""Bytes of a half that may be in files, like entries: its edge and its partner."""
COUNT_BYTES = 5
"""Bytes of a half that stay in memory: its count and its role."""
EVENT_BYTES = 6
"""Bytes of a half in the lists of a round's events: 12 for each half that is listed in the largest round."""
ROW_BYTES = 8
"""Bytes of a row. A vertex has at most one row in each shard, and at most as many rows as entries."""
CLASS_BYTES = 4
"""Bytes of a vertex of the group's classes: its mark."""
BITS_BYTES = 0.25
"""Bytes of a vertex of the graph in each shard: whether it has a row there, and the number of rows before it."""
SIDE_BYTES = 8
"""Bytes of an edge that the group stores, when peeling ends: the counts of both its halves."""
HANDED_BYTES = 8
"""Bytes of an edge that the group owns, once its shards have stopped for good: λ, and its copy on another worker."""
ANSWER_BYTES = 8
"""Bytes of an edge that the group owns: the two ends of the interval of its λ."""
MESSAGE_BYTES = 10
"""Bytes of an edge that the group owns, in messages between two groups. Measured: one message for every fourth edge in
the exchange with the most messages."""
LEAVING = 0.07
"""Share of the graph's edges that the largest round removes. Measured: 3 to 7 %, for R-MAT and real graphs."""
LEAVING_BYTES = 10
"""Bytes of each such edge that the group sends to the others."""
HEARD_BYTES = 46
"""Bytes of each such edge of the graph in every group: in messages of two exchanges, joined, and sorted."""

SCATTERED = 1.5
"""Factor if the worker is this process, which keeps freed memory."""


@dataclass(frozen=True)
class ShardMemory:
    """Memory of a worker for one of several equal groups, besides that of an idle worker."""

    edges: int
    with_triangles: float
    """Share of the edges that have triangles: only these are peeled."""
    vertices: int
    groups: int
    shards: int
    """Shards of all groups; `edges` and `vertices` are also those of all groups."""
    in_process: bool
    """Whether the worker is this process."""

    @property
    def in_memory(self) -> int:
        """Bytes if the rows are in memory."""
        most = max(self._closing, self._sending, self._peeling)
        return int(most / self.groups * (SCATTERED if self.in_process else 1))

    @property
    def in_files(self) -> int:
        """Bytes if rows and results are in files: the memory of tasks, and the messages that tasks map into memory."""
        return int(max(self._arriving / self.groups, self.peeling_in_files))

    @property
    def peeling_in_files(self) -> int:
        """The part of `in_files` that peeling takes."""
        return int((self._closed * COUNT_BYTES * self._halves + self._rounds) / self.groups)

    @property
    def stopped(self) -> int:
        """Bytes that stay in memory once the shards have stopped for good, while other tasks peel the rest."""
        edge = STORED_BYTES * self._stored + OWNED_BYTES + HANDED_BYTES
        return int((self._kept + self._closed * edge) / self.groups)

    @property
    def _closed(self) -> float:
        return self.edges * self.with_triangles

    @property
    def _stored(self) -> float:
        """Groups that store an edge."""
        return 2 - 1 / self.groups

    @property
    def _halves(self) -> float:
        """Halves of an edge."""
        return 2 - 1 / self.shards

    @property
    def _kept(self) -> float:
        return self.edges * KEPT_BYTES + self.vertices * VERTEX_BYTES

    @property
    def _ranked(self) -> float:
        return self._kept + self.edges * RANKED_BYTES + self.vertices * RANKED_VERTEX_BYTES

    @property
    def _closing(self) -> float:
        """Bytes of all groups while they receive the edges that they own."""
        return self._ranked + self.edges * CLOSING_BYTES

    @property
    def _sent(self) -> float:
        return self._closed * (SENT_BYTES * self._stored + SENT_ROW_BYTES)

    @property
    def _arriving(self) -> float:
        joined = JOINED_BYTES * self._stored + JOINED_ROW_BYTES
        merged = MERGED_BYTES * self._stored + MERGED_ROW_BYTES
        return self._sent + self._closed * (joined + merged)

    @property
    def _sending(self) -> float:
        """Bytes of all groups while they receive edges. Between processes each message has two copies."""
        return self._ranked + self._arriving + self._sent * (self.groups > 1)

    @property
    def _peeling(self) -> float:
        """Bytes of all groups when peeling ends and the memory of the rounds is still in use."""
        edge = (
            STORED_BYTES * self._stored
            + OWNED_BYTES
            + 2 * ENTRY_BYTES
            + (HALF_BYTES + COUNT_BYTES) * self._halves
            + SIDE_BYTES * self._stored
        )
        return self._kept + self._closed * edge + self._rounds

    @property
    def _rounds(self) -> float:
        """Bytes of all groups that stay in memory even if rows are in files, without counts."""
        rows = min(self.vertices * self.shards, 2 * self._closed)
        marks = self.vertices * (CLASS_BYTES + BITS_BYTES * self.shards)
        letters = self._closed * (MESSAGE_BYTES + LEAVING * (LEAVING_BYTES + HEARD_BYTES * self.groups))
        return rows * ROW_BYTES + marks + letters + self._closed * (EVENT_BYTES * self._halves + ANSWER_BYTES)
