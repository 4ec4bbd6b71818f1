"""The live files of a Delta table, which the package deltalake reads from its log.

What deltalake does not provide is read here: the files of the log that a version needs, and which data files have
deletion vectors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputAbsent, InputError, UsageError
from ..storage.checksums import json_object
from ..storage.passwords import without_passwords
from ..storage.stores import store_errors
from .live import ColumnInFiles, LiveFiles, TableVersion, path_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

_COMMIT = re.compile(r"(\d{20})\.json")
_SIDECAR = re.compile(r"[\w-][\w.-]*\.parquet")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")


def log_files(names: Iterable[str], version: int | None) -> tuple[int, list[str]]:
    """The version, and the names in the log that define it; None is the newest version.

    These are the newest complete checkpoint up to the version and the commits after it, in order. Raises ValueError,
    with the reason, if the version does not exist.
    """
    commits: set[int] = set()
    checkpoints: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if match := _COMMIT.fullmatch(name):
            commits.add(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            one = (
                f"of {match[2]}" if match[2] else name
            )  # a checkpoint in parts, or one of several checkpoints of a version
            checkpoints.setdefault((int(match[1]), one), []).append(name)
    complete = {at: sorted(parts) for (at, one), parts in checkpoints.items() if len(parts) == _parts(one)}
    if not commits and not complete:
        raise ValueError("it has no commits")
    newest = max([*commits, *complete])
    version = newest if version is None else version
    if version > newest:
        raise ValueError(f"its newest version is {newest}")
    start = max((at for at in complete if at <= version), default=-1)
    missing = version  # a name may have any number, so the versions before it are not counted through
    while missing in commits:
        missing -= 1
    if missing > start:
        oldest = min((at for at in complete if at > version), default=None)
        since = "" if oldest is None else f"; its oldest version is {oldest}"
        raise ValueError(f"its log no longer has the commit {missing}{since}")
    return version, [*complete.get(start, []), *(f"{at:020}.json" for at in range(start + 1, version + 1))]


def sidecars(log: Iterable[Path]) -> list[str]:
    """Names of the sidecar files of checkpoints among these files of a log. Sidecars list files of the table.

    Raises ValueError for a path: the log is not trusted.
    """
    checkpoints = [path for path in log if _CHECKPOINT.fullmatch(path.name)]
    names = [str(action["path"]) for path in checkpoints for action in _actions(path, "sidecar", ["path"])]
    for name in names:
        if not _SIDECAR.fullmatch(name):
            raise ValueError(f"a checkpoint refers to the sidecar {name!r}, which is outside its folder")
    return names


def file_with_deletion_vector(log: Sequence[Path], live: Collection[str]) -> str | None:
    """The path of a live file with a deletion vector; None if no file has one.

    `log` are the files that define the version, the checkpoint before the commits, in order. `live` are the paths of
    live files as in the log. The last action that adds a file counts: it may add it again with another vector or none.
    """
    left = set(live)
    for path in reversed(log):
        for add in _actions(path, "add", ["path", "deletionVector"]):
            if add["path"] in left:
                if add.get("deletionVector") is not None:
                    return str(add["path"])
                left.remove(add["path"])
    return None


def _parts(one: str) -> int:
    return int(one.removeprefix("of ")) if one.startswith("of ") else 1


def _actions(path: Path, kind: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The actions of one kind in a file of the log, with their fields in `names`. Raises ValueError for damage."""
    if path.suffix == ".json":
        with path.open("rb") as lines:
            for line in lines:
                action = json_object(line).get(kind) if line.strip() else None
                if action is None:
                    continue
                if not isinstance(action, dict) or not isinstance(action.get("path"), str):
                    raise ValueError(f"{path.name} has an action {kind} without a path")
                yield action
        return
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    if kind not in schema.names:
        return
    present = [name for name in names if schema.field(kind).type.get_field_index(name) >= 0]
    for batch in file.iter_batches(columns=[f"{kind}.{name}" for name in present]):
        for action in batch.column(kind).to_pylist():
            if action is not None and action["path"] is not None:
                yield action


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
            table = TableVersion("delta", location, version)
            _refuse_features(table, opened)
            paths = pa.table(opened.get_add_actions()).column("path").to_pylist()
            if "deletionVectors" in (opened.protocol().reader_features or []):
                _refuse_deletion_vectors(table, log, paths)
            partitions = set(opened.metadata().partition_columns)
            names = [field.name for field in opened.schema().fields]
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0].replace(copied, location)
            raise InputError(
                f"the log of the Delta table {location}, version {version}, cannot be read by deltalake "
                f"{deltalake.__version__}: {reason}"
            ) from error
    if not paths:
        raise InputAbsent(f"{table} has no file, so no rows")
    return LiveFiles(
        table,
        tuple(sorted(path_of(filesystem, _within(table, folder, path)) for path in paths)),
        {name: ColumnInFiles(in_files=name not in partitions) for name in names},
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


def _refuse_features(table: TableVersion, opened: DeltaTable) -> None:
    protocol, configuration = opened.protocol(), opened.metadata().configuration
    features = set(protocol.reader_features or [])
    for name in sorted(features - _SUPPORTED):
        raise InputError(
            f"{table} uses the feature {name}, which edgemill does not support: write its rows to a table without it"
        )
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        raise InputError(
            f"{table} uses column mapping (delta.columnMapping.mode), so columns have other names in its files: "
            "write the table again without it"
        )


def _refuse_deletion_vectors(table: TableVersion, log: list[Path], paths: list[str]) -> None:
    file = file_with_deletion_vector(log, paths)
    if file is not None:
        raise InputError(
            f"{table} has deletion vectors, so its files still have deleted rows ({file}): "
            "write them again without these (REORG TABLE … APPLY (PURGE))"
        )


def _within(table: TableVersion, folder: str, path: str) -> str:
    """The path of a live file; the log has it relative to the table, in URL encoding."""
    if re.match("[A-Za-z][A-Za-z0-9+.-]*:|/", path) or ".." in unquote(path).split("/"):
        raise InputError(
            f"{table} has files outside its folder, such as {path}, as a shallow clone has, which edgemill does not "
            "read: clone it deep"
        )
    return f"{folder.rstrip('/')}/{unquote(path)}"
