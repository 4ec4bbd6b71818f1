"""Columns of edges from partitions to buckets, and from edges to vertices. In order:

    exchange 1   send_columns   partitions → buckets: collect_columns
    exchange 2   send_reduced   buckets → buckets: collect_reduced

Several names may share one array. It is then sent and reduced once, and the collected names share one array, too. The
original ids of the larger ends of a bucket's edges take one exchange between buckets: `answer_names`, `join_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..errors import InternalError
from ..ids import identity, order
from ..ids.identity import Ids
from ..ids.order import Ints
from ..ingest import OwnedRows
from ..ingest.degrees import BucketDegrees
from ..ingest.numbering import BucketEdges, BucketIds, split_by_bucket
from ..messages import Bundle, Payload, bundle


def answer_names(ids: BucketIds, degrees: BucketDegrees) -> Bundle[Ids]:
    """Bucket → buckets: the original ids of the vertices that each bucket has as larger ends."""
    return bundle(ids.bucket, {asker: identity.take(ids.ids, asked) for asker, asked in degrees.asked.items()})


def join_names(edges: BucketEdges, kind: identity.Kind, answers: Mapping[int, Ids]) -> Ids:
    """The original ids of `edges.highs`, from the answers of all buckets. Raises InternalError if ids are missing."""
    none = edges.highs[:0].astype(np.int64) if kind == "integer" else identity.no_ids(kind)
    names = identity.concatenate([answers[b] for b in sorted(answers)] or [none])
    if len(names) != len(edges.highs):
        raise InternalError(f"bucket {edges.bucket} asked for {len(edges.highs)} ids and got {len(names)}")
    return names


Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays of one length by name."""


@dataclass(frozen=True)
class EdgeColumn:
    """A column of edges, int32, with values ≥ 0."""

    name: str
    at_vertex: Literal["sum", "max"]
    """How the values of a vertex's edges become one value: "sum" gives int64, "max" int32. Without edges it is 0."""


@dataclass(frozen=True)
class EdgeValues(Payload):
    """Values of edges on their way to the bucket that publishes the edges. `len()` counts edges."""

    row: NDArray[np.int32]
    """[edges] row in the bucket's BucketEdges."""
    columns: Columns
    """Name → [edges]"""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class VertexValues(Payload):
    """Values of edges of one bucket, reduced at vertices of another bucket. `len()` counts vertices."""

    vertices: Ints
    """[vertices] dense numbers, ascending."""
    columns: Columns
    """Name → [vertices] reduced over the edges."""

    def __len__(self) -> int:
        return len(self.vertices)


def send_columns(owned: OwnedRows, columns: Columns) -> Bundle[EdgeValues]:
    """Partition → buckets: the columns [owned edges] of owned edges, to the buckets that publish these."""
    if not len(owned):
        return bundle(owned.partition, {})
    last = int(owned.bucket.max())
    if owned.bucket.min() == last:
        return bundle(owned.partition, {last: EdgeValues(owned.row, columns)})
    parts = {
        b: EdgeValues(kernels.take(owned.row, rows), _select(columns, rows))
        for b, rows in enumerate(order.positions_by_group(owned.bucket, last + 1))
        if len(rows)
    }
    return bundle(owned.partition, parts)


def collect_columns(
    edges: BucketEdges, columns: Sequence[EdgeColumn], parts: Mapping[int, EdgeValues]
) -> dict[str, NDArray[np.int32]]:
    """The columns of a bucket's edges, in row order. Raises InternalError unless each row arrives exactly once.

    The kernels that write the columns have ended.
    """

    def in_order(name: str) -> NDArray[np.int32]:
        values = np.empty_like(edges.low)
        for part in parts.values():
            kernels.store(values, part.row, part.columns[name])
        return values

    names = [column.name for column in columns]
    found = _once(names, lambda name: tuple(id(part.columns[name]) for part in parts.values()), in_order)
    arrived = np.zeros_like(edges.low, np.bool_)
    for part in parts.values():
        kernels.store(arrived, part.row, np.ones_like(part.row, np.bool_))
    count = sum(map(len, parts.values()))
    if count != len(edges) or kernels.total(arrived) < len(edges):  # waits for all kernels so far
        raise InternalError(
            f"bucket {edges.bucket} has {len(edges)} edges, and values of {count} edges arrived: not one for each"
        )
    return found


def send_reduced(edges: BucketEdges, columns: Sequence[EdgeColumn], values: Columns) -> Bundle[VertexValues]:
    """Bucket → buckets: the `values` [edges] of the bucket's edges, reduced at their larger ends."""
    reduced = _reduced(edges.high, len(edges.highs), columns, values)
    cuts = split_by_bucket(edges.highs, edges.starts)
    runs = (slice(cuts[b], cuts[b + 1]) for b in range(len(edges.starts) - 1))
    return bundle(edges.bucket, {b: VertexValues(edges.highs[r], _select(reduced, r)) for b, r in enumerate(runs)})


def collect_reduced(
    edges: BucketEdges, columns: Sequence[EdgeColumn], values: Columns, parts: Mapping[int, VertexValues]
) -> dict[str, NDArray[Any]]:
    """The columns reduced over all edges of each vertex of a bucket.

    `values` [edges] are those of the bucket's edges, which lead to larger ids. `parts` have the values that other
    buckets reduced over the edges from smaller ids.
    """
    reduced = _reduced(edges.low, edges.vertices, columns, values)
    own = [part.vertices - edges.first for part in parts.values()]
    at_vertex = {column.name: column.at_vertex for column in columns}

    def added(name: str) -> NDArray[Any]:
        total = reduced[name].copy()
        for vertex, part in zip(own, parts.values(), strict=True):
            more = part.columns[name]
            total[vertex] = total[vertex] + more if at_vertex[name] == "sum" else np.maximum(total[vertex], more)
        return total

    def sources(name: str) -> tuple[int, ...]:
        return id(reduced[name]), *(id(part.columns[name]) for part in parts.values())

    return _once(list(reduced), sources, added)


def histogram(values: NDArray[np.int32]) -> NDArray[np.int64]:
    """[distinct values, 2] ascending (value, how often it occurs), on the host."""
    return np.stack([kernels.to_host(part) for part in order.tally(values)], axis=1).astype(np.int64)


def merge_histograms(histograms: Sequence[NDArray[np.int64]]) -> list[tuple[int, int]]:
    """One histogram, ascending (value, count), from those of all buckets."""
    total: dict[int, int] = {}
    for value, count in np.concatenate([np.zeros((0, 2), np.int64), *histograms]).tolist():
        total[value] = total.get(value, 0) + count
    return sorted(total.items())


def _select(columns: Columns, rows: slice | NDArray[Any]) -> dict[str, NDArray[Any]]:
    def selected(name: str) -> NDArray[Any]:
        values = columns[name]
        return values[rows] if isinstance(rows, slice) else kernels.take(values, rows)

    return _once(list(columns), lambda name: id(columns[name]), selected)


def _reduced(
    end: NDArray[np.int32], ends: int, columns: Sequence[EdgeColumn], values: Columns
) -> dict[str, NDArray[Any]]:
    """Each column, reduced over the edges at each of `ends` vertices. `end` [edges] is the number of each edge's
    vertex.
    """
    at_vertex = {column.name: column.at_vertex for column in columns}

    def reduced(name: str) -> NDArray[Any]:
        reduce = kernels.scatter_sum if at_vertex[name] == "sum" else kernels.scatter_max
        return reduce(end, values[name], ends)

    return _once(list(at_vertex), lambda name: (id(values[name]), at_vertex[name]), reduced)


def _once(
    names: Sequence[str], key: Callable[[str], object], make: Callable[[str], NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Name → array. Names with the same key share one array, which is made once."""
    made: dict[object, NDArray[Any]] = {}
    found = {}
    for name in names:
        if key(name) not in made:
            made[key(name)] = make(name)
        found[name] = made[key(name)]
    return found
