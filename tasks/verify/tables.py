"""The manifest, files, and tables of edges, vertices and attributes of a result.

Shares no code with ingest or publish.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..errors import InputError
from ..ids.display import display_id
from ..publish.result_columns import edge_columns
from ..storage.checksums import is_intact, json_object
from ..storage.folders import Folder
from ..storage.own_files import NOT_A_FILE, plain_path
from .reading import Flaw, Int, id_array, positions, read_file, read_table, reject, table_files

_TEXTS, _SHARES = [str], dict.fromkeys(("median", "mean", "exact", "below"), float)
_TRACKS = dict.fromkeys(("next", "continued", "again", "new"), int)
_LAMBDA = {"max": int, "sum": int, "histogram": [[int]], "vertices?": [[int]]}
_KEYS: Any = {
    "input": {
        **dict.fromkeys(("source_column", "target_column", "id_type"), str),
        "table?": {"format": str, "location": str, "version": int},
        "vertices?": {"columns": _TEXTS, "label?": str, "rows": int, "unknown": int, "missing": int},
        "layout?": {"format": str, "delimiter": str, "header": bool, "comment": str, "types": [[str]]},
        "where?": {"condition": str, "types": {}},
        "weights?": {"column": str, "repeats": str},
        **{"format?": str, "bipartite?": str, "two_sided?": bool},
    },
    "counts": {
        **dict.fromkeys(("rows", "self_loops", "duplicates", "nulls_dropped", "edges", "vertices"), int),
        "triangles?": int,
        "butterflies?": int,
        "filtered?": int,
    },
    "converged": bool,
    "partitions": [dict.fromkeys(("partition", "owned", "inner", "cut"), int)],
    "outputs": [{"path": str, "rows": int, "bytes": int, "sha256": str}],
    "lambda?": _LAMBDA,
    "lambda_high?": _LAMBDA,
    "bounding?": {"estimates?": {"column": str, "error?": _SHARES}, "shards?": {}},
    "programs?": [
        {
            **{"name": str, "columns": _TEXTS, "edge_columns?": _TEXTS, "parameters": {}, "facts?": {}},
            **{"supersteps": int, "converged": bool, "tracks?": _TRACKS},
        }
    ],
    "dense?": {},
    "tracks?": _TRACKS,
}
"""Keys of the manifest that the checks use, and their types. With ? a key may be absent or null."""


@dataclass(frozen=True)
class EdgeTable:
    """All rows of edges/*.parquet in file order. Ends are positions in the vertex table."""

    source: Int
    target: Int
    support: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    """λ is in [low, high]. Both are one array if the run converged."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """All Arrow columns but the ends, by name."""


@dataclass(frozen=True)
class VertexTable:
    """All rows of vertices/*.parquet in file order."""

    ids: Any
    """Arrow array of int64, uint64, large_string or large_binary."""
    id_type: pa.DataType
    """The type of ids in the files."""
    degree: Int
    triangles: Int
    """Butterflies in a graph with two sides."""
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    """`triangles`, `low` and `high` are empty in a result without λ."""
    component: Int | None
    """-1 for vertices in no component; None in a result without dense groups."""
    added: Mapping[str, Any] = field(default_factory=dict)
    """Arrow columns of vertex programs, by name."""
    side: Any = None
    """Arrow column of text; None unless the graph has two sides."""

    def name(self, position: int) -> str:
        """The id at a position, for a message."""
        return repr(display_id(self.ids[position].as_py()))


def edge_at(edges: EdgeTable, vertices: VertexTable, at: int) -> str:
    """The edge at a position, for a message."""
    return f"edge ({vertices.name(edges.source[at])}, {vertices.name(edges.target[at])})"


def is_two_sided(manifest: dict[str, Any]) -> bool:
    """Whether every edge joins two sides, and λ counts butterflies."""
    return manifest["input"].get("two_sided") is True


def measure_of(manifest: dict[str, Any]) -> str:
    """What λ counts."""
    return "butterflies" if is_two_sided(manifest) else "triangles"


def counted(values: NDArray[np.int32]) -> list[list[int]]:
    """Pairs of a value and its number, ascending, as the manifest has them."""
    found: list[list[int]] = np.stack(np.unique(values, return_counts=True), axis=1).tolist()
    return found


def read_manifest(out: Folder) -> dict[str, Any]:
    """The parsed manifest.json. Raises Flaw if it is missing, changed, or lacks keys that the checks use."""
    path = f"{out}/manifest.json"
    try:
        content = out.read("manifest.json")
    except OSError as error:
        if error.errno not in NOT_A_FILE:
            raise
        raise Flaw(f"{path} is a link, a pipe or a device, and not a file") from error
    if content is None:
        raise Flaw(f"{path} is not there, so this is not a complete result")
    try:
        if not is_intact(content):
            raise Flaw(f"{path} has changed: it is not what edgemill wrote")
        manifest = json_object(content)
        manifest["lambda"]  # null in a run without λ, and never absent
        _check_types(manifest, _KEYS, "")
        for entry in manifest["outputs"]:
            plain_path(entry["path"])
    except (ValueError, KeyError, TypeError) as error:
        raise Flaw(f"{path} cannot be read: {type(error).__name__} {error}") from error
    return manifest


def refuse_replaced(out: Folder, manifest: dict[str, Any]) -> None:
    """Raises InputError if the manifest is another one now, so that a flaw may be of rows of two results."""
    try:
        if read_manifest(out) == manifest:
            return
    except Flaw:
        pass
    raise InputError(f"{out} changed during the run: another run replaced the result, or it was removed; run again")


def _check_types(value: Any, wanted: Any, key: str) -> None:
    """Raises KeyError for a key that is missing, TypeError for a value of another type, with its name."""
    if isinstance(wanted, type):
        ok = isinstance(value, int | float) if wanted is float else isinstance(value, wanted)
        if not ok or (isinstance(value, bool) and wanted is not bool):
            raise TypeError(key)
    elif not isinstance(value, type(wanted)):
        raise TypeError(key)
    elif isinstance(wanted, list):
        for at, inner in enumerate(value):
            _check_types(inner, wanted[0], f"{key}.{at}")
    else:
        for name, inner in wanted.items():
            own = name.rstrip("?")
            if own != name and value.get(own) is None:
                continue
            _check_types(value[own], inner, f"{key}.{own}".lstrip("."))


def check_files(out: Folder, outputs: list[dict[str, Any]]) -> None:
    """Compare the Parquet files in `out` with the manifest: names, bytes, SHA-256, rows. Raises Flaw.

    An object store can have files of other runs too, in other folders.
    """
    listed = {entry["path"]: entry for entry in outputs}
    files, root = out.files, out.path().rstrip("/") + "/"
    own = "" if out.is_local else next(iter(listed), "").partition("/")[0]
    size_of = {str(path).removeprefix(root): info["size"] for path, info in files.find(root + own, detail=True).items()}
    present = {name for name in size_of if name.endswith(".parquet")}
    for name in sorted(present ^ listed.keys()):
        raise Flaw(f"{name} is not in the manifest" if name in present else f"{name} is missing")
    for name, entry in sorted(listed.items()):
        if out.is_local and os.path.realpath(root + name) != os.path.join(os.path.realpath(root), name):
            raise Flaw(f"{name} is a symbolic link, or in one")
        if size_of[name] != entry["bytes"]:
            raise Flaw(f"{name} has {size_of[name]} bytes; the manifest says {entry['bytes']}")
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


def read_vertices(out: Folder, manifest: dict[str, Any]) -> VertexTable:
    """The vertex table. Raises Flaw unless columns and types are as documented and the ids ascend."""
    bounds = _bounds(manifest)
    numbers = {"degree": pa.int64()}
    if bounds:
        numbers |= {measure_of(manifest): pa.int64(), **dict.fromkeys(bounds, pa.int32())}
    dense = manifest.get("dense") is not None
    if dense:
        numbers["component"] = pa.int64()
    added = [name for program in manifest.get("programs", []) for name in program["columns"]]
    ids = ["id", *(["side"] if is_two_sided(manifest) else [])]
    table = read_table(out, manifest, "vertices", ids, numbers, nulls=("component", *added), last=added)
    vertices = VertexTable(
        ids=id_array(table["id"]),
        id_type=table["id"].type,
        degree=table["degree"].to_numpy(),
        triangles=table[measure_of(manifest)].to_numpy() if bounds else np.zeros(0, np.int64),
        low=table[bounds[0]].to_numpy() if bounds else np.zeros(0, np.int32),
        high=table[bounds[-1]].to_numpy() if bounds else np.zeros(0, np.int32),
        component=table["component"].fill_null(-1).to_numpy() if dense else None,
        added={name: table[name] for name in added},
        side=table["side"] if is_two_sided(manifest) else None,
    )
    behind = pc.greater_equal(vertices.ids[:-1], vertices.ids[1:]).to_numpy(zero_copy_only=False)
    if behind.any():
        at = int(behind.argmax())
        raise Flaw(f"vertices do not ascend: {vertices.name(at)} is followed by {vertices.name(at + 1)}")
    return vertices


def read_edges(out: Folder, source: str, target: str, vertices: VertexTable, manifest: dict[str, Any]) -> EdgeTable:
    """The edge table. Raises Flaw unless columns and types are as documented and all ends are in the vertex table."""
    bounds = _bounds(manifest)
    numbers = {own.name: pa.type_for_alias(own.type) for own in edge_columns(len(bounds) == 1)}
    estimate = (manifest.get("bounding") or {}).get("estimates")
    of_programs = [name for program in manifest.get("programs", []) for name in program.get("edge_columns", [])]
    added = [*([] if estimate is None else [estimate["column"]]), *of_programs]
    table = read_table(out, manifest, "edges", [source, target], numbers, nulls=of_programs, last=added)
    for column in (source, target):
        if table[column].type != vertices.id_type:
            raise Flaw(f"edges: {column} is {table[column].type}, but the vertices' id is {vertices.id_type}")
    ends = [positions(table[column], vertices.ids) for column in (source, target)]
    for column, end in zip((source, target), ends, strict=True):
        if (end < 0).any():
            row = int((end < 0).argmax())
            raise Flaw(f"edges: {column} {table[column][row].as_py()!r} in row {row} is not in the vertex table")
    low = table[bounds[0]].to_numpy()
    high = low if len(bounds) == 1 else table[bounds[1]].to_numpy()
    values = {name: table[name] for name in (*numbers, *added)}
    return EdgeTable(ends[0], ends[1], table["support"].to_numpy(), low, high, values)


def _bounds(manifest: dict[str, Any]) -> list[str]:
    """The columns of λ."""
    if manifest["lambda"] is None:
        return []
    return ["lambda"] if manifest.get("lambda_high") is None else ["lambda_low", "lambda_high"]


def check_sides(manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    """Check that each id begins with its side, and that each edge leads from the first to the second. Raises Flaw."""
    first, second = manifest["input"]["source_column"], manifest["input"]["target_column"]
    sides = vertices.side.combine_chunks()
    whose = [pc.starts_with(vertices.ids, f"{side}:").to_numpy(zero_copy_only=False) for side in (first, second)]
    stored = [pc.equal(sides, side).to_numpy(zero_copy_only=False) for side in (first, second)]
    wrong = (whose[0] != stored[0]) | (whose[1] != stored[1]) | (whose[0] == whose[1])
    reject(wrong, lambda at: f"vertex {vertices.name(at)}: side says {sides[at].as_py()!r}")
    reject(
        ~(whose[0][edges.source] & whose[1][edges.target]),
        lambda at: f"{edge_at(edges, vertices, at)} does not lead from {first!r} to {second!r}",
    )
    return f"{int(whose[0].sum()):,} of {first}, {int(whose[1].sum()):,} of {second}", True


def check_attributes(out: Folder, manifest: dict[str, Any], vertices: VertexTable) -> tuple[str, bool]:
    """Check that the table has one row per vertex, in the same order, and the columns in the manifest. Raises Flaw."""
    record, done = manifest["input"]["vertices"], 0
    columns = ["id", *record["columns"]]
    if record["label"] is not None and record["label"] not in record["columns"]:
        raise Flaw(f"the manifest's label {record['label']!r} is none of the attributes {record['columns']}")
    for name in table_files(manifest, "attributes"):
        table = read_file(out, name, columns)
        if table["id"].type != vertices.id_type:
            raise Flaw(f"{name}: id is {table['id'].type}, but the vertices' id is {vertices.id_type}")
        ids, own = id_array(table["id"]), vertices.ids[done : done + len(table)]
        if len(own) < len(ids):
            raise Flaw(f"{name} has more rows than there are vertices")
        other = pc.fill_null(pc.not_equal(ids, own), True)
        if pc.any(other).as_py():
            at = pc.index(other, True).as_py()
            raise Flaw(f"{name}: row {at} has the id {ids[at].as_py()!r}, not {vertices.name(done + at)}")
        done += len(table)
    if done != len(vertices.ids):
        raise Flaw(f"attributes: {done} rows, but there are {len(vertices.ids)} vertices")
    stored = record["rows"] - record["unknown"]
    if stored != done - record["missing"]:
        raise Flaw(f"the manifest says that {stored} rows are of vertices, and that {record['missing']} have none")
    return f"a row for each vertex: {', '.join(record['columns'])}", True
