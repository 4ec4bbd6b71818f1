"""Checks of the table of vertex attributes."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from ..storage.folders import Folder
from .reading import Flaw, id_array, read_file, table_files
from .tables import VertexTable


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
