"""The tables of distances and of similar pairs: values of pairs of vertices, from blocks to buckets, and written.

Distances by targets become distances by sources, then the buckets exchange the ids of all targets:

    exchange 1   send_pairs     blocks → buckets: collect_pairs
    exchange 2   send_all_ids   buckets → buckets: collect_all_ids

A row of the table is a pair of a source and another vertex that a path joins.

Similar pairs are few for each source, so that buckets ask for the ids of targets as for those in columns:

    exchange 1   send_similar   block → buckets: collect_similar
    exchange 2, 3               buckets → buckets, see `delivery`: name_columns
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InternalError
from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from ..ingest.numbering import BucketIds, split_by_bucket
from ..messages import Bundle, bundle
from ..publish.tables import slices, slices_by_text
from ..publish.writing import OutputFile, TableOptions, write_table
from .block import NO_PATH, PairTable
from .delivery import BucketColumns, NamedColumns
from .program import PairRows
from .running import ProgramOutcome


def send_pairs(outcome: ProgramOutcome, starts: NDArray[np.int64]) -> Bundle[PairTable]:
    """Block → buckets: the distances from the sources in each bucket to the vertices of the block."""
    found = outcome.pairs
    assert found is not None
    cuts, parts = split_by_bucket(found.column, starts), {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        own = slice(cuts[b], cuts[b + 1])
        parts[b] = PairTable(found.column[own], found.row, np.ascontiguousarray(found.distance[:, own].T))
    return bundle(outcome.group, parts)


def collect_pairs(bucket: int, vertices: int, parts: Mapping[int, PairTable]) -> PairTable:
    """The distances from the sources in a bucket to all vertices.

    Raises InternalError unless each vertex is in one block.
    """
    if not parts:
        none = np.zeros(0, np.int64)
        return PairTable(none, np.arange(vertices), np.zeros((0, vertices), np.uint16))
    row = next(iter(parts.values())).row
    distance, arrived = np.full((len(row), vertices), NO_PATH), 0
    for part in parts.values():
        distance[:, part.column] = part.distance
        arrived += len(part.column)
    if arrived != vertices:
        raise InternalError(f"bucket {bucket} got the distances to {arrived:,} of {vertices:,} vertices")
    return PairTable(row, np.arange(vertices), distance)


def send_all_ids(ids: BucketIds, buckets: int) -> Bundle[Ids]:
    """Bucket → buckets: all ids of the bucket."""
    own = identity.to_host(ids.ids)
    return bundle(ids.bucket, dict.fromkeys(range(buckets), own))


def collect_all_ids(kind: identity.Kind, parts: Mapping[int, Ids]) -> Ids:
    """The ids of all vertices, in the order of their numbers."""
    return identity.concatenate([parts[b] for b in sorted(parts)] or [identity.no_ids(kind)])


def write_distances(
    how: TableOptions,
    bucket: int,
    sources: NDArray[np.int64],
    distance: NDArray[np.uint16],
    no_path: int,
    ids: Ids,
) -> OutputFile:
    """Write distances/part-N.parquet: source, target, distance int32, ascending by (source, target).

    `distance` [sources, vertices] has the distances from the vertices with the numbers `sources`, which ascend, and
    `no_path` for pairs without a row. `ids` are those of all vertices.
    """
    kind = how.source.id_type
    schema = pa.schema([("source", kind), ("target", kind), ("distance", pa.int32())])
    at_once = max(1, how.row_group_rows // max(distance.shape[1], 1))

    def batches() -> Iterator[list[pa.Array]]:
        for first in range(0, len(sources), at_once):
            part = distance[first : first + at_once]
            row, target = np.nonzero(part != no_path)
            source, values = sources[first + row], part[row, target].astype(np.int32)
            for start in range(0, len(values), how.row_group_rows):
                run = slice(start, min(start + how.row_group_rows, len(values)))
                for rows in slices_by_text(run, (ids, source), (ids, target)):
                    ends = (from_internal(identity.take(ids, end[rows]), kind) for end in (source, target))
                    yield [*ends, pa.array(values[rows])]

    name = f"distances/part-{bucket:05d}.parquet"
    return write_table(how.folder, name, schema, 2, batches(), how.compression)


def send_similar(outcome: ProgramOutcome, starts: NDArray[np.int64]) -> Bundle[PairRows]:
    """Block → buckets: the pairs whose source is in each bucket."""
    found = outcome.similar
    assert found is not None
    cuts, parts = split_by_bucket(found.source, starts), {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        own = slice(cuts[b], cuts[b + 1])
        parts[b] = PairRows(found.source[own], found.target[own], found.rank[own], found.similarity[own])
    return bundle(outcome.group, parts)


def collect_similar(bucket: int, parts: Mapping[int, PairRows]) -> BucketColumns:
    """[rows] the pairs whose source is in a bucket, by the names of their columns. One block has found all pairs."""
    none = np.zeros(0, np.int64)
    own = next(iter(parts.values()), PairRows(none, none, none.astype(np.int32), none.astype(np.float64)))
    return BucketColumns(bucket, {name: getattr(own, name) for name in ("source", "target", "rank", "similarity")})


def with_similar(named: NamedColumns, similar: NamedColumns) -> NamedColumns:
    """The results of a program for a bucket, with its pairs."""
    return replace(named, similar=similar)


def write_similar(how: TableOptions, named: NamedColumns) -> OutputFile:
    """Write similar_pairs/part-N.parquet: source, rank int32, target, similarity float64, ascending by (source, rank).

    `named` [rows] has the pairs of a bucket.
    """
    kind, columns = how.source.id_type, named.columns
    schema = pa.schema([("source", kind), ("rank", pa.int32()), ("target", kind), ("similarity", pa.float64())])
    source, target = columns["source"], columns["target"]

    def batches() -> Iterator[list[pa.Array]]:
        for run in slices(how, len(source), files=1):
            for rows in slices_by_text(run, (named.ids, source), (named.ids, target)):
                ends = [from_internal(identity.take(named.ids, end[rows]), kind) for end in (source, target)]
                yield [ends[0], pa.array(columns["rank"][rows]), ends[1], pa.array(columns["similarity"][rows])]

    name = f"similar_pairs/part-{named.bucket:05d}.parquet"
    return write_table(how.folder, name, schema, 2, batches(), how.compression)
