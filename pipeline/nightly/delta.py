"""The tables of a result as Delta tables in a fixed folder (`output.format: delta`).

DuckDB, Spark and pandas read the newest result there without its manifest. Each result is the next version of each
table. Files are added without reading them: as hard links on a disk, as copies within an object store.

The package deltalake writes the commit to a copy of the log in a temporary folder. The commit is then created in the
log of the table as a file that must not exist yet. So readers see the old or the new version, and of two concurrent
writers one fails.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from ...tasks.errors import NO_SPACE, InputError, OutOfRoom, UsageError
from ...tasks.inputs.sources import Source
from ...tasks.publish.writing import EDGE_VALUE_COLUMNS
from ...tasks.storage.atomic import atomic_file, create_file, link_or_copy, remove_unfinished, sync_folder
from ...tasks.storage.checksums import json_object
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.own_files import take_flock
from ...tasks.storage.stores import store_errors
from ...tasks.tables.delta import log_files
from ..events import Events
from ..output.manifest import OutputRecord
from ..results.result import TABLES, Result
from ..settings.models import Settings
from .night import Night

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Delta tables have no unsigned integers. Spark reads unsigned columns of Parquet as these types."""
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
"""Characters that Spark does not allow in column names of a Delta table."""


def refuse_columns(id_type: pa.DataType, names: list[str]) -> None:
    """Raises UsageError if Delta tables do not support ids of this type, or edge columns with these names."""
    if id_type == pa.uint64():
        raise UsageError(
            "output.format delta: the ids are uint64, which Delta tables do not have: cast them to int64 or text in "
            "the input, or write output.format parquet"
        )
    if isinstance(id_type, pa.BaseExtensionType):
        raise UsageError(
            "output.format delta: the ids are UUIDs, which Delta tables do not have: cast them to text in the input, "
            "or write output.format parquet"
        )
    for name in names:
        if _FORBIDDEN & {*name}:
            raise UsageError(
                f"output.format delta: the column {name!r} has a character that Delta tables do not allow in a name "
                "(space , ; { } ( ) = tab or a line break): rename it in the input"
            )
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise UsageError(
                f"output.format delta: the columns {other!r} and {name!r} differ only in upper and lower case, which "
                "Delta tables ignore: rename one in the input"
            )


def declared(schema: pa.Schema) -> tuple[pa.Schema, list[str]]:
    """The schema of a Delta table for files with this schema, and the columns that it leaves out.

    Readers of a Delta table ignore other columns of its files.
    """
    fields, left_out = [], []
    for field in schema:
        kind = _declared(field.type)
        if kind is None or _FORBIDDEN & {*field.name}:
            left_out.append(field.name)
        else:
            fields.append(pa.field(field.name, kind))
    return pa.schema(fields), left_out


def _declared(kind: pa.DataType) -> pa.DataType | None:
    """The Delta type of a Parquet type; None if not all readers of Delta tables support it."""
    if isinstance(kind, pa.BaseExtensionType):  # such as UUIDs
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind in _SIGNED:
        return _SIGNED[kind]
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is not None and kind.unit == "us" else None
    known = (
        pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date32(kind)
    )
    return kind if known else None


def add_file(source: Folder, name: str, size: int, folder: Folder, new: str) -> None:
    """Add the file `name` of `source` to `folder` as `new`; both are on disks, or both in one object store.

    Does nothing if `new` has `size` bytes: an interrupted run has added it. Raises UsageError, OutOfRoom.
    """
    if folder.sizes([new]) == [size]:
        return
    if not folder.is_local:
        with folder.store_errors("copy to", new):
            folder.files.cp_file(source.path(name), folder.path(new))
        return
    target = Path(folder.path(new))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(Path(source.path(name)), target, own=2 + name.count("/"))
    except OSError as error:
        raise _write_error(error, folder, new) from error


def create(folder: Folder, name: str, content: bytes) -> bool:
    """Create a file atomically; False if it exists. Raises UsageError, OutOfRoom."""
    if not folder.is_local:
        return folder.create(name, content)
    path = Path(folder.path(name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return create_file(path, content)
    except OSError as error:
        raise _write_error(error, folder, name) from error


def replace(folder: Folder, name: str, content: bytes) -> None:
    """Create or replace a file atomically: readers of a table look at all files of its log. Raises as `create`."""
    if not folder.is_local:
        folder.write(name, content)
        return
    try:
        with atomic_file(Path(folder.path(name))) as file:
            file.write(content)
    except OSError as error:
        raise _write_error(error, folder, name) from error


@contextmanager
def adding_to(folder: Folder) -> Iterator[Callable[[], bool]]:
    """Tell other runs that this one adds files to a table. Yields a function: whether no other run does.

    That cannot be told in a store, nor where the file system has no locks. Raises UsageError, OutOfRoom.
    """
    if not folder.is_local:
        yield lambda: False
        return
    path = Path(folder.path())
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _write_error(error, folder, ".") from error
    try:
        take_flock(handle, fcntl.LOCK_SH)  # another run that holds it alone removes a few files
        yield lambda: take_flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def remove_left(folder: Folder) -> None:
    """Remove what killed runs left unfinished in a folder on a disk."""
    if folder.is_local:
        remove_unfinished(Path(folder.path()))


def sync(folder: Folder) -> None:
    """Flush the names in a folder to the disk (fsync); no operation in a store. Raises UsageError, OutOfRoom."""
    if folder.is_local:
        try:
            sync_folder(Path(folder.path()))
        except OSError as error:
            raise _write_error(error, folder, ".") from error


def refuse_link(folder: Folder) -> None:
    """Raises UsageError for a symbolic link instead of a folder: another user may have planted it."""
    if folder.is_local and os.path.islink(folder.path()):
        raise UsageError(f"{folder} is a symbolic link, not a folder of Delta tables that edgemill made: remove it")


def _write_error(error: OSError, folder: Folder, name: str) -> Exception:
    kind = OutOfRoom if error.errno in NO_SPACE else UsageError
    return kind(f"cannot write {folder}/{name} of a Delta table: {error.strerror or error}")


RUN = "edgemill.run"
"""Key of the run's id in a commit's metadata."""
LOG = "_delta_log"
_LAST_CHECKPOINT = "_last_checkpoint"
_DATA = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}-part-\d+\.parquet")
"""Names of files of data that edgemill writes to the folder of a table."""
_TEMPORARY = re.compile(r"\..*\.edgemill-[0-9a-f]{8}")
"""Names of files that a writer has not finished."""


@dataclass(frozen=True)
class Committed:
    """A version of a Delta table."""

    version: int
    is_new: bool
    """Whether this call created it."""
    left_out: tuple[str, ...]
    """Columns whose types Delta tables do not support."""


def refuse_foreign(table: Folder) -> None:
    """Raises UsageError if something other than a Delta table of edgemill exists; InputError for a damaged log."""
    for folder in (table, table.subfolder(LOG)):
        refuse_link(folder)
    newest = _newest(table)
    if newest is None:
        if not all(
            name == LOG or _DATA.fullmatch(name) or _TEMPORARY.fullmatch(name) for name in table.names()
        ):  # an interrupted run may have left files without a log
            raise UsageError(f"{table} exists and is not a Delta table: set another output.delta_path")
    elif RUN not in _information(table, newest):
        raise UsageError(
            f"{table} is a Delta table whose newest version edgemill did not make: set another output.delta_path"
        )


def commit(result: Result, name: str, table: Folder) -> Committed | None:
    """Make the table `name` of a result the next version of the Delta table at `table`.

    Does nothing if it is the newest version already. Removes files that only versions before the previous one have,
    and what killed runs left. Returns None if another writer has created this version, or another run has replaced the
    result: open it and call again. Raises UsageError if something else exists or the table cannot be written,
    InputError for damage, OutOfRoom.
    """
    refuse_foreign(table)
    with adding_to(table) as is_only:
        return _commit(result, name, table, is_only)


def _commit(result: Result, name: str, table: Folder, is_only: Callable[[], bool]) -> Committed | None:
    import deltalake

    for folder in (table, table.subfolder(LOG)):
        remove_left(folder)
    newest = _newest(table)
    run = result.manifest.run
    records = [record for record in result.manifest.outputs if PurePosixPath(record.path).parent.name == name]
    fields, left_out = declared(getattr(result, name).schema)
    if newest is not None and _information(table, newest)[RUN] == run:
        return Committed(newest, False, tuple(left_out))
    files = {f"{run}-{PurePosixPath(record.path).name}": record for record in records}
    for new, record in files.items():
        add_file(result.place, record.path, record.bytes, table, new)
    sync(table)  # before the commit that refers to them
    if result.is_replaced:  # by a run of the same night: the files may be of both
        return None
    version = 0 if newest is None else newest + 1
    with TemporaryDirectory(prefix="edgemill-") as copied:
        log = Path(copied, LOG)
        copies = _copy_log(table, newest, log)
        adds = [_add(result, record, new, fields) for new, record in files.items()]
        schema = deltalake.Schema.from_arrow(fields)
        properties = deltalake.CommitProperties(custom_metadata=_custom(result))
        try:
            _make(copied, newest, name, schema, adds, properties)
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
            raise InputError(f"the log of the Delta table {table} cannot be added to: {error}") from error
        temporary, final = (json.dumps(text).encode() for text in (f"file://{copied}/", str(table)))
        made = (log / _commit_name(version)).read_bytes().replace(temporary, final)
        if not create(table, f"{LOG}/{_commit_name(version)}", made):
            return None
        sync(table.subfolder(LOG))
        for path in sorted(set(log.iterdir()) - {log / _commit_name(version), *copies}):
            replace(table, f"{LOG}/{path.name}", path.read_bytes())  # a checkpoint, from time to time
    _sweep(table, newest, {*files}, is_only)
    return Committed(version, True, tuple(left_out))


def _make(folder: str, newest: int | None, name: str, schema: Any, adds: list[Any], properties: Any) -> None:
    from deltalake import DeltaTable, PostCommitHookProperties
    from deltalake.transaction import create_table_with_add_actions

    after = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
    if newest is None:
        about = f"The table {name} of the newest result of edgemill; each version is a result"
        create_table_with_add_actions(
            folder,
            schema,
            adds,
            name=name,
            description=about,
            commit_properties=properties,
            post_commithook_properties=after,
        )
    else:
        DeltaTable(folder).create_write_transaction(
            adds, "overwrite", schema, commit_properties=properties, post_commithook_properties=after
        )


def _custom(result: Result) -> dict[str, str]:
    """Metadata of a commit: the run and its day, if it has one."""
    day = result.manifest.settings.get("nightly", {}).get("date") if result.in_series else None
    return {RUN: result.manifest.run} | ({"edgemill.day": day} if day else {})


def _add(result: Result, record: OutputRecord, new: str, fields: pa.Schema) -> Any:
    from deltalake.transaction import AddAction

    written = int(result.manifest.finished.timestamp() * 1000)
    statistics = {"numRecords": record.rows} | _ranges(result.place, record.path, fields)
    return AddAction(new, record.bytes, {}, written, True, json.dumps(statistics))


def _ranges(folder: Folder, path: str, fields: pa.Schema) -> dict[str, Any]:
    """Minimum and maximum of integer columns, from the footer, for readers that skip files."""
    with store_errors("read", str(folder)), folder.files.open(folder.path(path), "rb") as file:
        footer = pq.read_metadata(file)
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for at in range(footer.num_columns):
        name = footer.schema.column(at).path
        position = fields.get_field_index(name)
        if position < 0 or not pa.types.is_integer(fields.field(position).type):
            continue
        parts = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if parts and all(part is not None and part.has_min_max for part in parts):
            low[name], high[name] = min(part.min for part in parts), max(part.max for part in parts)
    return {"minValues": low, "maxValues": high} if low else {}


def _newest(table: Folder) -> int | None:
    """The newest version; None if there is no log."""
    names = table.subfolder(LOG).names()
    if not any(name.endswith(".json") for name in names):
        return None
    try:
        return log_files(names, None)[0]
    except ValueError as error:
        raise InputError(f"the log of the Delta table {table} cannot be read: {error}") from error


def _copy_log(table: Folder, newest: int | None, log: Path) -> set[Path]:
    """Copy the files of the log that deltalake needs into the new folder `log`; returns the copies."""
    log.mkdir()
    names = table.subfolder(LOG).names()
    needed = [] if newest is None else sorted({*log_files(names, newest)[1], _commit_name(newest)})
    needed += [name for name in (_LAST_CHECKPOINT,) if name in names and any("checkpoint" in part for part in needed)]
    for name in needed:
        (log / name).write_bytes(_read(table, name))
    return {log / name for name in needed if name != _LAST_CHECKPOINT}


def _information(table: Folder, version: int) -> dict[str, Any]:
    """The metadata of a version's commit."""
    found = (action["commitInfo"] for action in _actions(table, version) if "commitInfo" in action)
    return next((own for own in found if isinstance(own, dict)), {})


def _actions(table: Folder, version: int) -> Sequence[dict[str, Any]]:
    try:
        lines = _read(table, _commit_name(version)).splitlines()
        return [json_object(line) for line in lines if line.strip()]
    except ValueError as error:
        raise InputError(f"the log of the Delta table {table} cannot be read: {error}") from error


def _sweep(table: Folder, before: int | None, live: set[str], is_only: Callable[[], bool]) -> None:
    """Remove files of data that version `before` had removed, and those of no version if this run `is_only` writer.

    Files of version `before` stay, for its current readers, and those that are `live` now. The log may name any file;
    only files that edgemill adds to a table are removed.
    """
    actions = [] if before is None else _actions(table, before)
    added, removed = (
        {str(own.get("path")) for action in actions if isinstance(own := action.get(kind), dict)}
        for kind in ("add", "remove")
    )
    gone = {*table.names()} - added if is_only() else removed
    for name in sorted(filter(_DATA.fullmatch, gone - live)):
        table.remove(name)


def _read(table: Folder, name: str) -> bytes:
    content = table.read(f"{LOG}/{name}")
    if content is None:
        raise InputError(f"the log of the Delta table {table} is damaged: {name} is missing")
    return content


def _commit_name(version: int) -> str:
    return f"{version:020}.json"


_TRIES = 5
"""Tries to commit, while other runs commit first."""
_LAST = "dn_graphs"
"""The table that is committed last. If it has a version, the other tables have it, too."""


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables of a run's result."""

    folder: Folder
    """The folder with one folder for each table."""
    out: Folder
    """The result of this run."""
    night: Night | None
    is_named: bool
    """Whether the settings name the folder: then it may be a link."""

    @classmethod
    def of(cls, settings: Settings, night: Night | None, inputs: Iterable[str]) -> Self | None:
        """The tables of these settings; None if `output.format` is not delta. `inputs` are the paths of the run.

        Raises UsageError if deltalake is not installed, or if the tables cannot be in this folder.
        """
        output = settings.output
        if output.format != "delta":
            return None
        _refuse_without_deltalake()
        out = folder_at(output.path, output.storage_options)
        if output.delta_path is not None:
            folder = folder_at(output.delta_path, output.storage_options)
        elif night is not None:
            folder = night.series.at("current")
        else:
            folder = Folder(f"{out.url}.delta", out.options)
        if folder.location.system != out.location.system:
            raise UsageError(
                f"output.delta_path {folder} and output.path {out} are in different kinds of storage, "
                "so the files of a result cannot be linked or copied"
            )
        paths = [*inputs, *([] if settings.input.vertices is None else [settings.input.vertices])]
        sources = [("an input", folder_at(path, settings.input.storage_options)) for path in paths]
        for name, other in [("output.path", out), *sources]:
            if folder.location.overlaps(other.location):
                raise UsageError(
                    f"the Delta tables would be at {folder}, and {name} is {other}: one is inside the other; "
                    "set another output.delta_path"
                )
        return cls(folder, out, night, output.delta_path is not None)

    def check(self, source: Source) -> None:
        """Raises UsageError if Delta tables do not support the result, or something else exists at their paths."""
        if not self.is_named:
            refuse_link(self.folder)
        columns = [source.source_column, source.target_column, *EDGE_VALUE_COLUMNS]
        refuse_columns(source.id_type, columns)
        for name in TABLES:
            refuse_foreign(self.folder.subfolder(name))

    def publish(self, events: Events) -> None:
        """Make the newest exact result the newest version of each table, if it is not already.

        In a series that is the result of the newest night, even if this run is for another one. Raises UsageError if a
        table cannot be written or something else exists, InputError for damage, OutOfRoom.
        """
        for _ in range(_TRIES):
            newest = None if self.night is None else self.night.series.newest()
            if self.night is not None and newest is None:
                return
            result = self.out if self.night is None or newest is None else self.night.series.at(newest)
            done = self._publish(Result(result))
            if done is None:
                continue
            if any(committed.is_new for committed in done.values()):
                versions = {name: committed.version for name, committed in done.items()}
                left_out = [f"{name}.{column}" for name, found in done.items() for column in found.left_out]
                events.emit(
                    "delta_published", place=str(self.folder), result=str(result), versions=versions, left_out=left_out
                )
            return
        raise UsageError(f"the Delta tables at {self.folder} keep being changed by other runs: run again")

    def _publish(self, result: Result) -> dict[str, Committed] | None:
        """The commits by table; None if another run has committed first."""
        tables = {PurePosixPath(record.path).parent.name for record in result.manifest.outputs}
        done = {}
        for name in sorted(tables, key=lambda name: (name == _LAST, name)):
            committed = commit(result, name, self.folder.subfolder(name))
            if committed is None:
                return None
            done[name] = committed
        return done


def _refuse_without_deltalake() -> None:
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise UsageError("output.format delta needs another package: pip install 'edgemill[delta]'") from error
