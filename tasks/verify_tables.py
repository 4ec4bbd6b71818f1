"""Reading a result, and the edges it was made from, for checking. Shares no code with ingest or publish."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .errors import InputError, UsageError
from .places import Place
from .sealed import read_footer
from .sealed_json import is_whole
from .stores import asked
from .tables.finding import refuse_parts_of_tables, refuse_parts_under, table_at
from .tables.live import LiveFiles

Int = NDArray[np.int64]


class Flaw(Exception):
    """What is wrong with a result, in one line."""


@dataclass(frozen=True)
class EdgeTable:
    """All rows of edges/*.parquet in file order; ends are positions in the vertex table."""

    source: Int
    target: Int
    support: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    """λ is in [low, high]; the same array twice when the run converged."""


@dataclass(frozen=True)
class VertexTable:
    """All rows of vertices/*.parquet in file order."""

    ids: Any
    """Arrow array of int64 or large_string."""
    id_type: pa.DataType
    """The ids' type in the files."""
    degree: Int
    triangles: Int
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    component: Int | None
    """-1 for none; None in a result without dense groups."""

    def name(self, position: int) -> str:
        """The id at that position, for a message."""
        return repr(self.ids[position].as_py())


def edge_at(edges: EdgeTable, vertices: VertexTable, at: int) -> str:
    """The edge at that position, for a message."""
    return f"edge ({vertices.name(edges.source[at])}, {vertices.name(edges.target[at])})"


def none(wrong: NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise Flaw about the first place where `wrong` holds, with the number of all such places."""
    count = int(np.count_nonzero(wrong))
    if count:
        more = f" (the first of {count:,})" if count > 1 else ""
        raise Flaw(message(int(wrong.argmax())) + more)


def read_manifest(out: Place) -> dict[str, Any]:
    """manifest.json as it stands, with the keys that the checks use. Raises Flaw if they are not there."""
    path, content = f"{out}/manifest.json", out.read("manifest.json")
    if content is None:
        raise Flaw(f"{path} is not there, so this is not a complete result")
    try:
        if not is_whole(content):
            raise Flaw(f"{path} has changed: it is not what edgemill wrote")
        manifest: dict[str, Any] = json.loads(content)
        for key, parts in {
            "input": ("source_column", "target_column", "id_type"),
            "counts": ("rows", "self_loops", "duplicates", "nulls_dropped", "edges", "vertices", "triangles"),
            "lambda": ("max", "sum", "histogram"),
        }.items():
            for part in parts:
                manifest[key][part]
        if not isinstance(manifest["converged"], bool):
            raise TypeError("converged")
        for entry in manifest["partitions"]:
            _ = entry["partition"], entry["owned"], entry["inner"], entry["peripheral"], entry["cut"]
        for entry in manifest["outputs"]:
            _ = entry["path"], entry["rows"], entry["bytes"], entry["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise Flaw(f"{path} cannot be read: {type(error).__name__} {error}") from error
    return manifest


def check_files(out: Place, outputs: list[dict[str, Any]]) -> None:
    """Compare the Parquet files in `out` with the manifest's: names, bytes, SHA-256, rows. Raises Flaw.

    In an object store other runs' files lie beside those of the result, in folders of their own.
    """
    listed = {entry["path"]: entry for entry in outputs}
    files, root = out.files, out.path().rstrip("/") + "/"
    own = "" if out.is_local else next(iter(listed), "").partition("/")[0]
    found = {str(path).removeprefix(root): info["size"] for path, info in files.find(root + own, detail=True).items()}
    present = {name for name in found if name.endswith(".parquet")}
    for name in sorted(present ^ listed.keys()):
        raise Flaw(f"{name} is not in the manifest" if name in present else f"{name} is missing")
    for name, entry in sorted(listed.items()):
        if found[name] != entry["bytes"]:
            raise Flaw(f"{name} has {found[name]} bytes; the manifest says {entry['bytes']}")
        with files.open(root + name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != entry["sha256"]:
            raise Flaw(f"{name} has changed: its SHA-256 is {digest}; the manifest says {entry['sha256']}")
        try:
            with files.open(root + name, "rb") as file:
                rows = pq.read_metadata(file).num_rows
        except pa.ArrowException as error:
            raise Flaw(f"{name} cannot be read: {error}") from error
        if rows != entry["rows"]:
            raise Flaw(f"{name} has {rows} rows; the manifest says {entry['rows']}")


def read_vertices(out: Place, manifest: dict[str, Any]) -> VertexTable:
    """The vertex table. Raises Flaw unless columns and types are as promised and the ids ascend."""
    bounds = _bounds(manifest["converged"])
    numbers = {"degree": pa.int64(), "triangles": pa.int64(), **dict.fromkeys(bounds, pa.int32())}
    dense = manifest.get("dense") is not None
    if dense:
        numbers["component"] = pa.int64()
    table = read_table(out, manifest, "vertices", ["id"], numbers, nulls=("component",))
    vertices = VertexTable(
        ids=plain(table["id"]),
        id_type=table["id"].type,
        degree=table["degree"].to_numpy(),
        triangles=table["triangles"].to_numpy(),
        low=table[bounds[0]].to_numpy(),
        high=table[bounds[-1]].to_numpy(),
        component=table["component"].fill_null(-1).to_numpy() if dense else None,
    )
    behind = pc.greater_equal(vertices.ids[:-1], vertices.ids[1:]).to_numpy(zero_copy_only=False)
    if behind.any():
        at = int(behind.argmax())
        raise Flaw(f"vertices do not ascend: {vertices.name(at)} is followed by {vertices.name(at + 1)}")
    return vertices


def read_edges(out: Place, source: str, target: str, vertices: VertexTable, manifest: dict[str, Any]) -> EdgeTable:
    """The edge table. Raises Flaw unless columns and types are as promised and every end is in the vertex table."""
    bounds = _bounds(manifest["converged"])
    numbers = {"support": pa.int32(), **dict.fromkeys(bounds, pa.int32())}
    table = read_table(out, manifest, "edges", [source, target], numbers)
    for column in (source, target):
        if table[column].type != vertices.id_type:
            raise Flaw(f"edges: {column} is {table[column].type}, but the vertices' id is {vertices.id_type}")
    ends = [positions(table[column], vertices.ids) for column in (source, target)]
    for column, end in zip((source, target), ends, strict=True):
        if (end < 0).any():
            row = int((end < 0).argmax())
            raise Flaw(f"edges: {column} {table[column][row].as_py()!r} in row {row} is not in the vertex table")
    low = table[bounds[0]].to_numpy()
    high = low if manifest["converged"] else table[bounds[1]].to_numpy()
    return EdgeTable(ends[0], ends[1], table["support"].to_numpy(), low, high)


def positions(column: Any, ids: Any) -> Int:
    """Position of each value in ids, -1 where it is not there. Raises InputError if the values are no ids."""
    values = plain(column)
    if values.type != ids.type:
        return np.full(len(values), -1)
    found = pc.index_in(values, value_set=ids)
    answer: Int = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return answer


class InputPiece(NamedTuple):
    """One row group of the input, without the rows that have a null."""

    place: str
    """Where it is, for a message."""
    source: Any
    target: Any
    types: set[pa.DataType]
    """Types of the two columns in the file."""
    nulls: int
    """Rows left out."""


def live_files(path: str, version: int | None, recorded: Mapping[str, Any] | None) -> LiveFiles | None:
    """The files of the table at `path`, None if no table is there: those of `version`, else of the version that the
    manifest says was read of a table of that format, else of the current one. Raises as `TableFolder.live_files` does.
    """
    table = table_at(path, {})
    if table is None:
        if version is not None:
            raise UsageError(f"{path} is no Delta or Iceberg table, so it has no version {version}")
        return None
    if version is None and recorded is not None and recorded["format"] == table.format:
        version = int(recorded["version"])
    return table.live_files(version)


def input_pieces(path: str, source: str, target: str, live: LiveFiles | None = None) -> Iterator[InputPiece]:
    """The input, a row group at a time: the `live` files of a table, or a file, a folder, a glob or a URL.

    Raises InputError if it cannot be read, UsageError if it takes in a part of a table.
    """
    filesystem, root = fsspec.core.url_to_fs(path)
    with asked("list", path):
        if live is not None:
            live.refuse_columns((source, target))
            names = list(live.paths)
        elif filesystem.isdir(root):
            listed = filesystem.find(root)
            names = [name for name in listed if _is_part(name[len(root) :])]
            refuse_parts_of_tables(path, filesystem, names, listed)
        else:
            names = filesystem.glob(root)
            refuse_parts_under(path, filesystem, root, names)
    if not names:
        raise InputError(f"{path}: no Parquet file is there")
    for name in sorted(names):
        try:
            with asked("read", path), filesystem.open(name, "rb") as stream:
                file = pq.ParquetFile(stream, metadata=read_footer(stream), page_checksum_verification=True)
                if live is not None:
                    live.refuse_file(name, file.schema_arrow, (source, target))
                for group in range(file.num_row_groups):
                    yield _input_piece(file, group, f"{name}, row group {group}", source, target)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{name}: cannot be read as Parquet: {error}") from error


def _input_piece(file: pq.ParquetFile, group: int, place: str, source: str, target: str) -> InputPiece:
    missing = {source, target} - set(file.schema_arrow.names)
    if missing:
        raise InputError(f"{place}: no column {sorted(missing)[0]!r}")
    table = file.read_row_group(group, columns=[source, target])
    types = {table[source].type, table[target].type}
    whole = table.drop_null()
    return InputPiece(place, whole[source], whole[target], types, table.num_rows - whole.num_rows)


def _is_part(name: str) -> bool:
    return name.endswith(".parquet") and not any(part.startswith((".", "_")) for part in name.split("/"))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _bounds(converged: bool) -> list[str]:
    return ["lambda"] if converged else ["lambda_low", "lambda_high"]


def listed(manifest: dict[str, Any], table: str) -> list[str]:
    """The files of a table, in the order of their names. Raises Flaw if there is none."""
    names = sorted(entry["path"] for entry in manifest["outputs"])
    own = [name for name in names if PurePosixPath(name).parent.name == table]
    if not own:
        raise Flaw(f"{table}: no file")
    return own


def read_table(
    out: Place,
    manifest: dict[str, Any],
    table_name: str,
    ids: list[str],
    numbers: dict[str, pa.DataType],
    nulls: Sequence[str] = (),
    first: str | None = None,
) -> pa.Table:
    """All rows of a table of the result, checked for columns (`first` before those of ids), types and nulls, which only
    the columns `nulls` may have. Raises Flaw.
    """
    tables: list[pa.Table] = []
    columns = [*([first] if first else []), *ids, *(name for name in numbers if name != first)]
    for name in listed(manifest, table_name):
        try:
            path = out.path(name)
            files = None if out.is_local else out.files
            with asked("read", str(out)):
                table = pq.read_table(path, filesystem=files, partitioning=None, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise Flaw(f"{name} cannot be read: {error}") from error
        if table.schema.names != columns:
            raise Flaw(f"{name} has columns {table.schema.names}, not {columns}")
        for column in ids:
            if not (pa.types.is_integer(table[column].type) or _is_string(table[column].type)):
                raise Flaw(f"{name}: {column} is {table[column].type}, neither integers nor strings")
        for column, kind in numbers.items():
            if table[column].type != kind:
                raise Flaw(f"{name}: {column} is {table[column].type}, not {kind}")
        for column in table.schema.names:
            if table[column].null_count and column not in nulls:
                raise Flaw(f"{name}: {column} has {table[column].null_count} nulls")
        if tables and table.schema.types != tables[0].schema.types:
            raise Flaw(f"{name} has other types than the first file: {table.schema.types}")
        tables.append(table)
    return pa.concat_tables(tables)


def plain(column: Any) -> Any:
    """A column of ids as one Arrow array of int64 or large_string. Raises InputError for any other kind of value."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        kind = pa.int64()
    elif _is_string(kind):
        kind = pa.large_string()
    elif not pa.types.is_null(kind):
        raise InputError(f"ids of type {kind} are neither integers nor strings")
    try:
        cast = column.cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(f"ids do not fit int64: {error}") from error
    if isinstance(cast, pa.Array):
        return cast
    return pa.concat_arrays(cast.chunks) if cast.num_chunks else pa.array([], kind)
