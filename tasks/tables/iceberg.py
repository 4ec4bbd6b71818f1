"""The live files of an Iceberg table, which the package pyiceberg reads from its metadata.

The current metadata file is found without a catalog.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

from fsspec.implementations.local import LocalFileSystem

from ..errors import EdgemillError, InputAbsent, InputError, UsageError
from ..storage.passwords import without_passwords
from ..storage.stores import store_errors
from .live import ColumnInFiles, LiveFiles, TableVersion, path_of

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

METADATA = re.compile(r"[^/]+\.metadata\.json(\.gz)?")
"""Names of metadata files."""

_HINT = "version-hint.text"
_NUMBERED = re.compile(r"(v?)(\d+)(?:-[^/]*?)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
"""v3.metadata.json in a table without a catalog, 00003-UUID.metadata.json in one with a catalog."""


def current_metadata(filesystem: Any, folder: str) -> str:
    """The newest metadata file. Raises UsageError if it is ambiguous."""
    inner = f"{folder.rstrip('/')}/metadata"
    names = [str(name).rpartition("/")[2] for name in filesystem.ls(inner, detail=False)]
    hint = filesystem.cat_file(f"{inner}/{_HINT}").decode("utf-8", "replace").strip() if _HINT in names else None
    try:
        return f"{inner}/{newest_metadata(names, hint)}"
    except ValueError as error:
        raise UsageError(
            f"the current metadata file of the Iceberg table {folder} is ambiguous: {error}; "
            "find it in the table's catalog, and use this file as the input"
        ) from error


def newest_metadata(names: list[str], hint: str | None = None) -> str:
    """The newest metadata file among the names in a folder `metadata`; `hint` is the content of version-hint.text.

    A writer that lost a race leaves a file with the same number as the winner. Only the catalog, or a hint that is a
    name, tells which one counts; a hint that is a number may be outdated. Raises ValueError if it is ambiguous.
    """
    files = sorted(name for name in names if METADATA.fullmatch(name))
    numbered = {name: match for name in files if (match := _NUMBERED.fullmatch(name))}
    if len(files) == 1:
        return files[0]
    if len(numbered) < len(files) or len({match[1] for match in numbered.values()}) > 1:
        raise ValueError(f"its files are numbered in different ways: {', '.join(files[-4:])}")
    newest = max(int(match[2]) for match in numbered.values())
    candidates = [name for name, match in numbered.items() if int(match[2]) == newest]
    hinted = [name for name in files if hint in (name, name.removesuffix(".metadata.json"))]
    if hinted and hinted[0] not in candidates:
        raise ValueError(f"{_HINT} names {hinted[0]}, and {candidates[0]} is newer")
    if len(candidates) > 1 and not hinted:
        raise ValueError(f"{' and '.join(candidates)} have the same number")
    return (hinted or candidates)[0]


_READERS = 16
"""Manifests that are read in parallel."""


def iceberg_files(filesystem: Any, folder: str, metadata: str | None, version: int | None) -> LiveFiles:
    """The files of the Iceberg table in `folder` at the snapshot `version`, or at the current one if it is None.

    `metadata` is the metadata file to use, or None for the newest. All is read through `filesystem`, with the same
    access as the files. Raises UsageError if pyiceberg is not installed, the snapshot does not exist or the newest
    metadata file is ambiguous; InputError if the files have deleted rows or the metadata are damaged; InputAbsent if
    the table has no file.
    """
    location = without_passwords(path_of(filesystem, folder))
    try:
        import pyiceberg
        from pyiceberg.serializers import FromInputFile

        from .iceberg_io import TableIO
    except ImportError as error:
        raise UsageError(
            f"input {location} is an Iceberg table (it has metadata/*.metadata.json), which needs another package: "
            "pip install 'edgemill[iceberg]'"
        ) from error
    io = TableIO(filesystem, location)
    try:
        with store_errors("read", location):
            metadata = metadata or current_metadata(filesystem, folder)
            described = FromInputFile.table_metadata(io.new_input(path_of(filesystem, metadata)))
            snapshot = _snapshot(described, location, version)
            table = TableVersion("iceberg", location, snapshot.snapshot_id)
            live = _live(io, snapshot)
            columns = _columns(described, snapshot, version)
    except EdgemillError:
        raise
    except Exception as error:  # damaged metadata raises errors of any type
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(
            f"the Iceberg table {location} cannot be read by pyiceberg {pyiceberg.__version__}: {reason}"
        ) from error
    for file in live:
        _refuse_unless_whole(table, file)
    if not live:
        raise InputAbsent(f"{table} has no file, so no rows")
    paths = {_source_path(filesystem, io.own(file.file_path)) for file in live}
    return LiveFiles(table, tuple(sorted(paths)), columns)


def _snapshot(described: TableMetadata, location: str, version: int | None) -> Snapshot:
    snapshot_id = described.current_snapshot_id if version is None else version
    snapshot = None if snapshot_id is None else described.snapshot_by_id(snapshot_id)
    if snapshot is not None:
        return snapshot
    if version is None:
        raise InputAbsent(f"the Iceberg table {location} has no snapshot yet, so no rows")
    known = ", ".join(str(one.snapshot_id) for one in described.snapshots[-5:]) or "none"
    raise UsageError(
        f"the Iceberg table {location} has no snapshot {version} (input.table_version); its newest are {known}"
    )


def _live(io: FileIO, snapshot: Snapshot) -> list[DataFile]:
    """Data files and delete files of a snapshot."""

    def entries(manifest: ManifestFile) -> list[DataFile]:
        return [entry.data_file for entry in manifest.fetch_manifest_entry(io)]

    manifests = snapshot.manifests(io)
    with ThreadPoolExecutor(min(_READERS, len(manifests) or 1)) as readers:
        return list(chain.from_iterable(readers.map(entries, manifests)))


def _columns(described: TableMetadata, snapshot: Snapshot, version: int | None) -> dict[str, ColumnInFiles]:
    schema = described.schema()
    if version is not None and snapshot.schema_id is not None:  # an old snapshot has its own columns
        schema = next((one for one in described.schemas if one.schema_id == snapshot.schema_id), schema)
    mapping = described.name_mapping()
    names = {} if mapping is None else {field.field_id: frozenset(field.names) for field in mapping.root}
    return {
        field.name: ColumnInFiles(field_id=field.field_id, other_names=names.get(field.field_id, frozenset()))
        for field in schema.fields
    }


def _refuse_unless_whole(table: TableVersion, file: DataFile) -> None:
    from pyiceberg.manifest import DataFileContent, FileFormat

    kinds = {DataFileContent.POSITION_DELETES: "position deletes", DataFileContent.EQUALITY_DELETES: "equality deletes"}
    if file.content in kinds:
        raise InputError(
            f"{table} has {kinds[file.content]} ({file.file_path}), so its files still have deleted rows: "
            "write them again without these (rewrite_data_files, then rewrite_position_delete_files)"
        )
    if file.file_format != FileFormat.PARQUET:
        raise InputError(f"{table} has files that are not Parquet: {file.file_path}; rewrite them as Parquet")
    if file.key_metadata is not None:
        raise InputError(f"{table} has encrypted files: {file.file_path}; edgemill does not read them")


def _source_path(filesystem: Any, path: str) -> str:
    """The path or URL of a file for an input, from its path in the table's metadata."""
    return str(filesystem._strip_protocol(path)) if isinstance(filesystem, LocalFileSystem) else path
