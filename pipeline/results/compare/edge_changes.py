"""Edges that differ between two results. Both tables are sorted, so they are compared block by block."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..result import Result
from .sorted_tables import aligned_blocks, join_blocks, sorted_batches

CHANGES = ("appeared", "vanished", "rose", "fell")
VALUE_COLUMNS = ("change", "lambda_old", "lambda_new")
"""Columns of changed edges after the two ids."""


def changed_edges(old: Result, new: Result) -> Iterator[pa.Table]:
    """The edges that appeared, vanished, rose or fell, with the columns of `edge_schema`, in tables ascending by ids.

    One block of each result is in memory at a time. Both results must have exact λ, and equal names and types of ids.
    Raises InputError for damage.
    """
    schema = edge_schema(new)
    ids = schema.names[:2]
    before, after = (sorted_batches(result.edges, [*ids, "lambda"]) for result in (old, new))
    for blocks in aligned_blocks(before, after, keys=2):
        if blocks[0] is not None and blocks[1] is not None and blocks[0].equals(blocks[1]):
            continue
        rows = join_blocks(*blocks, ids)
        rows = rows.append_column("change", change_of(rows["lambda_old"], rows["lambda_new"]))
        changed = rows.filter(pc.is_valid(rows["change"]))
        if len(changed):
            yield changed.select(schema.names).sort_by([(name, "ascending") for name in ids]).cast(schema)


def edge_schema(result: Result) -> pa.Schema:
    """The columns of changed edges: the two ids as in `result`, change (one of CHANGES), lambda_old and lambda_new
    (int32, null if the result does not have the edge).
    """
    ids = [result.edges.schema.field(column) for column in (0, 1)]
    return pa.schema([*ids, *zip(VALUE_COLUMNS, (pa.string(), pa.int32(), pa.int32()), strict=True)])


def change_of(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """The change of each λ, one of CHANGES, or null if it is unchanged. A null λ means that the row is missing."""
    cases = (pc.is_null(old), pc.is_null(new), pc.greater(new, old), pc.less(new, old))
    return pc.case_when(pc.make_struct(*(pc.fill_null(case, False) for case in cases)), *CHANGES)
