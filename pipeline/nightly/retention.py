"""Remove results of old nights: only what edgemill wrote, of this series, and under the lock of each output."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import remove_own
from ...tasks.storage.pointer import pointer_target
from ..events import Events
from ..messages.exits import message
from ..output.lock import LOCK_NAME, FolderLock, StoreLock
from ..output.manifest import MANIFEST_NAME, is_result
from ..output.staging import CHECKPOINT, FAILED_LOG, LOG_NAME, RUN
from ..results.series import Series


def keep_newest(series: Series, keep: int, spared: str, events: Events) -> None:
    """Remove all results except the newest `keep`, the oldest first, and files of failed runs before those nights.

    The result of the day `spared`, the result that `latest` points to, and locked outputs stay. The event `not_removed`
    reports what could not be removed or listed.
    """
    try:
        _keep_newest(series, keep, spared, events)
    except (EdgemillError, OSError) as error:
        events.emit("not_removed", place=str(series.root), reason=message(error))


def _keep_newest(series: Series, keep: int, spared: str, events: Events) -> None:
    results = [day for day in series.results() if not _is_linked(series.at(day), series.root)]
    if len(results) < keep:
        return
    latest = pointer_target(series.at("latest"))
    kept_days = {spared, *results[:keep]}
    for day in sorted(set(series.days()) - kept_days):
        place = series.at(day)
        if day > results[keep - 1] or _is_linked(place, series.root) or (latest is not None and latest.is_same(place)):
            continue
        had_result = day in results
        try:
            (_remove_folder if place.is_local else _remove_objects)(place, series.root, events.run_id)
        except (EdgemillError, OSError) as error:
            events.emit("not_removed", place=str(place), reason=message(error))
        else:
            if had_result:
                events.emit("removed", place=str(place))


def _is_linked(place: Folder, root: Folder) -> bool:
    """Whether the path leads through a symbolic link, as when a user has moved a result."""
    if not place.is_local:
        return False
    here = os.path.join(os.path.realpath(root.url), os.path.relpath(place.url, root.url))
    return os.path.realpath(place.url) != here


def _remove_folder(place: Folder, root: Folder, run_id: str) -> None:
    out = Path(place.url)
    if not _files_of_runs(out):
        return
    lock = FolderLock(out.with_name(f".{out.name}.edgemill.lock"), str(out), run_id)
    lock.take()
    try:
        for path in _files_of_runs(out):
            if path == lock.path:  # this run has taken over the lock
                continue
            if path == out:
                path = out.with_name(f".{out.name}.edgemill-{run_id}")
                os.rename(out, path)  # readers see the whole result or none
            remove_own(path)
    finally:
        lock.release()
    with suppress(OSError):  # a folder with other contents stays
        for folder in out.parents:
            if folder == Path(root.url):
                break
            folder.rmdir()


def _files_of_runs(out: Path) -> list[Path]:
    """The result at `out`, and files of failed or killed runs beside it, including a lock."""
    if not out.parent.is_dir():
        return []
    left = re.compile(rf"\.{re.escape(out.name)}\.edgemill(-[^.]+(\.old)?|\.checkpoint|\.lock)")
    found = [out] if is_result(out) and not out.is_symlink() else []
    found += [path for path in out.parent.iterdir() if left.fullmatch(path.name)]
    return found + [path for path in [out.with_name(f"{out.name}.failed.{LOG_NAME}")] if os.path.lexists(path)]


def _remove_objects(place: Folder, root: Folder, run_id: str) -> None:
    names = place.names()
    if not any(name in (MANIFEST_NAME, FAILED_LOG, CHECKPOINT, LOCK_NAME) or name.startswith(RUN) for name in names):
        return
    lock = StoreLock(place, run_id, single_writer=True)  # this run may write to the store
    lock.take()
    try:
        if is_result(place):
            place.remove(MANIFEST_NAME)  # from now on it is not a result
        elif MANIFEST_NAME in place.names():
            raise UsageError(f"{place} is not an edgemill result: it is not removed")
        for name in place.names():
            if name in (FAILED_LOG, CHECKPOINT) or name.startswith(RUN):
                place.remove(name)
    finally:
        lock.release()
