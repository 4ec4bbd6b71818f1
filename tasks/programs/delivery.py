"""Buckets → blocks → buckets: send edges to the blocks of their targets, and results to the buckets that publish them.

exchange 1   send_entries   buckets → blocks: collect_block
…            a program runs on all blocks
exchange 2   send_state     blocks → buckets: collect_state
exchange 3   ask_ids        buckets → buckets: answer_ids   (of columns that hold numbers of vertices)
exchange 4   buckets → buckets: name_columns
exchange 5   send_ends      buckets → buckets: collect_edge_columns   (of programs with columns of edges)
                                               collect_levels         (of programs with groups)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..dense import BucketGroups, EdgeLevels
from ..dense.merge import HierarchyRows
from ..errors import InternalError
from ..ids import identity, order
from ..ids.identity import Ids
from ..ids.order import Ints
from ..ingest.degrees import BucketDegrees
from ..ingest.directions import arcs
from ..ingest.numbering import BucketEdges, BucketIds, split_by_bucket
from ..messages import Bundle, bundle, collect
from ..partition import RangePartitioner
from .block import Entries, GraphBlock, PairTable, build_block, build_whole_block, entries_of
from .orders.calls import Calls
from .program import Array, EdgeProgram, Program, Vertices, View, level_names
from .running import ProgramOutcome


@dataclass(frozen=True)
class StateRows(SizedArrays):
    """Results of a program that are sent to a bucket. `len()` is the number of vertices."""

    number: Ints
    """[vertices] dense numbers, ascending."""
    state: Mapping[str, Array]
    """[vertices] by name."""

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True)
class BucketColumns(SizedArrays):
    """Results of programs for the vertices of one bucket, in id order."""

    bucket: int
    columns: Mapping[str, Array]
    """[vertices] by name."""


@dataclass(frozen=True)
class NamedColumns(SizedArrays):
    """Results of programs for the vertices of one bucket, in id order."""

    bucket: int
    columns: Mapping[str, Array]
    """[vertices] by name. Columns of ids have positions in `ids`, or -1 for none."""
    ids: Ids
    """The ids that columns refer to."""
    edges: Mapping[str, Array] = field(default_factory=dict)
    """[edges] columns of the bucket's edges by name."""
    pairs: PairTable | None = None
    """Distances from the vertices of the bucket, of a program that keeps them."""
    groups: HierarchyRows | None = None
    """Groups whose least vertex is in the bucket, of a program that finds groups."""
    similar: NamedColumns | None = None
    """[rows] source, target, rank and similarity of pairs whose source is in the bucket, of a program that finds some.
    """


@dataclass(frozen=True)
class IdRequests(SizedArrays):
    """Dense numbers of vertices whose ids are requested, ascending, distinct. `len()` is their number."""

    number: Ints

    def __len__(self) -> int:
        return len(self.number)


class HasSupport(Protocol):
    """Results for the edges of a bucket."""

    @property
    def support(self) -> NDArray[np.int32]:
        """[edges] triangles of the edge."""


def send_entries(
    edges: BucketEdges,
    home: RangePartitioner,
    view: View,
    weighted: bool = False,
    mirrored: bool = False,
    results: HasSupport | None = None,
) -> Bundle[Entries]:
    """Bucket → blocks: the entries of the bucket's edges for a view, to the blocks of their targets.

    `weighted` sends the weights of the edges, too. `mirrored` is for an undirected graph in one block: it sends each
    edge once, from the memory in which it lies. With `results` their supports are the weights, and directions are
    ignored.
    """
    weight = edges.weight if weighted else None
    if results is not None:
        weight = kernels.to_host(results.support).astype(np.float64)
    if mirrored:
        low = order.shifted(edges.low, edges.first, edges.all_vertices)
        high = edges.highs.astype(low.dtype, copy=False)[edges.high]
        return bundle(edges.bucket, {0: Entries(low, high, weight, True)})
    highs = kernels.to_host(edges.highs)
    low = order.shifted(kernels.to_host(edges.low), edges.first, edges.all_vertices)
    high = highs.astype(low.dtype, copy=False)[kernels.to_host(edges.high)]
    if edges.ways is None or results is not None:
        entries = entries_of(Entries(low, high, weight), False, view)
    else:
        directed = Entries(*arcs(low, high, kernels.to_host(edges.ways), weight))
        entries = entries_of(directed, True, view)
    if home.partitions == 1:
        return bundle(edges.bucket, {0: entries})
    by_home, cuts = order.group(home(entries.target), home.partitions)
    return bundle(edges.bucket, {g: entries.at(by_home[cuts[g] : cuts[g + 1]]) for g in range(home.partitions)})


def collect_block(
    group: int,
    vertices: int,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    parts: Mapping[int, Entries],
) -> GraphBlock:
    """The block of one group from the entries that each bucket sent, with weights if these are `weighted`.

    A block of mirrored entries lies where they are. Raises OutOfRoom for 2^31 distinct sources.
    """
    ends = np.concatenate(([0], home.cuts, [vertices]))
    number = order.shifted(np.arange(ends[group], ends[group + 1]), 0, vertices)
    senders = [parts[b] for b in sorted(parts)]
    if senders and all(part.mirrored for part in senders):
        return build_whole_block(vertices, senders, view)
    source, target = (
        np.concatenate([number[:0], *(getattr(part, name) for part in senders)]) for name in ("source", "target")
    )
    weights = [part.weight for part in senders if part.weight is not None]
    weight = np.concatenate(weights) if weights else np.zeros(0) if weighted else None
    return build_block(group, home.partitions, vertices, number, Entries(source, target, weight), directed, view)


def in_one_block(edges: Sequence[BucketEdges], vertices: int, directed: bool, view: View, weighted: bool) -> GraphBlock:
    """The graph of these buckets, in the order of their numbers, in one block. Raises as `collect_block` does."""
    home = RangePartitioner()
    sent = [send_entries(own, home, view, weighted, not directed) for own in edges]
    return collect_block(0, vertices, home, directed, view, weighted, collect(0, sent))


def send_state(outcome: ProgramOutcome, starts: NDArray[np.int64]) -> Bundle[StateRows]:
    """Block → buckets: the results for the vertices of each bucket."""
    cuts = split_by_bucket(outcome.number, starts)
    parts = {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        rows = slice(cuts[b], cuts[b + 1])
        parts[b] = StateRows(outcome.number[rows], {name: values[rows] for name, values in outcome.state.items()})
    return bundle(outcome.group, parts)


def collect_state(
    bucket: int, starts: NDArray[np.int64], types: Mapping[str, str], parts: Mapping[int, StateRows]
) -> BucketColumns:
    """The results of a program for a bucket's vertices. Raises InternalError unless each vertex has one result."""
    vertices = int(starts[bucket + 1] - starts[bucket])
    rows = sorted(parts.values(), key=lambda part: int(part.number[0]))
    number = np.concatenate([np.zeros(0, np.int64), *(part.number for part in rows)])
    if not np.array_equal(number, np.arange(starts[bucket], starts[bucket + 1])):
        raise InternalError(f"bucket {bucket} has {vertices:,} vertices, and a program found {len(number):,}")
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(part.state[name] for part in rows)]) for name, kind in types.items()
    }
    return BucketColumns(bucket, columns)


def ask_ids(values: BucketColumns, names: Sequence[str], starts: NDArray[np.int64]) -> Bundle[IdRequests]:
    """Bucket → buckets: request the ids of the vertices in some columns."""
    number = referenced(values, names)
    cuts = split_by_bucket(number, starts)
    return bundle(values.bucket, {b: IdRequests(number[cuts[b] : cuts[b + 1]]) for b in range(len(starts) - 1)})


def referenced(values: BucketColumns, names: Sequence[str]) -> NDArray[np.int64]:
    """The dense numbers of vertices in some columns, ascending, distinct; 0 where a column has -1, for none."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(np.maximum(values.columns[name], 0) for name in names)]))


def answer_ids(ids: BucketIds, starts: NDArray[np.int64], parts: Mapping[int, IdRequests]) -> Bundle[Ids]:
    """Bucket → buckets: the ids that each bucket requested."""
    first = int(starts[ids.bucket])
    own_ids = identity.to_host(ids.ids)
    return bundle(ids.bucket, {asker: identity.take(own_ids, part.number - first) for asker, part in parts.items()})


def name_columns(
    found: BucketColumns, names: Sequence[str], kind: identity.Kind, answers: Mapping[int, Ids]
) -> NamedColumns:
    """The columns of one bucket with the requested ids."""
    ids = identity.concatenate([answers[b] for b in sorted(answers)] or [identity.no_ids(kind)])
    number = referenced(found, names)
    if len(ids) != len(number):
        raise InternalError(f"bucket {found.bucket} asked for {len(number)} ids and got {len(ids)}")
    columns = dict(found.columns)
    for name in names:
        columns[name] = np.where(columns[name] < 0, -1, np.searchsorted(number, columns[name]))
    return NamedColumns(found.bucket, columns, ids)


EDGES_AT_ONCE = 2**24
"""Edges whose levels are found at once. Each takes the state of both ends."""


@dataclass(frozen=True)
class EndValues(SizedArrays):
    """Values of the vertices that are larger ends of another bucket's edges. `len()` is the number of vertices."""

    degree: NDArray[np.int64]
    """[vertices]"""
    state: Mapping[str, Array]
    """[vertices] by name."""

    def __len__(self) -> int:
        return len(self.degree)


@dataclass(frozen=True)
class EdgeColumns(SizedArrays):
    """The columns of a program for the edges of one bucket. `len()` is the number of columns."""

    bucket: int
    columns: Mapping[str, Array]
    """[edges] by name."""

    def __len__(self) -> int:
        return len(self.columns)


def send_ends(state: BucketColumns, degrees: BucketDegrees) -> Bundle[EndValues]:
    """Bucket → buckets: degrees, and the state of a program, of the vertices that each bucket has as larger ends."""
    degree = kernels.to_host(degrees.degree)
    parts = {}
    for asker, asked in degrees.asked.items():
        at = kernels.to_host(asked)
        parts[asker] = EndValues(degree[at], {name: values[at] for name, values in state.columns.items()})
    return bundle(state.bucket, parts)


def collect_edge_columns(
    program: Program | EdgeProgram,
    edges: BucketEdges,
    degrees: BucketDegrees,
    found: BucketColumns,
    results: HasSupport,
    parts: Mapping[int, EndValues],
) -> EdgeColumns:
    """The columns of a program for a bucket's edges. `found` is its state, which is empty for an `EdgeProgram`.

    Raises ProgramError for an error of the program, and InternalError unless each larger end has its values.
    """
    low, high = _ends(edges, degrees, found, parts, kernels.to_host)
    return EdgeColumns(edges.bucket, Calls(program).of_edges(low, high, kernels.to_host(results.support)))


def _ends(
    edges: BucketEdges,
    degrees: BucketDegrees,
    found: BucketColumns,
    parts: Mapping[int, EndValues],
    place: Callable[[Any], Array],
) -> tuple[Vertices, Vertices]:
    """[edges] both ends of each edge of a bucket. `place` copies an array to where the program needs it.

    Raises InternalError unless each larger end has its values.
    """
    highs, degree = kernels.to_host(edges.highs), kernels.to_host(degrees.degree)
    answers = [parts[b] for b in sorted(parts)]
    if (answered := sum(map(len, answers))) != len(highs):
        raise InternalError(f"bucket {edges.bucket} asked for the values of {len(highs)} vertices and got {answered}")
    of_low = {"number": np.arange(len(degree)) + edges.first, "degree": degree, **found.columns}
    of_high = {
        "number": highs.astype(np.int64),
        "degree": np.concatenate([np.zeros(0, np.int64), *(part.degree for part in answers)]),
        **{
            name: np.concatenate([values[:0], *(part.state[name] for part in answers)])
            for name, values in found.columns.items()
        },
    }
    low, high = (
        Vertices({name: place(own) for name, own in arrays.items()}, edges.all_vertices, 0, place(rows))
        for arrays, rows in ((of_low, edges.low), (of_high, edges.high))
    )
    return low, high


def collect_levels(
    program: Program,
    edges: BucketEdges,
    degrees: BucketDegrees,
    found: BucketColumns,
    parts: Mapping[int, EndValues],
) -> EdgeLevels:
    """The level of each edge of a bucket, by the state of a program that has ended, in the memory that has the edges.

    Raises as `_ends` does.
    """
    place = kernels.to_host if kernels.on_host(edges.low) else kernels.to_device
    low, high = _ends(edges, degrees, found, parts, place)
    pieces = (slice(first, first + EDGES_AT_ONCE) for first in range(0, max(1, len(low)), EDGES_AT_ONCE))
    return EdgeLevels(kernels.join([program.levels(low.part(piece), high.part(piece)) for piece in pieces]))


def with_groups(named: NamedColumns, name: str, groups: BucketGroups) -> NamedColumns:
    """The results of a program for a bucket, with its groups, and the innermost one of each vertex as column `name`,
    without `Found.levels`.
    """
    kept = {own: values for own, values in named.columns.items() if own not in level_names(len(named.columns))}
    return replace(named, columns={**kept, name: groups.innermost}, groups=groups.components)


def with_edges(named: NamedColumns, edges: EdgeColumns) -> NamedColumns:
    """The results of a program for a bucket, with those for its edges."""
    return replace(named, edges=edges.columns)
