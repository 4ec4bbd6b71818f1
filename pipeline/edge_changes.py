"""Edges that differ between two results: both tables are sorted, so they are compared block by block."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from .merging import paired, side_by_side, sorted_batches
from .result import Result

__all__ = ["CHANGES", "VALUE_COLUMNS", "change_of", "changed_edges", "edge_schema"]

CHANGES = ("appeared", "vanished", "rose", "fell")
VALUE_COLUMNS = ("change", "lambda_old", "lambda_new")
"""Columns of changed edges beside the ids."""


def changed_edges(old: Result, new: Result) -> Iterator[pa.Table]:
    """The edges that appeared, vanished, rose or fell, with the columns of `edge_schema`, ascending by their ids.

    Tables of some of them at a time, and a block of each result, are in memory. Both results have exact λ and the same
    names and types of ids. Raises InputError for damage.
    """
    schema = edge_schema(new)
    ids = schema.names[:2]
    before, after = (sorted_batches(result.place, result.edges, [*ids, "lambda"]) for result in (old, new))
    for blocks in side_by_side(before, after, keys=2):
        if blocks[0] is not None and blocks[1] is not None and blocks[0].equals(blocks[1]):
            continue
        rows = paired(*blocks, ids)
        rows = rows.append_column("change", change_of(rows["lambda_old"], rows["lambda_new"]))
        changed = rows.filter(pc.is_valid(rows["change"]))
        if len(changed):
            yield changed.select(schema.names).sort_by([(name, "ascending") for name in ids]).cast(schema)


def edge_schema(result: Result) -> pa.Schema:
    """Columns of changed edges: the two ids as in `result`, change (one of CHANGES), and λ in either result, int32,
    null where there is no such edge.
    """
    ids = [result.edges.schema.field(place) for place in (0, 1)]
    return pa.schema([*ids, *zip(VALUE_COLUMNS, (pa.string(), pa.int32(), pa.int32()), strict=True)])


def change_of(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """What became of each λ, one of CHANGES; null where it is the same. No λ in one of them is null there."""
    cases = (pc.is_null(old), pc.is_null(new), pc.greater(new, old), pc.less(new, old))
    return pc.case_when(pc.make_struct(*(pc.fill_null(case, False) for case in cases)), *CHANGES)
