"""Delta and Iceberg tables, written by the usual packages, and changed as other writers would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record

Edge = tuple[Any, Any]

FIRST = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (1, 4)]
"""Edges of the complete graph on four vertices."""
SECOND = [(11, 12), (12, 13), (11, 13), (13, 14)]
"""Edges of a triangle with a tail."""


VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 1,
}
"""A deletion vector of one row, as the content of a file."""


def rows(edges: Iterable[Edge], **columns: list[Any]) -> pa.Table:
    """Edges as a table with the columns src, dst and others."""
    source, target = zip(*edges, strict=True)
    return pa.table({"src": list(source), "dst": list(target)} | columns)


def delta(folder: Path, *versions: Iterable[Edge] | pa.Table, **options: Any) -> Path:
    """A Delta table that is overwritten with each of the versions in turn."""
    for version in versions:
        table = version if isinstance(version, pa.Table) else rows(version)
        write_deltalake(str(folder), table, mode="overwrite", **options)
    return folder


def change_log(folder: Path, change: Callable[[dict[str, Any]], None], commit: int = 0) -> None:
    """Change each action of a commit of a Delta table, in place."""
    path = folder / "_delta_log" / f"{commit:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("\n".join(map(json.dumps, actions)))


def with_features(folder: Path, *names: str, **configuration: str) -> Path:
    """A Delta table that requires readers to support these features."""

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            features = {"readerFeatures": list(names), "writerFeatures": list(names)}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7} | features
        if "metaData" in action:
            action["metaData"]["configuration"] = {name.replace("_", "."): to for name, to in configuration.items()}

    change_log(folder, change)
    return folder


def with_deletion_vector(folder: Path) -> Path:
    """A Delta table with one row deleted by a deletion vector, Spark's default."""

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = VECTOR

    with_features(folder, "deletionVectors", delta_enableDeletionVectors="true")
    change_log(folder, change)
    return folder


def iceberg(folder: Path, *versions: Iterable[Edge] | pa.Table, **options: Any) -> Table:
    """An Iceberg table that is overwritten with each of the versions in turn."""
    catalog = SqlCatalog("lake", uri="sqlite:///:memory:", warehouse=f"file://{folder.parent}")
    catalog.create_namespace("of")
    tables = [version if isinstance(version, pa.Table) else rows(version) for version in versions]
    table = catalog.create_table("of.edges", tables[0].schema, location=f"file://{folder}", **options)
    table.append(tables[0])
    for version in tables[1:]:
        table.overwrite(version)
    return table


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES


def add_deletes(table: Table, content: DataFileContent, file_format: FileFormat = FileFormat.PARQUET) -> None:
    """Add a snapshot with a delete file for the rows of the previous one, as Spark's merge-on-read does."""
    old, folder, snapshot = table.current_snapshot(), Path(table.location().removeprefix("file://")), 4711
    assert old is not None
    number = (old.sequence_number or 0) + 1
    deletes = DataFile.from_args(
        content=content,
        file_path=f"file://{folder}/data/deletes.{file_format.name.lower()}",
        file_format=file_format,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=100,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
    )
    deletes.spec_id = 0
    manifest = table.io.new_output(f"file://{folder}/metadata/deletes.avro")
    with _DeletesWriter(table.spec(), table.schema(), manifest, snapshot, "null") as writer:
        writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, sequence_number=number, data_file=deletes))
    listed = table.io.new_output(f"file://{folder}/metadata/snap-{snapshot}.avro")
    with write_manifest_list(2, listed, snapshot, old.snapshot_id, number, "null") as manifests:
        manifests.add_manifests([*old.manifests(table.io), writer.to_manifest_file()])
    described = json.loads(metadata_of(table).read_text())
    added = described["snapshots"][-1] | {
        "snapshot-id": snapshot,
        "parent-snapshot-id": old.snapshot_id,
        "sequence-number": number,
        "manifest-list": listed.location,
    }
    described |= {"current-snapshot-id": snapshot, "last-sequence-number": number, "refs": {}}
    described["snapshots"].append(added)
    (folder / "metadata/00099-deletes.metadata.json").write_text(json.dumps(described))


def metadata_of(table: Table) -> Path:
    """The current metadata file."""
    return Path(table.metadata_location.removeprefix("file://"))
