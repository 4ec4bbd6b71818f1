"""One table of a result becomes the next version of a Delta table.

The package deltalake makes the commit, on a copy of the log in a temporary folder. The commit then comes into the log
of the table as one file that must not be there yet, so that readers see the version before or this one, and of two
writers one is told that the other was first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...tasks.errors import InputError, UsageError
from ...tasks.places import Place
from ...tasks.stores import asked
from ...tasks.tables.delta_log import log_files
from ..manifest import OutputRecord
from ..result import Result
from .files import create, refuse_link, settle, take
from .types import declared

__all__ = ["Committed", "commit", "refuse_foreign"]

RUN = "edgemill.run"
"""Key of the run's id in what a commit says of itself."""
LOG = "_delta_log"
_LAST_CHECKPOINT = "_last_checkpoint"
_OWN = re.compile(rf"\d{{8}}T\d{{6}}-[0-9a-f]{{6}}-part-\d+\.parquet|\..*\.edgemill-[0-9a-f]{{8}}|{LOG}")
"""Names of what comes into the folder of a table."""


@dataclass(frozen=True)
class Committed:
    """A version of a Delta table."""

    version: int
    is_new: bool
    """Whether it was made now; else it was there."""
    left_out: tuple[str, ...]
    """Columns of types that Delta tables do not have."""


def refuse_foreign(table: Place) -> None:
    """Raises UsageError if something else is there than a Delta table of edgemill; InputError for a damaged log."""
    for folder in (table, table.within(LOG)):
        refuse_link(folder)
    newest = _newest(table)
    if newest is None:
        if not all(_OWN.fullmatch(name) for name in table.names()):  # as before the first version is there
            raise UsageError(f"{table} is there and is no Delta table: name another place by output.delta_path")
    elif RUN not in _information(table, newest):
        raise UsageError(
            f"{table} is a Delta table whose newest version edgemill did not make: name another place by "
            "output.delta_path"
        )


def commit(result: Result, name: str, table: Place) -> Committed | None:
    """Make the table `name` of a result the next version of the Delta table at `table`; of two versions the files stay.

    Where it is the newest version already, nothing is done. None if another writer was first: look again. Raises
    UsageError if something else is there or it cannot be written, InputError for damage, OutOfRoom.
    """
    import deltalake

    refuse_foreign(table)
    newest = _newest(table)
    run = result.manifest.run
    records = [record for record in result.manifest.outputs if PurePosixPath(record.path).parent.name == name]
    fields, left_out = declared(getattr(result, name).schema)
    if newest is not None and _information(table, newest)[RUN] == run:
        return Committed(newest, False, tuple(left_out))
    files = {f"{run}-{PurePosixPath(record.path).name}": record for record in records}
    for new, record in files.items():
        take(result.place, record.path, record.bytes, table, new)
    settle(table)  # the commit that names them comes after them, whatever happens
    version = 0 if newest is None else newest + 1
    with TemporaryDirectory(prefix="edgemill-") as copied:
        log = Path(copied, LOG)
        kept = _copy_log(table, newest, log)
        adds = [_add(result, record, new, fields) for new, record in files.items()]
        schema = deltalake.Schema.from_arrow(fields)
        told = deltalake.CommitProperties(custom_metadata=_custom(result))
        try:
            _make(copied, newest, name, schema, adds, told)
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
            raise InputError(f"the log of the Delta table {table} cannot be added to: {error}") from error
        own, lasting = (json.dumps(text).encode() for text in (f"file://{copied}/", str(table)))
        made = (log / _commit_name(version)).read_bytes().replace(own, lasting)
        if not create(table, f"{LOG}/{_commit_name(version)}", made):
            return None
        settle(table.within(LOG))
        for path in sorted(set(log.iterdir()) - {log / _commit_name(version), *kept}):
            table.write(f"{LOG}/{path.name}", path.read_bytes())  # a checkpoint, which deltalake makes now and then
    if newest is not None:
        _sweep(table, newest, {*files})
    return Committed(version, True, tuple(left_out))


def _make(folder: str, newest: int | None, name: str, schema: Any, adds: list[Any], told: Any) -> None:
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
            commit_properties=told,
            post_commithook_properties=after,
        )
    else:
        DeltaTable(folder).create_write_transaction(
            adds, "overwrite", schema, commit_properties=told, post_commithook_properties=after
        )


def _custom(result: Result) -> dict[str, str]:
    """What a commit says of itself: the run and its day, if it has one."""
    day = result.manifest.settings.get("nightly", {}).get("date") if result.in_series else None
    return {RUN: result.manifest.run} | ({"edgemill.day": day} if day else {})


def _add(result: Result, record: OutputRecord, new: str, fields: pa.Schema) -> Any:
    from deltalake.transaction import AddAction

    written = int(result.manifest.finished.timestamp() * 1000)
    statistics = {"numRecords": record.rows} | _ranges(result.place, record.path, fields)
    return AddAction(new, record.bytes, {}, written, True, json.dumps(statistics))


def _ranges(place: Place, path: str, fields: pa.Schema) -> dict[str, Any]:
    """The smallest and the largest values of columns of integers, by the footer, for readers that skip files."""
    with asked("read", str(place)), place.files.open(place.path(path), "rb") as file:
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


def _newest(table: Place) -> int | None:
    """The newest version; None without a log."""
    names = table.within(LOG).names()
    if not any(name.endswith(".json") for name in names):
        return None
    try:
        return log_files(names, None)[0]
    except ValueError as error:
        raise InputError(f"the log of the Delta table {table} cannot be read: {error}") from error


def _copy_log(table: Place, newest: int | None, log: Path) -> set[Path]:
    """What deltalake needs of the log to add to it, as files in the folder `log`, which is made."""
    log.mkdir()
    names = table.within(LOG).names()
    needed = [] if newest is None else sorted({*log_files(names, newest)[1], _commit_name(newest)})
    needed += [name for name in (_LAST_CHECKPOINT,) if name in names and any("checkpoint" in part for part in needed)]
    for name in needed:
        (log / name).write_bytes(_read(table, name))
    return {log / name for name in needed if name != _LAST_CHECKPOINT}


def _information(table: Place, version: int) -> dict[str, Any]:
    """What the commit of a version says of itself."""
    actions = _actions(table, version)
    return next((dict(action["commitInfo"]) for action in actions if "commitInfo" in action), {})


def _actions(table: Place, version: int) -> Sequence[dict[str, Any]]:
    try:
        lines = _read(table, _commit_name(version)).splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise InputError(f"the log of the Delta table {table} cannot be read: {error}") from error


def _sweep(table: Place, before: int, live: set[str]) -> None:
    """Remove the files that the version before this one no longer had: whoever began to read that version reads on."""
    gone = {str(action["remove"]["path"]) for action in _actions(table, before) if "remove" in action}
    for name in sorted(gone - live):
        table.remove(name)


def _read(table: Place, name: str) -> bytes:
    content = table.read(f"{LOG}/{name}")
    if content is None:
        raise InputError(f"the log of the Delta table {table} is damaged: {name} is missing")
    return content


def _commit_name(version: int) -> str:
    return f"{version:020}.json"
