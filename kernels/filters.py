"""What the coarse filters of both backends have in common; see `kernels.filtering` and tasks/bands/filtering.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .graph import IntArray, LongArray, Topology

EDGE_WORK = 50
"""Work of the removal of an edge, besides its triangles, in removals of a triangle: its rows are read. Chosen from
the times of bands of R-MAT 20; docs/engineering/bands.md.
"""
LEAST_BINS = 4096
"""Counts that a survey tells apart, at least."""
Words = NDArray[np.uint32]


class Survey(NamedTuple):
    """The counts of the edges that are left."""

    listed: LongArray
    """[t] the work of the edges with fewer than t triangles, each of which counts once for each of these edges."""
    least: int
    """The least count."""
    counts: int
    """The sum of all counts: three for each triangle."""
    digest: int
    """A digest of all counts, of 64 bits."""

    @classmethod
    def of(cls, histogram: NDArray[Any], least: int, counts: int, digest: int) -> Survey:
        """From how often each count occurs, int64 [counts]."""
        work = histogram * (np.arange(len(histogram)) + EDGE_WORK)
        return cls(np.concatenate([[0], np.cumsum(work)]), least, counts, digest)


class Frontier(NamedTuple):
    """The edges that the next pass removes."""

    edges: int
    triangles: int
    """The sum of their counts: a triangle counts once for each of these edges in it."""

    @property
    def work(self) -> int:
        """At most the work of their removal."""
        return self.triangles + EDGE_WORK * self.edges


class Removed(NamedTuple):
    """What passes have removed."""

    edges: int
    triangles: int
    passes: int

    @property
    def work(self) -> int:
        """The work that it was."""
        return self.triangles + EDGE_WORK * self.edges


HEADER = 4
"""Words of a packet of lowered counts before its places: whether these are bits, bytes of an amount, amounts, words of
places.
"""


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
        """The packet that these words are; a range begins at edge `first`, of `edges` in all.

        Raises ValueError for words that are no packet, or one of other edges.
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

    The *weighted sum* of changes is the sum of amount · weight over their edges, modulo 2^64. The weight of an edge is
    a hash of its number, and odd: no other amount of one edge has the same weighted sum, and an amount that goes to
    another edge changes it. Weighted sums of several packets add up.
    """

    count: IntArray

    def pack(self, first: int, stop: int) -> tuple[Words, int]:
        """What edges `first` … `stop` - 1 are lowered by, as words, and the weighted sum; these changes are 0 then."""

    def collect(self, words: Words, first: int) -> int:
        """Add the changes that another worker packed, from edge `first` on. Returns their weighted sum.

        Raises ValueError for words that are no packet.
        """

    def apply(self, words: Words, first: int) -> int:
        """Lower the counts by packed changes, from edge `first` on. Returns their weighted sum. Raises as `collect`."""


class PlainChanges(Changes, Protocol):
    """Changes of a GPU, which other GPUs may read."""

    amounts: IntArray
    """[edges] by how much counts are lowered so far."""

    def weigh(self, first: int, stop: int) -> int:
        """The weighted sum of what edges `first` … `stop` - 1 are lowered by."""

    def subtract(self, parts: Sequence[tuple[int, IntArray]]) -> int:
        """Lower the counts by the amounts of ranges of edges, each with its first edge. Returns the weighted sum."""


class Filtering(Changes, Protocol):
    """The edges that are left of a graph, and their counts.

    Each of several workers has all edges. All methods give the same on all workers if their arguments are the same,
    but for `remove_share`, `pack` and `collect`.
    """

    topology: Topology
    left: int
    """Edges that are left."""

    def survey(self, threshold: int) -> Survey:
        """The counts of the edges that are left, all of at least `threshold`."""

    def find(self, threshold: int) -> Frontier:
        """Make the edges with fewer than `threshold` triangles the frontier."""

    def remove_alone(self, enough: int) -> tuple[Removed, Frontier]:
        """Remove the frontier here. May go on with the edges that fall by it while their work is at most `enough`.

        Returns what was removed, and the next frontier.
        """

    def remove_share(self, worker: int, workers: int) -> int:
        """Record what the removal of one worker's share of the frontier lowers. Returns the triangles that it removes.

        The sums over all workers have to be applied to the counts next, then `end_pass` is called.
        """

    def end_pass(self) -> Frontier:
        """Remove the frontier, whose changes have been applied. Returns the next one."""

    def restore(self, count: IntArray, left: int) -> None:
        """Go back to earlier counts, `left` edges being left."""

    @property
    def wasteful(self) -> bool:
        """Whether to go on with `smaller`."""

    def smaller(self) -> tuple[IntArray, Filtering]:
        """The edges that are left, ascending, and the same state with these edges alone, numbered anew.

        This object cannot be used any more.
        """
