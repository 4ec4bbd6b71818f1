"""Memory that shards take on CPUs, as a plan projects it. docs/shards.md, "Memory", has what the bytes are for.

A worker has one group of the shards. It owns its share of the edges. It stores those that have an end of its classes:
of P groups each stores 2 - 1/P times its share. An edge with triangles has two entries, and a half in each of its
shards: of S shards 2 - 1/S halves, as both ends may be of one class.

Two stages take most. While edges go to the groups of their ends, they are there several times. While they are peeled,
the arrays of the shards are there beside what is kept for the result. A plan counts the larger.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ShardMemory"]

KEPT_BYTES = 12
"""Of an edge, until the result is written: both ends and the triangles."""
VERTEX_BYTES = 22
"""Of a vertex, until then: id, degree, and where edges refer to it."""
STORED_BYTES = 12
"""Of an edge with triangles, in each group that stores it: both ends and the triangles."""
OWNED_BYTES = 6
"""Of an edge with triangles, in the group that owns it: bucket and row of the result."""

RANKED_BYTES = 18
"""Of an edge, beside what is kept, until edges are with their groups: both ends by rank, sorted and not."""
RANKED_VERTEX_BYTES = 10
"""Of a vertex then."""
CLOSING_BYTES = 21
"""Of an edge while groups get the edges that they own: as it is sent, in one array, and merged into rows."""
SENT_BYTES, SENT_ROW_BYTES = 12, 4
"""Of an edge with triangles that is sent to a group: both ends and the triangles; and to its owner: the row."""
JOINED_BYTES, JOINED_ROW_BYTES = 13, 4
"""The same in one array."""
MERGED_BYTES, MERGED_ROW_BYTES = 20, 6
"""The same while it is merged into the order that shards need."""

ENTRY_BYTES = 8
"""Of an entry of a row."""
HALF_BYTES = 8
"""Of a half: its edge and its partner, which may lie in files, as entries may;"""
COUNT_BYTES = 5
"""and its count and role, which stay in memory."""
EVENT_BYTES = 6
"""Of a half, in lists of what happens in a round: 12 for the halves to which it happens in the largest one."""
ROW_BYTES = 8
"""Of a row. A vertex has one in each shard at most, and not more of them than entries."""
CLASS_BYTES = 4
"""Of a vertex of the group's classes: room to mark it."""
BITS_BYTES = 0.25
"""Of a vertex of the graph, in each shard: whether it has a row there, and the rows before."""
SIDE_BYTES = 8
"""Of an edge that the group stores, when peeling ends: the counts of both its halves."""
ANSWER_BYTES = 8
"""Of an edge that the group owns: the two ends of the interval of its λ."""
MESSAGE_BYTES = 10
"""Of an edge that the group owns, in letters to and from single groups. Measured: a message for every fourth edge, in
the exchange with most of them."""
LEAVING = 0.07
"""Share of the graph's edges that leave in the largest round. Measured: 3 to 7 %, of R-MAT and of real graphs."""
LEAVING_BYTES = 10
"""Of each of them that the group announces,"""
HEARD_BYTES = 46
"""and of each that it hears of, which is every one: in the letters of two exchanges, joined, and put in order."""

SCATTERED = 1.5
"""Times as much if the worker is this process, which keeps some of what is free."""


@dataclass(frozen=True)
class ShardMemory:
    """What a worker takes for one of several even groups, beside what it takes before it holds anything."""

    edges: int
    with_triangles: float
    """Share of the edges that have triangles: only these are peeled."""
    vertices: int
    groups: int
    shards: int
    """Of all groups."""
    in_process: bool
    """Whether the worker is this process."""

    @property
    def in_memory(self) -> int:
        """With rows in memory."""
        most = max(self._closing, self._sending, self._peeling)
        return int(most / self.groups * (SCATTERED if self.in_process else 1))

    @property
    def in_files(self) -> int:
        """With rows and results in files: what tasks have in memory, and the mail that they map."""
        return int(max(self._arriving / self.groups, self.peeling_in_files))

    @property
    def peeling_in_files(self) -> int:
        """What of that peeling has."""
        return int((self._closed * COUNT_BYTES * self._halves + self._rounds) / self.groups)

    @property
    def _closed(self) -> float:
        return self.edges * self.with_triangles

    @property
    def _stored(self) -> float:
        """Groups that store an edge."""
        return 2 - 1 / self.groups

    @property
    def _halves(self) -> float:
        """Of an edge."""
        return 2 - 1 / self.shards

    @property
    def _kept(self) -> float:
        return self.edges * KEPT_BYTES + self.vertices * VERTEX_BYTES

    @property
    def _ranked(self) -> float:
        return self._kept + self.edges * RANKED_BYTES + self.vertices * RANKED_VERTEX_BYTES

    @property
    def _closing(self) -> float:
        """All groups, while they get the edges that they own."""
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
        """All groups, while edges go to them; between processes there are two copies of what is sent."""
        return self._ranked + self._arriving + self._sent * (self.groups > 1)

    @property
    def _peeling(self) -> float:
        """All groups, when peeling ends: what the rounds took is there still."""
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
        """Of all groups, what stays in memory wherever rows lie, beside counts."""
        rows = min(self.vertices * self.shards, 2 * self._closed)
        marks = self.vertices * (CLASS_BYTES + BITS_BYTES * self.shards)
        letters = self._closed * (MESSAGE_BYTES + LEAVING * (LEAVING_BYTES + HEARD_BYTES * self.groups))
        return rows * ROW_BYTES + marks + letters + self._closed * (EVENT_BYTES * self._halves + ANSWER_BYTES)
