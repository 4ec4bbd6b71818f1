"""What changed between two graphs, in a numbering that both share: from a batch of changes, or from two whole graphs.

Both graphs are sorted, so all comparisons are merges of sorted arrays. Takes memory in proportion to both graphs. Most
batches are small. NumPy searches them without kernels, so that Numba is not loaded for a batch that changes nothing.
Kernels search many edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InputError, OutOfRoom
from ..ids import identity
from ..ids.id_types import to_internal
from ..ids.identity import Ids
from ..ingest.numbering import BucketEdges, BucketIds

FEW = 2**14
"""Maximum number of edges that NumPy searches without kernels. It takes up to 30 passes over arrays of this length."""


def rows_before(edges: Topology, some: Topology) -> NDArray[np.int64]:
    """How many of `edges` come before each edge of `some`, int64 [some]. `some` may be in any order."""
    if some.edges > FEW:
        from ...kernels.cpu.update import rows_before as by_kernel  # loads Numba

        found: NDArray[np.int64] = by_kernel(edges, some)
        return found
    first = np.searchsorted(edges.low, some.low, "left")
    last = np.searchsorted(edges.low, some.low, "right")
    for _ in range(int((last - first).max(initial=0)).bit_length()):
        middle = (first + last) >> 1
        open_ = first < last
        before = open_.copy()
        before[open_] = edges.high[middle[open_]] < some.high[open_]
        first = np.where(before, middle + 1, first)
        last = np.where(open_ & ~before, middle, last)
    return first


def among(edges: Topology, others: Topology) -> NDArray[np.bool_]:
    """Whether each edge is among the others, bool [edges]."""
    if min(edges.edges, others.edges) > FEW:
        from ...kernels.cpu.update import among as by_kernel  # loads Numba

        merged: NDArray[np.bool_] = by_kernel(edges, others)
        return merged
    found: NDArray[np.bool_] = np.zeros(edges.edges, np.bool_)
    if not edges.edges or not others.edges:
        return found
    if edges.edges <= others.edges:
        at = np.minimum(rows_before(others, edges), others.edges - 1)
        found[:] = (others.low[at] == edges.low) & (others.high[at] == edges.high)
        return found
    at = np.minimum(rows_before(edges, others), edges.edges - 1)
    found[at[(edges.low[at] == others.low) & (edges.high[at] == others.high)]] = True
    return found


def mark_ends(edges: Topology, left_out: NDArray[np.bool_], marked: NDArray[np.bool_]) -> None:
    """Set `marked` [vertices] for the ends of all edges for which `left_out` [edges] is false."""
    if edges.edges > FEW:
        from ...kernels.cpu.update import mark_ends as by_kernel  # loads Numba

        by_kernel(edges, left_out, marked)
        return
    for ends in (edges.low, edges.high):
        marked[ends[~left_out]] = True


MAX_VERTICES = 2**31 - 1
"""Most vertices of both graphs together, which are numbered with int32."""


@dataclass(frozen=True)
class NumberedGraph(SizedArrays):
    """A simple graph with the ids of its vertices."""

    ids: Ids
    """[vertices] ascending, distinct. A vertex may have no edge."""
    edges: Topology
    """Edges between positions in `ids`."""

    @classmethod
    def of_buckets(cls, ids: Sequence[BucketIds], edges: Sequence[BucketEdges]) -> NumberedGraph:
        """The graph of all its buckets. One thread copies each bucket."""
        joined = identity.concatenate([own.ids for own in ids])
        cuts = np.cumsum([0, *map(len, edges)])
        low, high = np.empty(cuts[-1], np.int32), np.empty(cuts[-1], np.int32)

        def write(own: BucketEdges) -> None:
            rows = slice(cuts[own.bucket], cuts[own.bucket + 1])
            np.add(own.low, own.starts[own.bucket], out=low[rows], casting="unsafe")
            high[rows] = own.highs[own.high]

        with ThreadPoolExecutor(len(edges)) as pool:
            for _ in pool.map(write, edges):
                pass
        return cls(joined, Topology(low, high, len(joined)))


@dataclass(frozen=True)
class BatchCounts:
    """How the rows of a batch met the graph. Every field counts distinct edges."""

    present: int = 0
    """To insert, and already in the graph."""
    absent: int = 0
    """To delete, and not in the graph."""
    in_both: int = 0
    """To insert and to delete. Deletions come first, so these are in the new graph."""


@dataclass(frozen=True)
class Change(SizedArrays):
    """The difference between a graph and the next one. Numbers of vertices are positions in `ids`."""

    ids: Ids
    """[vertices of either graph] ascending, distinct."""
    own: NDArray[np.int32]
    """[vertices of the first graph] the position of each in `ids`."""
    before: Topology
    """The edges of the first graph."""
    removed: NDArray[np.bool_]
    """[edges of `before`] whether the second graph lacks the edge."""
    added: Topology
    """The edges that only the second graph has."""
    stays: NDArray[np.bool_]
    """[vertices] whether the second graph has the vertex."""
    came: int
    """Vertices that only the second graph has."""
    counts: BatchCounts = BatchCounts()

    @property
    def gone(self) -> int:
        """Vertices that only the first graph has."""
        return len(self.ids) - int(np.count_nonzero(self.stays))

    @property
    def lost(self) -> int:
        """Edges that only the first graph has."""
        return int(np.count_nonzero(self.removed))

    @property
    def size(self) -> int:
        """Number of edges that only one of the graphs has."""
        return self.lost + self.added.edges

    @property
    def is_empty(self) -> bool:
        """Whether both graphs are the same."""
        return not (self.size or self.came or self.gone)

    def after(self) -> tuple[Topology, NDArray[np.int32]]:
        """The edges of the second graph, and for each its row in `before`, -1 for an added edge."""
        kept = np.flatnonzero(~self.removed).astype(np.int32)
        first = Topology(self.before.low[kept], self.before.high[kept], len(self.ids))
        at = rows_before(first, self.added)
        low, high = np.insert(first.low, at, self.added.low), np.insert(first.high, at, self.added.high)
        return Topology(low, high, len(self.ids)), np.insert(kept, at, -1)

    def final(self, after: Topology) -> NumberedGraph:
        """The second graph with vertices numbered without those that are gone, from its edges `after`."""
        if self.stays.all():
            return NumberedGraph(self.ids, Topology(after.low, after.high, len(self.ids)))
        number = np.cumsum(self.stays, dtype=np.int32) - np.int32(1)
        ids = identity.take(self.ids, np.flatnonzero(self.stays))
        return NumberedGraph(ids, _moved(after, number, len(ids)))

    def touched_vertices(self, after: Topology, touched: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[vertices of the second graph] whether the vertex is new, has lost an edge, or is an end of an edge of the
        second graph, `after`, for which `touched` [edges] is true.
        """
        found = _others(self.own, len(self.ids))
        mark_ends(self.before, ~self.removed, found)
        mark_ends(after, ~touched, found)
        return found[self.stays]

    def edges_before(self, after: Topology, rows: Sequence[int]) -> NDArray[np.int64]:
        """[rows] edges of the second graph, `after`, that come before each of these edges of the first graph."""
        at = np.array(rows, np.int64)
        return rows_before(after, Topology(self.before.low[at], self.before.high[at], after.vertices))

    def vertices_before(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """[rows] vertices of the second graph that come before each of these vertices of the first graph."""
        kept = np.concatenate([[0], np.cumsum(self.stays)])
        found: NDArray[np.int64] = kept[self.own[np.array(rows, np.int64)]]
        return found


def apply_batch(graph: NumberedGraph, inserted: NumberedGraph, deleted: NumberedGraph) -> Change:
    """The change that a batch makes. Deletions come first, then insertions.

    The new graph has all vertices of `inserted`, with or without an edge. It lacks other vertices of `deleted` that
    have no edge in it. Raises OutOfRoom for more than MAX_VERTICES vertices.
    """
    ids, (own, new, old) = union([graph.ids, inserted.ids, deleted.ids])
    before, plus, minus = _renumbered(graph, own, ids), _renumbered(inserted, new, ids), _renumbered(deleted, old, ids)
    is_known, is_deleted = among(plus, before), among(plus, minus)
    removed = among(before, _chosen(minus, ~among(minus, plus)))
    added = _chosen(plus, ~is_known)
    stays = np.ones(len(ids), np.bool_)
    stays[old] = False
    stays[new] = True
    if not stays.all():
        mark_ends(before, removed, stays)
    counts = BatchCounts(
        present=int(np.count_nonzero(is_known & ~is_deleted)),
        absent=int(np.count_nonzero(~among(minus, before))),
        in_both=int(np.count_nonzero(is_deleted)),
    )
    came = int(np.count_nonzero(_others(own, len(ids)) & stays))
    return _without_strangers(Change(ids, own, before, removed, added, stays, came, counts))


def compare(graph: NumberedGraph, today: NumberedGraph) -> Change:
    """The change from one whole graph to another. Raises OutOfRoom for more than MAX_VERTICES vertices."""
    ids, (own, new) = union([graph.ids, today.ids])
    before, after = _renumbered(graph, own, ids), _renumbered(today, new, ids)
    stays = ~_others(new, len(ids))
    return Change(
        ids,
        own,
        before,
        ~among(before, after),
        _chosen(after, ~among(after, before)),
        stays,
        int(np.count_nonzero(_others(own, len(ids)))),
    )


def _without_strangers(change: Change) -> Change:
    """The change without vertices that neither graph has. A deletion may name such vertices."""
    strange = _others(change.own, len(change.ids)) & ~change.stays
    if not strange.any():
        return change
    kept = ~strange
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    ids = identity.take(change.ids, np.flatnonzero(kept))
    return Change(
        ids,
        number[change.own],
        _moved(change.before, number, len(ids)),
        change.removed,
        _moved(change.added, number, len(ids)),
        change.stays[kept],
        change.came,
        change.counts,
    )


def union(runs: Sequence[Ids]) -> tuple[Ids, list[NDArray[np.int32]]]:
    """The distinct ids of ascending arrays, ascending, and for each array the positions of its ids among them."""
    filled = [run for run in runs if len(run)]
    if not filled:
        return runs[0], [np.zeros(0, np.int32) for _ in runs]
    if sum(map(len, filled)) > MAX_VERTICES:
        raise OutOfRoom(f"an update numbers at most {MAX_VERTICES:,} vertices: run the whole input again")
    ids, positions = identity.merge(filled)
    rest = iter(positions)
    return ids, [next(rest) if len(run) else np.zeros(0, np.int32) for run in runs]


def _renumbered(graph: NumberedGraph, number: NDArray[np.int32], ids: Ids) -> Topology:
    if len(graph.ids) == len(ids):
        return Topology(graph.edges.low, graph.edges.high, len(ids))
    return _moved(graph.edges, number, len(ids))


def _moved(edges: Topology, number: NDArray[np.int32], vertices: int) -> Topology:
    """The edges with new numbers of vertices, `number` [old numbers], of which there are `vertices`."""
    if edges.edges <= FEW:  # without kernels, as `rows_before` does
        return Topology(number[edges.low], number[edges.high], vertices)
    return Topology(kernels.take(number, edges.low), kernels.take(number, edges.high), vertices)


def _chosen(edges: Topology, rows: NDArray[np.bool_]) -> Topology:
    """The edges for which `rows` [edges] is true."""
    return Topology(edges.low[rows], edges.high[rows], edges.vertices)


def _others(positions: NDArray[np.int32], count: int) -> NDArray[np.bool_]:
    """[count] whether each number is missing from `positions`."""
    mask = np.ones(count, np.bool_)
    mask[positions] = False
    return mask


def graph_of(vertices: pa.ChunkedArray, source: pa.ChunkedArray, target: pa.ChunkedArray) -> NumberedGraph:
    """The graph whose vertices have these ids, ascending, with edges from `source` to `target`, sorted by both.

    All columns have one type. Raises InputError if an edge has an end that is no vertex, or if the rows are not sorted.
    """
    ids = to_internal(vertices, vertices.type)
    low, high = (_numbers(ids, to_internal(end, vertices.type)) for end in (source, target))
    key = (low.astype(np.int64) << 32) | high
    if (low >= high).any() or (key[1:] <= key[:-1]).any():
        raise InputError("the result is damaged: its edges are not sorted by their ends")
    return NumberedGraph(ids, Topology(low, high, len(ids)))


def _numbers(ids: identity.Ids, ends: identity.Ids) -> NDArray[np.int32]:
    if not len(ends):
        return np.zeros(0, np.int32)
    known, _, numbers = identity.encode(ids, ends)
    if len(known) != len(ids):
        raise InputError("the result is damaged: an end of an edge is not in its table of vertices")
    return numbers
