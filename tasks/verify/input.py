"""Compare a result with its input. Shares no code with ingest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import OutOfRoom, UsageError
from ..ids.display import display_id, type_name
from ..tables.finding import table_at
from ..tables.live import LiveFiles
from .reading import Flaw, Int, id_array, positions, reject
from .rows import InputPiece, input_pieces
from .tables import EdgeTable, VertexTable, edge_at


def live_files(path: str, version: int | None, recorded: Mapping[str, Any] | None) -> LiveFiles | None:
    """The live files of the table at `path`, or None if there is no table.

    The version is `version`; else the version in the manifest, if that is of a table of the same format; else the
    current one. Raises as `TableFolder.live_files` does.
    """
    table = table_at(path, {})
    if table is None:
        if version is not None:
            raise UsageError(f"{path} is no Delta or Iceberg table, so it has no version {version}")
        return None
    if version is None and recorded is not None and recorded["format"] == table.format:
        version = int(recorded["version"])
    return table.live_files(version)


def check_input(
    path: str, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, live: LiveFiles | None = None
) -> tuple[str, bool]:
    """Compare edges, vertices, id type and row counts with the input at `path`, or the `live` files of a table.

    Raises Flaw, InputError if the input cannot be read, and OutOfRoom for more than 3,037,000,498 vertices.
    """
    size = len(vertices.ids)
    if size >= 3_037_000_499:  # a pair of positions would not fit int64
        raise OutOfRoom(f"{size} vertices are too many to compare with the input")
    keys = edges.source * size + edges.target
    edge_seen, vertex_seen = np.zeros(keys.size, np.bool_), np.zeros(size, np.bool_)
    rows = self_loops = nulls = filtered = 0
    types: set[Any] = set()
    columns = manifest["input"]["source_column"], manifest["input"]["target_column"]
    for batch in batches(input_pieces(path, manifest["input"], live), size):
        ends = [positions(end, vertices.ids) for end in (batch.source, batch.target)]
        for column, stored, end in zip(columns, (batch.source, batch.target), ends, strict=True):
            reject(
                end < 0,
                lambda at: (
                    f"{batch.location(at)}: {column} {display_id(stored[at].as_py())!r} is not in the vertex table"  # noqa: B023
                ),
            )
            vertex_seen[end] = True
        joins = np.flatnonzero(ends[0] != ends[1])
        row_keys = np.minimum(*ends)[joins] * size + np.maximum(*ends)[joins]
        ordered = np.sort(row_keys)
        found = np.minimum(np.searchsorted(keys, ordered), max(0, keys.size - 1))
        absent = keys[found] != ordered if keys.size else np.ones(ordered.size, np.bool_)
        reject(
            absent,
            lambda at: (
                f"{batch.location(joins[(row_keys == ordered[at]).argmax()])}: edge"  # noqa: B023
                f" ({vertices.name(ordered[at] // size)}, {vertices.name(ordered[at] % size)}) is not in the result"  # noqa: B023
            ),
        )
        edge_seen[found] = True
        types |= batch.types
        rows += len(batch.source) + batch.nulls + batch.filtered
        nulls += batch.nulls
        filtered += batch.filtered
        self_loops += len(batch.source) - joins.size
    reject(~edge_seen, lambda at: f"{edge_at(edges, vertices, at)} is not in the input")
    if manifest["input"].get("isolated"):  # the table of vertices has them, which `check_attributes` compares
        vertex_seen |= vertices.degree == 0
    reject(~vertex_seen, lambda at: f"vertex {vertices.name(at)} is not in the input")
    kept_types = manifest["input"].get("bipartite") != "prefix"  # which makes all ids strings
    if kept_types and len(types) == 1 and types != {vertices.id_type}:
        raise Flaw(f"the ids are {type_name(vertices.id_type)}; in the input they are {type_name(types.pop())}")
    expected = {
        "rows": rows,
        "self_loops": self_loops,
        "nulls_dropped": nulls,
        "filtered": filtered,
        "duplicates": rows - filtered - nulls - self_loops - keys.size,
    }
    for name, value in expected.items():
        stored = manifest["counts"].get(name, 0)  # results of releases before conditions have no such count
        if stored != value:
            raise Flaw(f"the manifest's counts.{name} is {stored}; the input gives {value}")
    return f"the same edges as the {rows:,} rows of {path if live is None else live.table}", True


def edges_of_input(
    path: str, manifest: dict[str, Any], vertices: VertexTable, live: LiveFiles | None = None
) -> tuple[Int, Int]:
    """The edges in the input, each once: positions of their smaller and larger ends in the vertex table, ascending.

    Rows with an id that is not in the table are left out. Raises as `check_input` does.
    """
    size = len(vertices.ids)
    found = np.zeros(0, np.int64)
    for batch in batches(input_pieces(path, manifest["input"], live), size):
        ends = np.stack([positions(end, vertices.ids) for end in (batch.source, batch.target)])
        ends = ends[:, (ends[0] != ends[1]) & (ends >= 0).all(axis=0)]
        found = np.union1d(found, ends.min(axis=0) * size + ends.max(axis=0))
    return found // max(size, 1), found % max(size, 1)


class Batch(NamedTuple):
    """Rows of several row groups, without rows that have a null id."""

    source: Any
    target: Any
    types: set[pa.DataType]
    nulls: int
    filtered: int
    ends: Int
    """[row groups] end of the rows of each row group."""
    locations: list[str]
    weight: NDArray[np.float64] | None = None
    """[rows] None if the run read none."""

    def location(self, row: int) -> str:
        """The location of the row group with a row, for a message."""
        return self.locations[int(np.searchsorted(self.ends, row, "right"))]


def batches(pieces: Iterable[InputPiece], least_rows: int) -> Iterator[Batch]:
    """Concatenate pieces with ids of the same types up to at least `least_rows` rows.

    The lookup of ids reads all vertices for each batch, so batches should be large.
    """
    buffered: list[InputPiece] = []
    rows = 0
    for piece in pieces:
        piece = piece._replace(source=id_array(piece.source), target=id_array(piece.target))
        if buffered and _kinds(piece) != _kinds(buffered[0]):
            yield _batch(buffered)
            buffered, rows = [], 0
        buffered.append(piece)
        rows += len(piece.source)
        if rows >= least_rows:
            yield _batch(buffered)
            buffered, rows = [], 0
    if buffered:
        yield _batch(buffered)


def _kinds(piece: InputPiece) -> tuple[pa.DataType, pa.DataType]:
    return piece.source.type, piece.target.type


def _batch(pieces: list[InputPiece]) -> Batch:
    return Batch(
        pa.concat_arrays([piece.source for piece in pieces]),
        pa.concat_arrays([piece.target for piece in pieces]),
        set().union(*(piece.types for piece in pieces)),
        sum(piece.nulls for piece in pieces),
        sum(piece.filtered for piece in pieces),
        np.cumsum([len(piece.source) for piece in pieces]),
        [piece.location for piece in pieces],
        None if pieces[0].weight is None else np.concatenate([piece.weight for piece in pieces]),
    )
