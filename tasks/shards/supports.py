"""Supports of a graph in shards: every edge passes by every group, which finds the triangles that its vertices close.

In order, with B buckets; a triangle a < b < c belongs to the group of c, which owns (a, c) and (b, c):

    every bucket  sort_edges
    exchange 1    send_edges      buckets → groups: collect_closing
    every group   count_streams   over the streams of all buckets, some at a time; gives partial counts of these
    every bucket  add_partials    the partial counts of all groups
    exchange 2    send_sums       groups → buckets: collect_supports
                  sum(), triangles           → driver: check_triangles

Buckets may lie on the host and groups on a GPU: what arrives is moved to where the receiver lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.shards.closing import ClosingRows
from ...kernels.graph import MAX_LOCAL_EDGES
from ...kernels.held import Held
from .. import order
from ..device import beside, moved
from ..errors import InternalError, OutOfRoom
from ..identity import Put
from ..messages import Bundle, bundle
from ..triangulate import check_supports
from .dealing import Dealing
from .streams import EdgeRun, EdgeStream, SortedEdges, by_owner, joined

MOST_EDGES = 2**32 - 2
"""Of one group: their numbers are uint32."""
MOST_VERTICES_ON_GPU = 2**31 - 1
"""Of the graph: ranks are int32 there."""


@dataclass(frozen=True)
class ClosingEdges(Held):
    """The edges that one group owns. `len()` counts them."""

    group: int

    rows: ClosingRows

    origin: NDArray[np.uint32]
    """[edges] where each stood in the runs that came, one behind the other."""

    senders: NDArray[np.int64]
    """[runs] bucket of each run."""

    runs: NDArray[np.int64]
    """[runs + 1] where each starts."""

    def __len__(self) -> int:
        return len(self.origin)


@dataclass(frozen=True)
class Counted(Held):
    """What one group has found after some streams."""

    sums: NDArray[np.int32]
    """[edges of the group] triangles found so far, as the edge (a, c) or (b, c)."""

    partial: NDArray[np.int32]
    """[edges of the last streams, one stream behind the other] triangles found here, as the edge (a, b)."""

    triangles: int
    """Found so far."""


@dataclass(frozen=True)
class BucketSupports(Held):
    """The triangles of a bucket's edges, row by row as in its BucketEdges. `len()` counts the edges."""

    bucket: int

    support: NDArray[np.int32]
    """[edges]"""

    def __len__(self) -> int:
        return len(self.support)

    @property
    def closed(self) -> int:
        """Edges with triangles."""
        return int(np.count_nonzero(self.support))

    @property
    def total(self) -> int:
        """The sum of all."""
        return int(self.support.sum(dtype=np.int64))


def check_room(group: int, dealing: Dealing, edges: int, on_gpu: bool) -> None:
    """Raises OutOfRoom for more edges than a group tells apart, and on a GPU for more vertices of the graph."""
    most = MAX_LOCAL_EDGES if on_gpu else MOST_EDGES
    if edges > most:
        raise OutOfRoom(
            f"group {group} has {edges:,} edges, over the {most:,} allowed; use more workers (cluster.workers=…)"
        )
    if on_gpu and dealing.cut.vertices > MOST_VERTICES_ON_GPU:
        raise OutOfRoom(
            f"the graph has {dealing.cut.vertices:,} vertices, over the {MOST_VERTICES_ON_GPU:,} that GPUs tell apart; "
            "use cluster.device=cpu"
        )


def collect_closing(group: int, dealing: Dealing, put: Put, parts: Mapping[int, EdgeRun]) -> ClosingEdges:
    """The edges of one group, where `put` has them, from those each bucket sent.

    Takes 8 bytes an edge; on a GPU as many a vertex of the graph more, and about 56 an edge meanwhile. Raises OutOfRoom
    as `check_room` does.
    """
    senders = sorted(parts)
    runs = order.offsets(np.array([len(parts[b]) for b in senders], np.int64))
    none = put(np.zeros(0, np.uint32))
    check_room(group, dealing, int(runs[-1]), not kernels.on_host(none))
    low, high = (np.concatenate([put(getattr(parts[b], end)) for b in senders] or [none]) for end in ("low", "high"))
    merged = kernels.merge_rows(low, high, runs, dealing.cut.vertices)
    rows = kernels.close_rows(merged, dealing.cut, dealing.first[group], dealing.shards(group))
    return ClosingEdges(group, rows, merged.origin, np.array(senders, np.int64), runs)


def count_streams(closing: ClosingEdges, streams: Sequence[EdgeStream], before: Counted | None = None) -> Counted:
    """Find the triangles of the edges that pass by, after what was found `before`.

    Raises OutOfRoom as `check_supports` does.
    """
    sums = np.zeros_like(closing.origin, np.int32) if before is None else before.sums.copy()
    triangles = 0 if before is None else before.triangles
    if not kernels.on_host(sums):  # all at once: tables are built for each call
        streams = [joined([moved(stream, kernels.to_device) for stream in streams])]
    partial = []
    for stream in streams:
        found, closed = kernels.count_closed(closing.rows, stream.starts, stream.low, stream.high, sums)
        check_supports(sums)
        check_supports(found)
        partial.append(found)
        triangles += closed
    return Counted(sums, partial[0] if len(partial) == 1 else np.concatenate(partial), triangles)


def add_partials(before: NDArray[np.int32] | None, partials: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The sum of what groups counted for the same streams. Raises OutOfRoom as `check_supports` does."""
    total = partials[0].copy() if before is None else before.copy()
    for partial in partials[1:] if before is None else partials:
        if len(partial) != len(total):
            raise InternalError(f"groups counted triangles of {len(total)} edges and of {len(partial)}")
        total += partial
        check_supports(total)
    return total


def send_sums(closing: ClosingEdges, counted: Counted) -> Bundle[NDArray[np.int32]]:
    """Group → buckets: the sums of its edges to the buckets that sent them, in the order in which they came."""
    sums = np.empty_like(counted.sums)
    sums[closing.origin] = counted.sums
    cuts = closing.runs.tolist()
    return bundle(
        closing.group,
        {b: sums[cuts[i] : cuts[i + 1]] for i, b in enumerate(closing.senders.tolist())},
    )


def collect_supports(
    edges: SortedEdges, dealing: Dealing, partial: NDArray[np.int32], start: int, parts: Mapping[int, NDArray[np.int32]]
) -> BucketSupports:
    """The triangles of a bucket's edges: the `partial` counts of its stream, which begin at `start`, and what owners
    found. They lie where the edges do. Raises InternalError unless each edge has both, OutOfRoom as `check_supports`
    does.
    """
    total = beside(edges.row, partial[start : start + len(edges)]).copy()
    if len(total) != len(edges):
        raise InternalError(f"bucket {edges.stream.bucket} has {len(edges)} edges; {len(total)} were counted")
    for group, own in enumerate(by_owner(edges, dealing)):
        sums = beside(total, parts.get(group, total[:0]))
        if len(sums) != len(own):
            raise InternalError(
                f"bucket {edges.stream.bucket} sent {len(own)} edges to group {group}, and got {len(sums)} sums"
            )
        total[own] += sums
        check_supports(total[own])
    support = np.empty_like(total)
    support[edges.row] = total
    return BucketSupports(edges.stream.bucket, support)


def check_triangles(supports: Sequence[int], triangles: Sequence[int]) -> int:
    """The triangles of the graph, from the sums of the supports by bucket and the triangles that groups found.

    Raises InternalError unless each triangle has been counted at three edges.
    """
    if sum(supports) != 3 * sum(triangles):
        raise InternalError(f"groups found {sum(triangles)} triangles; the supports add up to {sum(supports)}")
    return sum(triangles)
