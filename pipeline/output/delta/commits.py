"""Committing one table of a result as the next version of a Delta table.

The package deltalake writes the commit to a copy of the log in a temporary folder. The commit is then created in the
log of the table as a file that must not exist yet. So readers see the old or the new version, and of two concurrent
writers one fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ....tasks.errors import InputError, UsageError
from ....tasks.storage.checksums import json_object
from ....tasks.storage.folders import Folder
from ....tasks.storage.stores import store_errors
from ....tasks.tables.delta_log import log_files
from ...results.result import Result
from ..manifest import OutputRecord
from .files import add_file, adding_to, create, refuse_link, remove_left, replace, sync
from .types import declared

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
