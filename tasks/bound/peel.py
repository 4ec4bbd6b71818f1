"""Peeling: λ of a graph that one worker holds, level by level.

At level k, each edge with at most k remaining triangles is removed with its triangles, and has λ = k. This is the
level-synchronous form of Wang and Cheng ("Truss decomposition in massive networks", PVLDB 2012) as in PKT (Kabir and
Madduri, HPEC 2017).

`find_lambda` takes a graph in the memory of this process, without files, ids and Dask, whose overhead dominates for
small graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import FROM_THE_START, PeelingStart
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace
from ..graph import Subgraph, WholeGraph, build_subgraph, count_triangles
from ..ids.order import Ints
from ..ingest import EdgeParts, OwnedEdges, collect_owned
from .intervals import Intervals, intervals


@dataclass(frozen=True)
class PeelingRecord(SizedArrays):
    """What a peeling from start to end recorded, for updates of its result; see `tasks.update.order`."""

    removed: NDArray[np.int32]
    """[local edges] the edges in the order in which they were removed."""

    count: NDArray[np.int32]
    """[local edges] triangles whose two other edges have at least the edge's λ."""

    remainder: NDArray[np.int32]
    """[local edges] triangles whose two other edges were removed later."""


@dataclass(frozen=True)
class Peeled(SizedArrays):
    """The state of peeling between two levels. Checkpoints store it."""

    count: NDArray[np.int32]
    """[local edges, or edges of a WholeGraph] remaining triangles; negative for removed edges."""

    low: NDArray[np.int32]
    """[the same edges] λ of removed edges."""

    level: int
    """The next level."""

    levels: int
    """Number of levels at which edges were removed: the steps of this method."""

    left: int
    """Number of remaining edges."""

    record: PeelingRecord | None = None
    """None unless it was requested, and one call of `peel` removed all edges."""

    @property
    def evaluations(self) -> int:
        """Number of removed edges: each is evaluated once."""
        return len(self.low) - self.left

    @property
    def exchanges(self) -> int:
        """0: peeling has one partition."""
        return 0

    @property
    def kept(self) -> Peeled:
        """What a checkpoint stores: all but the record."""
        return replace(self, record=None)


def peel(
    graph: Subgraph | WholeGraph,
    before: Peeled | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    most_plain: int | None = None,
    record: bool = False,
) -> Peeled:
    """Peel the only partition of a run, from the start or from the state `before`.

    Stops at the end of the level in which `seconds` have passed. Calls `progress(level, remaining edges)` before the
    first advance, and after each. A `WholeGraph`, on a GPU, is peeled in compact rows until plain rows fit, and until
    at most `most_plain` edges are left. With `record` a subgraph in host memory that is peeled from start to end has a
    `Peeled.record`.
    """
    if (
        record
        and before is None
        and isinstance(graph, Subgraph)
        and graph.index_bytes is None
        and kernels.on_host(graph.support)
    ):
        return _recorded(graph, seconds, progress)
    deadline = None if seconds is None else time.monotonic() + seconds
    peeling = _start(graph, before, most_plain)
    for _ in _levels(peeling, deadline, progress):
        pass
    return Peeled(peeling.count, peeling.low, peeling.level, peeling.levels, peeling.left)


def _recorded(graph: Subgraph, seconds: float | None, progress: Callable[[int, int], None] | None) -> Peeled:
    from ...kernels.cpu.peeling.peel import RecordedPeeling

    deadline = None if seconds is None else time.monotonic() + seconds
    peeling = RecordedPeeling(graph.topology, graph.first_counts())
    removed = [peeling.removed, *(peeling.removed for _ in _levels(peeling, deadline, progress))]
    record = None
    if not peeling.left:
        record = PeelingRecord(np.concatenate(removed), peeling.level_counts, peeling.remainders)
    return Peeled(peeling.count, peeling.low, peeling.level, peeling.levels, peeling.left, record)


def _levels(peeling: Any, deadline: float | None, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Remove level after level, until no edge is left or the time has come."""
    if progress is not None:
        progress(peeling.level, peeling.left)
    while peeling.left:
        peeling.advance()
        yield
        if progress is not None:
            progress(peeling.level, peeling.left)
        if deadline is not None and time.monotonic() >= deadline:
            break


def _start(graph: Subgraph | WholeGraph, before: Peeled | None, most_plain: int | None) -> Any:
    start = FROM_THE_START if before is None else PeelingStart(before.low, before.level, before.levels)
    if isinstance(graph, WholeGraph):
        from ...kernels.gpu.whole_graph import WholePeeling  # on GPUs alone; imports CuPy

        count = graph.support if before is None else before.count
        return WholePeeling(graph.offsets, graph.high, count, start, most_plain)
    if graph.index_bytes is not None:
        from ...kernels.cpu.peeling.blooms import ButterflyPeeling

        return ButterflyPeeling(graph.topology, graph.first_counts(), graph.index_bytes)
    return kernels.peeling(graph.topology, graph.first_counts() if before is None else before.count, start)


def peel_intervals(graph: Subgraph | WholeGraph, peeled: Peeled) -> Intervals:
    """The interval of each edge. λ of a remaining edge is between the next level and its remaining triangles."""
    low, count = peeled.low, peeled.count
    if not peeled.left:
        return _intervals(graph, low, low)
    remaining = count >= 0
    return _intervals(graph, np.where(remaining, peeled.level, low), np.where(remaining, count, low))


def _intervals(graph: Subgraph | WholeGraph, low: Any, high: Any) -> Intervals:
    return Intervals(low, high) if isinstance(graph, WholeGraph) else intervals(graph, low, high)


def find_triangles(
    low: Ints, high: Ints, vertices: int, support: NDArray[np.int32] | None = None
) -> tuple[OwnedEdges, Subgraph]:
    """Count the triangles of a simple graph whose edges join `low` and `high` [edges], both < `vertices`.

    `Subgraph.support[i]` belongs to the input edge `OwnedEdges.row[i]`. If the `support` [edges] is known nothing is
    counted. Raises OutOfRoom for more than 2^31 - 2 edges, or more triangles of one edge than a run can count.
    """
    degree = np.bincount(low, minlength=vertices) + np.bincount(high, minlength=vertices)
    rank = np.empty(vertices, np.int32)
    rank[np.argsort(degree, kind="stable")] = np.arange(vertices, dtype=np.int32)
    ends = kernels.take(rank, low), kernels.take(rank, high)
    row = np.arange(len(low), dtype=np.int32)
    edges = EdgeParts(np.minimum(*ends), np.maximum(*ends), row)
    owned = collect_owned(MemorySpace.HOST, {0: edges} if len(edges) else {})
    known = count_triangles(owned) if support is None else kernels.take(support, owned.row)
    return owned, build_subgraph(owned, known)


def find_lambda(subgraph: Subgraph) -> NDArray[np.int32]:
    """λ [edges], in the order of `Subgraph.support`."""
    return peel_intervals(subgraph, peel(subgraph)).low
