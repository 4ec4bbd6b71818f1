"""The state of a group of shards, and what the group exchanges, as records that kernels read and write.

Numba's parallel loops lose writes to an array that is a field of a tuple. So a loop over shards calls one function for
each shard. This function gets the whole record and unpacks the arrays that it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray

Words = NDArray[np.uint32]


class GroupState(NamedTuple):
    """The edges, halves and rows of a group, and the lists of the running round.

    An edge has one half in each of its two shards, or one half in all if both endpoints are of one class. The axis
    [shards] is that of this group's shards, [classes] that of the shards of all groups. `leaving`, `event` and
    `sending` hold one list for each shard. The list of shard s starts at `half_start[s] + s`: kernels may write one
    element beyond the end of a list, so each has space for one element more than the shard has halves.
    """

    low: Words
    """[edges] low endpoints."""
    high: Words
    """[edges] high endpoints."""
    vertices: np.uint32
    """Vertices of the graph."""
    shards: np.uint32
    """Shards of all groups."""
    first: int
    """The class of the group's first shard."""
    firsts: LongArray
    """[groups + 1] the first shard of each group."""
    group_of: LongArray
    """[classes] the group of each class."""

    half_start: LongArray
    """[shards + 1] first half of each shard."""
    edge: Words
    """[halves] the edge of each half."""
    partner: Words
    """[halves] the other half of the same edge, numbered within the shard of that other half. For an edge inside a
    class, the half itself.
    """
    half_count: IntArray
    """[halves] half counts; see `half_counts`."""
    role: NDArray[np.uint8]
    """[halves] roles; see `half_counts`."""
    live_start: LongArray
    """[shards + 1] first word of each shard in `live`."""
    live: NDArray[np.uint64]
    """A bit for each half, shard by shard: set if its edge is live. `open_level` clears the bits of removed edges."""

    has_row: NDArray[np.uint64]
    """`has_row`, `row`, `row_start`, `entry` and `entry_start` are those of `ShardRows`."""
    row: NDArray[np.uint64]
    row_start: LongArray
    entry: NDArray[np.uint64]
    entry_start: LongArray

    leaving: Words
    """Lists of halves of edges that are to be removed in the next round."""
    leaving_count: LongArray
    """[shards] lengths of the lists in `leaving`."""
    event: Words
    """Lists of halves about which `half_counts.decide` has to decide."""
    sending: Words
    """Lists of halves that send a message."""
    sending_count: LongArray
    """[shards] lengths of the lists in `sending`."""
    begins: LongArray
    """[shards, classes + 1] prefix sums of the number of messages from each shard to each class."""
    limit: LongArray
    """[roles] a half with this count becomes an event when its edge loses one more triangle in this shard."""

    marks: Words
    """[shards, width] scratch memory for a marked row; all 0 between calls of kernels."""
    found: Words
    """[2, shards, widest + 1] scratch memory for the halves that lead to common neighbours."""
    rows_found: NDArray[np.uint64]
    """[2, shards, any length] scratch memory for the rows of both endpoints of a block of edges."""

    counts: LongArray
    """[shards, 3] columns ENTRIES, TRIANGLES and FINGERPRINT of `removal`."""
    kinds: LongArray
    """[shards, 3] the alarms, reports and grants that each shard sent."""
    left: LongArray
    """[shards] remaining halves."""
    in_rows: LongArray
    """[shards] remaining halves when the rows were last compacted."""
    received: LongArray
    """[shards] messages received."""


class Window(NamedTuple):
    """The level that is peeled, and the alarm of its window of levels; see `half_counts`."""

    level: int
    alarm: int
    """Half of the last level of the window, rounded down."""


class RoundEdges(NamedTuple):
    """The edges of a round, sorted by high endpoint, and the classes of their ends. All are uint32 [edges]."""

    low: Words
    high: Words
    at: Words
    """The class of the low endpoint."""
    to: Words
    """The class of the high endpoint."""


class Runs(NamedTuple):
    """Where each shard's edges are in the common packets of a round. All are int64 [classes]."""

    low: LongArray
    """Where the shard's low endpoints start."""
    high: LongArray
    """Where the shard's high endpoints start."""
    length: LongArray
    """The shard's number of edges."""


class Layout(NamedTuple):
    """Where the parts of a group's packets start, int64."""

    message_at: LongArray
    """[shards, classes] where the next message from each shard to each class is written."""
    value_offset: LongArray
    """[groups] the distance in words from the half of a message to its value; also the number of messages."""
    edge_offset: LongArray
    """[shards + 1] the first edge of each shard among the edges that the group removes."""
    packet_start: LongArray
    """[groups + 1] where the packet to each group starts."""


class Messages(NamedTuple):
    """The messages from one shard to one shard. `words[first:stop]` are the halves that the messages address."""

    words: Words
    first: int
    stop: int
    value_offset: np.int64
    """The distance in words from the half of a message to its value."""
    keeps: bool
    """Whether the receiving shard has the lower class. If both shards of an edge send an alarm in the same exchange,
    the shard of the lower class becomes the keeper.
    """
