"""The check of dense groups finds and names a wrong value in any column of their tables."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import Result
from edgemill.tasks.storage.checksums import with_checksum_key
from edgemill.tasks.verify.result import verify


def replaced(out: Path, table: str, column: str) -> None:
    """Change a value in one row of the table's largest file, with matching checksums."""
    path = max((out / table).iterdir(), key=lambda path: pq.read_metadata(path).num_rows)
    rows = pq.read_table(path)
    values = rows[column].to_numpy().copy()
    at = int(np.flatnonzero(~np.isnan(values))[-1])
    values[at] += 1
    kind = rows.schema.field(column).type
    changed = pa.array([None if value != value else value for value in values.tolist()]).cast(kind)
    pq.write_table(rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), changed), path)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest.pop("sha256", None)
    for entry in manifest["outputs"]:
        if entry["path"] == f"{table}/{path.name}":
            entry |= {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (out / "manifest.json").write_bytes(with_checksum_key(json.dumps(manifest)))


def test_a_correct_result(facebook: Result) -> None:
    report = verify(facebook.path)
    assert report.ok
    assert [check.detail for check in report.checks if check.name == "groups"] == [
        "181 components, 7 DN-graphs computed again"
    ]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("hierarchy", "parent"),
        ("dn_graphs", "lambda"),
        ("dn_graphs", "triangles"),
        ("dn_graph_members", "dn_graph"),
        ("vertices", "component"),
        *(
            pytest.param(table, column, marks=pytest.mark.slow)
            for table, columns in (
                ("hierarchy", ("component", "k", "vertices", "edges")),
                ("dn_graphs", ("id", "vertices", "edges", "density", "parent", "track")),
                ("dn_graph_members", ("vertex",)),
            )
            for column in columns
        ),
    ],
)
def test_a_wrong_value(facebook: Result, tmp_path: Path, table: str, column: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(facebook.path, out)
    replaced(out, table, column)
    assert [check.name for check in verify(out).checks if not check.ok] == ["groups"]
