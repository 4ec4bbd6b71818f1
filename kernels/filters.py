"""Types that the coarse filters of both backends share; see `kernels.filtering` and tasks/bands/filtering.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .graph import IntArray, LongArray, Topology

EDGE_WORK = 50
"""Work of removing an edge, besides its triangles: its rows are read. The unit is the removal of one triangle. Fitted
to the times of bands (docs/engineering/bands.md).
"""
LEAST_BINS = 4096
"""Minimum number of bins of a survey's histogram of counts."""
Words = NDArray[np.uint32]


class Survey(NamedTuple):
    """Statistics of the counts of the remaining edges."""

    listed: LongArray
    """[t] the work of the edges with fewer than t triangles; a triangle counts once for each of these edges in it."""
    least: int
    """The least count."""
    counts: int
    """The sum of all counts: three for each triangle."""
    digest: int
    """A 64-bit hash of all counts."""

    @classmethod
    def of(cls, histogram: NDArray[Any], least: int, counts: int, digest: int) -> Survey:
        """From the number of edges with each count, int64 [bins]."""
        work = histogram * (np.arange(len(histogram)) + EDGE_WORK)
        return cls(np.concatenate([[0], np.cumsum(work)]), least, counts, digest)


class Frontier(NamedTuple):
    """The edges that the next pass removes."""

    edges: int
    triangles: int
    """The sum of their counts: a triangle counts once for each of these edges in it."""

    @property
    def work(self) -> int:
        """An upper bound on the work of their removal."""
        return self.triangles + EDGE_WORK * self.edges


class Removed(NamedTuple):
    """Numbers of edges and triangles that passes have removed."""

    edges: int
    triangles: int
    passes: int

    @property
    def work(self) -> int:
        """The work of these removals."""
        return self.triangles + EDGE_WORK * self.edges


HEADER = 4
"""Words of a packet's header: whether places are bits, bytes of an amount, number of amounts, words of places."""


AMOUNTS = 2
"""Index of the word with the number of amounts."""


class Packet(NamedTuple):
    """Lowered counts as words that workers send each other."""

    dense: bool
    """Whether places are a bit for each edge of a range, in words of 64 bits; else they are a list of edges."""
    width: int
    """Bytes of an amount: 1 or 4."""
    size: int
    """Number of amounts."""
    places: Words
    amounts: Words

    @classmethod
    def of(cls, words: Words, first: int, edges: int) -> Packet:
        """The packet in these words. If it is of a range, this begins at edge `first`, of `edges` in all.

        Raises ValueError for words that are not a packet, or if a place is beyond the last edge.
        """
        dense, width, size, length = words[:HEADER].tolist() if len(words) >= HEADER else (2, 0, 0, 0)
        fits = len(words) == HEADER + length + -(-size * width // 4)
        if dense > 1 or width not in (1, 4) or not fits or (length % 2 if dense else length != size):
            raise ValueError(f"{len(words)} words are no packet of {size} lowered counts")
        places = words[HEADER : HEADER + length]
        word, bit = divmod(edges - first, 32)
        beyond = (length > word and places[word] >> bit) or places[word + 1 :].any() if dense else size and places.max()
        if beyond if dense else size and beyond >= edges:
            raise ValueError(f"a packet of {size} lowered counts has edges beyond the last one")
        return cls(bool(dense), width, size, places, words[HEADER + length :])


class Changes(Protocol):
    """By how much this worker lowers counts, and the counts to which the sums over all workers are applied.

    The *weighted sum* of changes, a checksum, is the sum of amount · weight over their edges, modulo 2^64. The weight
    is an odd hash of the edge's number, so a wrong amount of one edge changes the sum, and an amount at a wrong edge
    almost certainly does. Weighted sums of several packets add up.
    """

    count: IntArray

    def pack(self, first: int, stop: int) -> tuple[Words, int]:
        """The changes of edges `first` … `stop` - 1 as words, and their weighted sum. Clears these changes."""

    def collect(self, words: Words, first: int) -> int:
        """Add the changes that another worker packed, from edge `first` on. Returns their weighted sum.

        Raises ValueError for words that are not a packet.
        """

    def apply(self, words: Words, first: int) -> int:
        """Lower the counts by packed changes, from edge `first` on. Returns and raises as `collect`."""


class PlainChanges(Changes, Protocol):
    """Changes of a GPU, which other GPUs may read."""

    amounts: IntArray
    """[edges] by how much counts are lowered so far."""

    def weigh(self, first: int, stop: int) -> int:
        """The weighted sum of the changes of edges `first` … `stop` - 1."""

    def subtract(self, parts: Sequence[tuple[int, IntArray]]) -> int:
        """Lower the counts by amounts of ranges: (first edge, amounts of the range). Returns the weighted sum."""


class Filtering(Changes, Protocol):
    """The remaining edges of a graph, and their counts.

    Each of several workers has all edges. All methods but `remove_share`, `pack` and `collect` have the same results on
    all workers if their arguments are the same.
    """

    topology: Topology
    left: int
    """Number of remaining edges."""

    def survey(self, threshold: int) -> Survey:
        """Survey the counts of the remaining edges. All must be at least `threshold`."""

    def find(self, threshold: int) -> Frontier:
        """Make the edges with fewer than `threshold` triangles the frontier."""

    def remove_alone(self, enough: int) -> tuple[Removed, Frontier]:
        """Remove the whole frontier here. May then remove the next frontiers while the work of each is ≤ `enough`.

        Returns what was removed, and the next frontier.
        """

    def remove_share(self, worker: int, workers: int) -> int:
        """Record the changes by a worker's share of the frontier. Returns the number of triangles that it removes.

        Apply the sums of changes over all workers next, then call `end_pass`.
        """

    def end_pass(self) -> Frontier:
        """Remove the frontier, whose changes have been applied. Returns the next one."""

    def restore(self, count: IntArray, left: int) -> None:
        """Go back to an earlier state: its `count`, and its number of edges `left`."""

    @property
    def wasteful(self) -> bool:
        """Whether to continue with `smaller`, as few edges remain."""

    def smaller(self) -> tuple[IntArray, Filtering]:
        """The remaining edges, ascending, and the same state with these edges alone, numbered anew.

        This object cannot be used any more.
        """
