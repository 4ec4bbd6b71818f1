"""Joining of attribute rows with the vertices of each bucket, and writing of the table `attributes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...kernels.runtime.sizes import SizedArrays
from ..errors import InputError
from ..ids import identity
from ..ids.display import display_id, type_name
from ..ids.id_types import from_internal, to_internal
from ..ids.identity import Ids
from ..ingest.numbering import BucketIds
from ..inputs.columns import plain_values
from ..inputs.formats.parquet import encrypted, open_parquet
from ..inputs.opening import READ_ERRORS, error_reason
from ..messages import Bundle, bundle
from ..publish.writing import OutputFile, write_table
from ..storage.folders import Folder
from .source import AttributeBlock, AttributeSource

_GROUP_BYTES = 2**27
"""Bytes of a row group of attributes, approximately, at most."""


@dataclass(frozen=True)
class AttributeRows(SizedArrays):
    """Attribute rows that are sent to the buckets of their vertices. `len()` is the number of rows."""

    number: int
    """Number of the block."""

    ids: pa.Array
    """[rows] int64 or large_string, ascending, without nulls."""

    values: pa.Table
    """[rows] the attributes; text is large_string."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Published:
    """Where and how the table is written."""

    folder: Folder
    compression: str
    row_group_rows: int


@dataclass(frozen=True)
class BucketAttributes:
    """The file of one bucket, and its counts."""

    file: OutputFile
    unknown: int
    """Rows whose id is no vertex of the graph."""
    missing: int
    """Vertices without a row."""


def bucket_range(ids: BucketIds) -> Ids:
    """The first id of a bucket, as an array of one id; empty if the bucket has no vertices."""
    return identity.to_host(identity.part(ids.ids, 0, min(1, len(ids))))


def read_attributes(source: AttributeSource, block: AttributeBlock) -> AttributeRows:
    """Read a block and sort it by id. Raises InputError, which names the file, for damage and null ids."""
    tables = [_read(source, file, group) for file, group in block.row_groups]
    id_type = pa.int64() if pa.types.is_integer(source.id_type) else pa.large_string()
    schema = pa.schema(
        [pa.field("id", id_type), *(field.with_type(_internal_type(field.type)) for field in source.schema)]
    )
    table = pa.concat_tables([schema.empty_table(), *tables])
    table = table.take(pc.sort_indices(table["id"])).combine_chunks()
    return AttributeRows(block.number, _combined(table["id"]), table.drop(["id"]))


def send_attributes(rows: AttributeRows, firsts: Sequence[Ids]) -> Bundle[AttributeRows]:
    """Block → buckets: the rows in each bucket's range of ids. `firsts` is [buckets] their `bucket_range`."""
    filled = [bucket for bucket, first in enumerate(firsts) if len(first)] or [0]
    splitters = [firsts[bucket] for bucket in filled[1:]]
    ids = rows.ids.to_numpy() if pa.types.is_integer(rows.ids.type) else rows.ids
    cuts = [0, len(rows)] if not splitters else identity.split(ids, identity.concatenate(splitters)).tolist()
    parts = {}
    for index, bucket in enumerate(filled):
        start, stop = cuts[index], cuts[index + 1]
        if start < stop:  # copied: Arrow pickles the whole array of a slice
            values = rows.values.slice(start, stop - start)
            own = pa.Table.from_batches(
                [pa.RecordBatch.from_arrays([pa.concat_arrays(c.chunks) for c in values.columns], schema=values.schema)]
            )
            parts[bucket] = AttributeRows(rows.number, pa.concat_arrays([rows.ids.slice(start, stop - start)]), own)
    return bundle(rows.number, parts)


def publish_attributes(
    source: AttributeSource, how: Published, ids: BucketIds, parts: Mapping[int, AttributeRows]
) -> BucketAttributes:
    """Write attributes/part-N.parquet: a row for each vertex of the bucket, in the order of ids, with nulls for a
    vertex without a row. `parts` are the rows by block. Raises InputError for an id with several rows.
    """
    schema = pa.schema([field.with_type(_internal_type(field.type)) for field in source.schema])
    ordered = [parts[block] for block in sorted(parts)]
    rows = pa.concat_tables([schema.empty_table(), *(part.values for part in ordered)])
    known = ids.ids if isinstance(ids.ids, pa.Array) else pa.array(identity.to_host(ids.ids))
    found = pa.concat_arrays([pa.array([], known.type), *(part.ids for part in ordered)])
    _refuse_repeats(source, found)
    at = pc.index_in(known, value_set=found)
    missing = at.null_count
    file = write_table(
        how.folder,
        f"attributes/part-{ids.bucket:05d}.parquet",
        pa.schema([pa.field("id", source.id_type), *source.schema]),
        1,
        _batches(source, how, known, rows, at),
        how.compression,
    )
    return BucketAttributes(file, len(found) - (len(known) - missing), missing)


def _read(source: AttributeSource, file: int, group: int) -> pa.Table:
    own, columns = source.files[file], [source.id_column, *source.schema.names]
    try:
        with open_parquet(own.path, own.version, source.storage_options) as opened:
            table = opened.read_row_groups([group], columns=columns).select(columns)
    except READ_ERRORS as error:
        raise encrypted(own.path, error) or InputError(
            f"{own.path}: row group {group} cannot be read: {error_reason(error)}; the file is damaged or changed "
            "during the run: write it again"
        ) from error
    nulls = table.column(0).null_count
    if nulls:
        raise InputError(
            f"{own.path}: row group {group} has {nulls} null ids in column {source.id_column!r}: each row needs the id "
            "of its vertex; leave such rows out of the file"
        )
    kinds = [_internal_type(field.type) for field in source.schema]
    try:
        values = [plain_values(column).cast(kind) for column, kind in zip(table.columns[1:], kinds, strict=True)]
        return pa.table(
            [pa.array(to_internal(table.column(0), source.id_type)), *values], names=["id", *source.schema.names]
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{own.path}: row group {group}: column {source.id_column!r}, {table.column(0).type}, has ids that are no "
            f"{type_name(source.id_type)}, as those of the edges are ({error_reason(error)}): leave such rows out"
        ) from error


def _refuse_repeats(source: AttributeSource, found: pa.Array) -> None:
    counts = found.value_counts()
    several = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(several):
        one = several.field("values").take(pc.sort_indices(several.field("values")))[0]
        times = several.filter(pc.equal(several.field("values"), one)).field("counts")[0]
        raise InputError(
            f"{source.path}: the id {_shown(one, source.id_type)!r} is in {times} rows of column "
            f"{source.id_column!r}: keep one row of each id"
        )


def _shown(id: pa.Scalar, id_type: pa.DataType) -> int | str:
    """An internal id as in the user's files."""
    own = pa.array([id.as_py()], id.type)
    value: int | str = display_id(from_internal(_ids(own, 0, 1), id_type)[0].as_py())
    return value


def _batches(
    source: AttributeSource, how: Published, known: pa.Array, rows: pa.Table, at: pa.Array
) -> Iterator[list[pa.Array]]:
    kinds = [field.type for field in source.schema]
    pending = [
        (start, min(start + how.row_group_rows, len(known))) for start in range(0, len(known), how.row_group_rows)
    ][::-1]
    while pending:
        start, stop = pending.pop()
        own = rows.take(at.slice(start, stop - start))
        if own.nbytes > _GROUP_BYTES and stop - start > 1:
            middle = (start + stop) // 2
            pending += [(middle, stop), (start, middle)]
            continue
        values = [_combined(column).cast(kind) for column, kind in zip(own.columns, kinds, strict=True)]
        yield [from_internal(_ids(known, start, stop), source.id_type), *values]


def _ids(known: pa.Array, start: int, stop: int) -> Ids:
    own = known.slice(start, stop - start)
    return own.to_numpy() if pa.types.is_integer(own.type) else own


def _internal_type(kind: pa.DataType) -> pa.DataType:
    """The type of values before they are written: large_string for strings."""
    return pa.large_string() if pa.types.is_string(kind) else kind


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
