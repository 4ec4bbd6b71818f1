"""The state of a group of shards, and what it exchanges, as records that kernels read and write.

Numba's parallel loops drop what they write to an array of a tuple. So a loop over shards calls one function for each
shard, which gets the whole record and unpacks the arrays that it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray

Words = NDArray[np.uint32]


class GroupState(NamedTuple):
    """The edges of a group, its halves and rows, and the lists of the running round. Shards have numbers in the group.

    The lists of shard s start at its first half plus s, as a list may be written one element beyond its end.
    """

    low: Words
    """[edges]"""
    high: Words
    """[edges]"""
    vertices: np.uint32
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
    """[halves] the number of the edge's other half within its shard; its own for an edge inside a class."""
    half_count: IntArray
    """[halves] half counts; see `half_counts`."""
    role: NDArray[np.uint8]
    """[halves] roles; see `half_counts`."""
    live_start: LongArray
    """[shards + 1] first word of each shard in `live`."""
    live: NDArray[np.uint64]
    """A bit for each half of a live edge, shard by shard."""

    has_row: NDArray[np.uint64]
    """This and the following arrays of rows are those of `ShardRows`."""
    row: NDArray[np.uint64]
    row_start: LongArray
    entry: NDArray[np.uint64]
    entry_start: LongArray

    leaving: Words
    """Lists of halves of edges that are to be removed."""
    leaving_count: LongArray
    """[shards]"""
    event: Words
    """Lists of halves for which something is to be decided."""
    sending: Words
    """Lists of halves that send a message."""
    sending_count: LongArray
    """[shards]"""
    begins: LongArray
    """[shards, classes + 1] where the messages of each shard to each class start."""
    limit: LongArray
    """[roles] the count at which the loss of one more triangle is an event."""

    marks: Words
    """[shards, width] scratch memory for a marked row; 0 outside of kernels."""
    found: Words
    """[2, shards, widest + 1] scratch memory for common neighbours."""
    rows_found: NDArray[np.uint64]
    """[2, shards, any length] scratch memory for the rows of both endpoints of some edges."""

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
    """The level that is peeled, and what follows from the last level of its window; see `half_counts`."""

    level: int
    alarm: int


class RoundEdges(NamedTuple):
    """The edges of a round, sorted by high endpoint, and the classes of their ends. All are uint32 [edges]."""

    low: Words
    high: Words
    at: Words
    """The class of the low endpoint."""
    to: Words
    """The class of the high endpoint."""


class Runs(NamedTuple):
    """The edges of each shard in the common packets of a round, int64 [classes]."""

    low: LongArray
    """Where their low endpoints start."""
    high: LongArray
    """Where their high endpoints start."""
    length: LongArray


class Layout(NamedTuple):
    """Where the parts of a group's packets start, int64."""

    message_at: LongArray
    """[shards, classes] the index of the next message."""
    value_offset: LongArray
    """[groups] the distance from a message to its value."""
    edge_offset: LongArray
    """[shards + 1] the first edge of each shard."""
    packet_start: LongArray
    """[groups + 1]"""


class Messages(NamedTuple):
    """The messages of one sending shard to one receiving shard: `words[first:stop]` are the halves addressed."""

    words: Words
    first: int
    stop: int
    value_offset: np.int64
    """The value of a message is so many words behind its half."""
    keeps: bool
    """Whether the receiving shard has the lower class: if two alarms crossed, it becomes the keeper."""
