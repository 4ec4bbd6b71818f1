"""The live files of a Delta table, which the package deltalake reads from its log."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import InputAbsent, InputError, UsageError
from ..storage.passwords import without_passwords
from ..storage.stores import store_errors
from .delta_log import file_with_deletion_vector, log_files, sidecars
from .live import Column, LiveFiles, Table, path_of

if TYPE_CHECKING:
    from deltalake import DeltaTable


_SUPPORTED = {
    "columnMapping",  # refused if it is used
    "deletionVectors",  # refused if a file has one
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
}
"""Table features with which the live files alone have the rows, for columns of integers and strings."""

_LOG = "_delta_log"
_SIDECARS = "_sidecars"


def delta_files(filesystem: Any, folder: str, version: int | None) -> LiveFiles:
    """The files of the Delta table in `folder` at a version, or at the current one if it is None.

    The log is read through `filesystem`, with the same access as the files. Raises UsageError if deltalake is not
    installed or the version does not exist; InputError if the files have deleted rows or the log is damaged;
    InputAbsent if the table has no file.
    """
    location = without_passwords(path_of(filesystem, folder))
    try:
        import deltalake
    except ImportError as error:
        raise UsageError(
            f"input {location} is a Delta table (it has {_LOG}), which needs another package: "
            "pip install 'edgemill[delta]'"
        ) from error
    with TemporaryDirectory(prefix="edgemill-") as copied:
        version, log = _copy_log(filesystem, folder, location, version, Path(copied))
        try:
            opened = deltalake.DeltaTable(copied, version=version)
            found = Table("delta", location, version)
            _refuse_features(found, opened)
            paths = pa.table(opened.get_add_actions()).column("path").to_pylist()
            if "deletionVectors" in (opened.protocol().reader_features or []):
                _refuse_deletion_vectors(found, log, paths)
            partitions = set(opened.metadata().partition_columns)
            names = [field.name for field in opened.schema().fields]
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0].replace(copied, location)
            raise InputError(
                f"the log of the Delta table {location}, version {version}, cannot be read by deltalake "
                f"{deltalake.__version__}: {reason}"
            ) from error
    if not paths:
        raise InputAbsent(f"{found} has no file, so no rows")
    return LiveFiles(
        found,
        tuple(sorted(path_of(filesystem, _within(found, folder, path)) for path in paths)),
        {name: Column(in_files=name not in partitions) for name in names},
    )


def _copy_log(filesystem: Any, folder: str, location: str, version: int | None, to: Path) -> tuple[int, list[Path]]:
    """Copy files of the log that the version needs to a local folder. Returns the version, and the copies in order."""
    log = f"{folder.rstrip('/')}/{_LOG}"
    try:
        with store_errors("read", location):
            names = [str(name).rstrip("/").rpartition("/")[2] for name in filesystem.ls(log, detail=False)]
            try:
                version, needed = log_files(names, version)
            except ValueError as error:
                unknown = "" if version is None else f" has no version {version} (input.table_version) to read"
                raise UsageError(f"the Delta table {location}{unknown}: {error}") from error
            (to / _LOG / _SIDECARS).mkdir(parents=True)
            copies = _copy(filesystem, log, needed, to / _LOG)
            inner = [f"{_SIDECARS}/{name}" for name in sidecars(copies)]
            copies = [*_copy(filesystem, log, inner, to / _LOG), *copies]
    except (OSError, ValueError) as error:
        raise InputError(f"the log of the Delta table {location} cannot be read: {error}") from error
    return version, copies


def _copy(filesystem: Any, log: str, names: list[str], to: Path) -> list[Path]:
    copies = [to / name for name in names]
    if names:
        filesystem.get([f"{log}/{name}" for name in names], [str(copy) for copy in copies])
    return copies


def _refuse_features(found: Table, opened: DeltaTable) -> None:
    protocol, configuration = opened.protocol(), opened.metadata().configuration
    features = set(protocol.reader_features or [])
    for name in sorted(features - _SUPPORTED):
        raise InputError(
            f"{found} uses the feature {name}, which edgemill does not support: write its rows to a table without it"
        )
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        raise InputError(
            f"{found} uses column mapping (delta.columnMapping.mode), so columns have other names in its files: "
            "write the table again without it"
        )


def _refuse_deletion_vectors(found: Table, log: list[Path], paths: list[str]) -> None:
    file = file_with_deletion_vector(log, paths)
    if file is not None:
        raise InputError(
            f"{found} has deletion vectors, so its files still have deleted rows ({file}): "
            "write them again without these (REORG TABLE … APPLY (PURGE))"
        )


def _within(found: Table, folder: str, path: str) -> str:
    """The path of a live file; the log has it relative to the table, in URL encoding."""
    if re.match("[A-Za-z][A-Za-z0-9+.-]*:|/", path) or ".." in unquote(path).split("/"):
        raise InputError(
            f"{found} has files outside its folder, such as {path}, as a shallow clone has, which edgemill does not "
            "read: clone it deep"
        )
    return f"{folder.rstrip('/')}/{unquote(path)}"
