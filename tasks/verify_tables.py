"""Reading a result for checking. Shares no code with ingest or publish."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .errors import InputError, UsageError
from .inputs.columns import is_uuid
from .places import Place
from .sealed_json import is_whole
from .spelling import spelled
from .stores import asked
from .tables.finding import table_at
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
    """Arrow array of int64, uint64, large_string or large_binary."""
    id_type: pa.DataType
    """The ids' type in the files."""
    degree: Int
    triangles: Int
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    component: Int | None
    """-1 for none; None in a result without dense groups."""
    added: Mapping[str, Any] = field(default_factory=dict)
    """Arrow columns of programs, by name."""

    def name(self, position: int) -> str:
        """The id at that position, for a message."""
        return repr(spelled(self.ids[position].as_py()))


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
    added = [name for program in manifest.get("programs", []) for name in program["columns"]]
    table = read_table(out, manifest, "vertices", ["id"], numbers, nulls=("component",), last=added)
    vertices = VertexTable(
        ids=plain(table["id"]),
        id_type=table["id"].type,
        degree=table["degree"].to_numpy(),
        triangles=table["triangles"].to_numpy(),
        low=table[bounds[0]].to_numpy(),
        high=table[bounds[-1]].to_numpy(),
        component=table["component"].fill_null(-1).to_numpy() if dense else None,
        added={name: table[name] for name in added},
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
    if pa.types.is_integer(values.type) and pa.types.is_integer(ids.type):
        values = values.cast(ids.type, safe=False) if _fits(values, ids.type) else values
    if values.type != ids.type:
        return np.full(len(values), -1)
    found = pc.index_in(values, value_set=ids)
    answer: Int = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return answer


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


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _fits(values: Any, kind: pa.DataType) -> bool:
    """Whether all integers are of a type. Raises InputError for those above those of signed types."""
    try:
        values.cast(kind)
    except pa.ArrowInvalid as error:
        if pa.types.is_uint64(kind):
            return False  # negative ones are not there
        raise InputError(f"ids do not fit {kind}: {error}") from error
    return True


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
    last: Sequence[str] = (),
) -> pa.Table:
    """All rows of a table of the result, checked for columns (`first` before those of ids, `last`, of any type, after
    all), types and nulls, which only the columns `nulls` may have. Raises Flaw.
    """
    tables: list[pa.Table] = []
    columns = [*([first] if first else []), *ids, *(name for name in numbers if name != first), *last]
    for name in listed(manifest, table_name):
        try:
            path = out.path(name)
            files = None if out.is_local else out.files
            with asked("read", str(out)):
                table = pq.read_table(
                    path,
                    filesystem=files,
                    partitioning=None,
                    page_checksum_verification=True,
                    arrow_extensions_enabled=True,
                )
        except (pa.ArrowException, OSError) as error:
            raise Flaw(f"{name} cannot be read: {error}") from error
        if table.schema.names != columns:
            raise Flaw(f"{name} has columns {table.schema.names}, not {columns}")
        for column in ids:
            kind = table[column].type
            if not (pa.types.is_integer(kind) or _is_string(kind) or is_uuid(kind)):
                raise Flaw(f"{name}: {column} is {kind}, neither integers, strings nor UUIDs")
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
    """A column of ids as one Arrow array of int64, uint64, large_string or large_binary.

    Raises InputError for any other kind of value.
    """
    if isinstance(column.type, pa.BaseExtensionType) and is_uuid(column.type):
        column = column.cast(column.type.storage_type)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        kind = pa.uint64() if pa.types.is_uint64(kind) else pa.int64()
    elif _is_string(kind):
        kind = pa.large_string()
    elif is_uuid(kind) or pa.types.is_large_binary(kind):
        kind = pa.large_binary()
    elif not pa.types.is_null(kind):
        raise InputError(f"ids of type {kind} are neither integers, strings nor UUIDs")
    cast = column.cast(kind)
    if isinstance(cast, pa.Array):
        return cast
    return pa.concat_arrays(cast.chunks) if cast.num_chunks else pa.array([], kind)
