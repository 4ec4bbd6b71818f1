"""Checks of the table of attributes of vertices."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .places import Place
from .stores import asked
from .verify_tables import Flaw, VertexTable, listed, plain

__all__ = ["check_attributes"]


def check_attributes(out: Place, manifest: dict[str, Any], vertices: VertexTable) -> tuple[str, bool]:
    """Check that the table has a row for each vertex, in the same order, and the columns that the manifest says.

    Raises Flaw.
    """
    record, done = manifest["input"]["vertices"], 0
    wanted = ["id", *record["columns"]]
    if record["label"] is not None and record["label"] not in record["columns"]:
        raise Flaw(f"the manifest's label {record['label']!r} is none of the attributes {record['columns']}")
    for name in listed(manifest, "attributes"):
        try:
            files = None if out.is_local else out.files
            with asked("read", str(out)):
                table = pq.read_table(
                    out.path(name), filesystem=files, partitioning=None, page_checksum_verification=True
                )
        except (pa.ArrowException, OSError) as error:
            raise Flaw(f"{name} cannot be read: {error}") from error
        if table.schema.names != wanted:
            raise Flaw(f"{name} has columns {table.schema.names}, not {wanted}")
        if table["id"].type != vertices.id_type:
            raise Flaw(f"{name}: id is {table['id'].type}, but the vertices' id is {vertices.id_type}")
        ids, own = plain(table["id"]), vertices.ids[done : done + len(table)]
        if len(own) < len(ids):
            raise Flaw(f"{name} has more rows than there are vertices")
        other = pc.fill_null(pc.not_equal(ids, own), True)
        if pc.any(other).as_py():
            at = pc.index(other, True).as_py()
            raise Flaw(f"{name}: row {at} has the id {ids[at].as_py()!r}, not {vertices.name(done + at)}")
        done += len(table)
    if done != len(vertices.ids):
        raise Flaw(f"attributes: {done} rows, but there are {len(vertices.ids)} vertices")
    given = record["rows"] - record["unknown"]
    if given != done - record["missing"]:
        raise Flaw(f"the manifest says that {given} rows are of vertices, and that {record['missing']} have none")
    return f"a row for each vertex: {', '.join(record['columns'])}", True
