"""Compare a result with the edges that it was made from. Shares no code with ingest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .errors import OutOfRoom
from .spelling import spelled, type_name
from .tables.live import LiveFiles
from .verify_rows import InputPiece, input_pieces
from .verify_tables import (
    EdgeTable,
    Flaw,
    Int,
    VertexTable,
    edge_at,
    none,
    plain,
    positions,
)


def check_input(
    path: str, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, live: LiveFiles | None = None
) -> tuple[str, bool]:
    """Compare the edges, the vertices, the type of the ids and the counts of rows with those of the input at `path`,
    or of the `live` files of the table there.

    Raises Flaw, InputError if the input cannot be read, and OutOfRoom for more than 3,037,000,498 vertices.
    """
    size = len(vertices.ids)
    if size >= 3_037_000_499:  # so that a pair of positions fits int64
        raise OutOfRoom(f"{size} vertices are too many to compare with the input")
    keys = edges.source * size + edges.target
    edge_seen, vertex_seen = np.zeros(keys.size, np.bool_), np.zeros(size, np.bool_)
    rows = self_loops = nulls = filtered = 0
    types: set[Any] = set()
    columns = manifest["input"]["source_column"], manifest["input"]["target_column"]
    for batch in _batches(input_pieces(path, manifest["input"], live), size):
        ends = [positions(end, vertices.ids) for end in (batch.source, batch.target)]
        for column, given, end in zip(columns, (batch.source, batch.target), ends, strict=True):
            none(
                end < 0,
                lambda at: (
                    f"{batch.place(at)}: {column} {spelled(given[at].as_py())!r} is not in the vertex table"  # noqa: B023
                ),
            )
            vertex_seen[end] = True
        joins = np.flatnonzero(ends[0] != ends[1])
        given_keys = np.minimum(*ends)[joins] * size + np.maximum(*ends)[joins]
        wanted = np.sort(given_keys)
        place = np.minimum(np.searchsorted(keys, wanted), max(0, keys.size - 1))
        absent = keys[place] != wanted if keys.size else np.ones(wanted.size, np.bool_)
        none(
            absent,
            lambda at: (
                f"{batch.place(joins[(given_keys == wanted[at]).argmax()])}: edge"  # noqa: B023
                f" ({vertices.name(wanted[at] // size)}, {vertices.name(wanted[at] % size)}) is not in the result"  # noqa: B023
            ),
        )
        edge_seen[place] = True
        types |= batch.types
        rows += len(batch.source) + batch.nulls + batch.filtered
        nulls += batch.nulls
        filtered += batch.filtered
        self_loops += len(batch.source) - joins.size
    none(~edge_seen, lambda at: f"{edge_at(edges, vertices, at)} is not in the input")
    none(~vertex_seen, lambda at: f"vertex {vertices.name(at)} is not in the input")
    kept_types = manifest["input"].get("bipartite") != "prefix"  # which makes text of all
    if kept_types and len(types) == 1 and types != {vertices.id_type} and "dictionary" not in str(types):
        raise Flaw(f"the ids are {type_name(vertices.id_type)}; in the input they are {type_name(types.pop())}")
    right = {
        "rows": rows,
        "self_loops": self_loops,
        "nulls_dropped": nulls,
        "filtered": filtered,
        "duplicates": rows - filtered - nulls - self_loops - keys.size,
    }
    for name, value in right.items():
        given = manifest["counts"].get(name, 0)  # earlier releases had no conditions
        if given != value:
            raise Flaw(f"the manifest's counts.{name} is {given}; the input gives {value}")
    return f"the same edges as the {rows:,} rows of {path if live is None else live.table}", True


class _Batch(NamedTuple):
    """Rows of several row groups, without those that have a null."""

    source: Any
    target: Any
    types: set[pa.DataType]
    nulls: int
    filtered: int
    ends: Int
    """Where the rows of each row group end."""
    places: list[str]

    def place(self, row: int) -> str:
        """Which row group a row is of."""
        return self.places[int(np.searchsorted(self.ends, row, "right"))]


def _batches(pieces: Iterable[InputPiece], least_rows: int) -> Iterator[_Batch]:
    """Pieces put together, until there are `least_rows` rows. Integers and strings are kept apart.

    A look-up of ids reads all vertices, however few rows ask.
    """
    waiting: list[InputPiece] = []
    rows = 0
    for piece in pieces:
        piece = piece._replace(source=plain(piece.source), target=plain(piece.target))
        if waiting and _kinds(piece) != _kinds(waiting[0]):
            yield _batch(waiting)
            waiting, rows = [], 0
        waiting.append(piece)
        rows += len(piece.source)
        if rows >= least_rows:
            yield _batch(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _batch(waiting)


def _kinds(piece: InputPiece) -> tuple[pa.DataType, pa.DataType]:
    return piece.source.type, piece.target.type


def _batch(pieces: list[InputPiece]) -> _Batch:
    return _Batch(
        pa.concat_arrays([piece.source for piece in pieces]),
        pa.concat_arrays([piece.target for piece in pieces]),
        set().union(*(piece.types for piece in pieces)),
        sum(piece.nulls for piece in pieces),
        sum(piece.filtered for piece in pieces),
        np.cumsum([len(piece.source) for piece in pieces]),
        [piece.place for piece in pieces],
    )
