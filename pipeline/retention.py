"""Results of old nights make room. What is removed is what edgemill wrote, of that series, under that output's lock."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ..tasks.errors import EdgemillError, UsageError
from ..tasks.own_files import remove_own
from ..tasks.places import Place
from ..tasks.pointer import pointed
from .exits import message
from .lock import FolderLock
from .manifest import MANIFEST_NAME, is_result
from .output import LOG_NAME
from .series import Series
from .store_lock import LOCK_NAME, StoreLock
from .store_output import CHECKPOINT, FAILED_LOG, RUN
from .telemetry import Events

__all__ = ["keep_newest"]


def keep_newest(series: Series, keep: int, spared: str, events: Events) -> None:
    """Remove all results but the newest `keep`, the oldest first, and what failed runs of days before those have left.

    The one of the day `spared` and the one that `latest` points to stay, and each whose lock is held. What could not be
    removed, or looked for, is told as the event `not_removed`.
    """
    try:
        _keep_newest(series, keep, spared, events)
    except (EdgemillError, OSError) as error:
        events.emit("not_removed", place=str(series.root), reason=message(error))


def _keep_newest(series: Series, keep: int, spared: str, events: Events) -> None:
    results = [day for day in series.results() if not _is_elsewhere(series.at(day), series.root)]
    if len(results) < keep:
        return
    latest = pointed(series.at("latest"))
    stay = {spared, *results[:keep]}
    for day in sorted(set(series.days()) - stay):
        place = series.at(day)
        if (
            day > results[keep - 1]
            or _is_elsewhere(place, series.root)
            or (latest is not None and latest.is_same(place))
        ):
            continue
        had = day in results
        try:
            (_remove_folder if place.is_local else _remove_objects)(place, series.root, events.run_id)
        except (EdgemillError, OSError) as error:
            events.emit("not_removed", place=str(place), reason=message(error))
        else:
            if had:
                events.emit("removed", place=str(place))


def _is_elsewhere(place: Place, root: Place) -> bool:
    """Whether a link leads there, as of somebody who keeps a night in another place."""
    if not place.is_local:
        return False
    here = os.path.join(os.path.realpath(root.url), os.path.relpath(place.url, root.url))
    return os.path.realpath(place.url) != here


def _remove_folder(place: Place, root: Place, run_id: str) -> None:
    out = Path(place.url)
    if not _of_runs(out):
        return
    lock = FolderLock(out.with_name(f".{out.name}.edgemill.lock"), str(out), run_id)
    lock.take()
    try:
        for path in _of_runs(out):
            if path == lock.path:  # that of a run that was killed is this one's now
                continue
            if path == out:
                path = out.with_name(f".{out.name}.edgemill-{run_id}")
                os.rename(out, path)  # whole or not there, whoever looks
            remove_own(path)
    finally:
        lock.release()
    with suppress(OSError):  # something else is in it
        for folder in out.parents:
            if folder == Path(root.url):
                break
            folder.rmdir()


def _of_runs(out: Path) -> list[Path]:
    """The result at `out`, and what runs that failed or were killed have left beside it, a lock among that."""
    if not out.parent.is_dir():
        return []
    left = re.compile(rf"\.{re.escape(out.name)}\.edgemill(-[^.]+(\.old)?|\.checkpoint|\.lock)")
    found = [out] if is_result(out) and not out.is_symlink() else []
    found += [path for path in out.parent.iterdir() if left.fullmatch(path.name)]
    return found + [path for path in [out.with_name(f"{out.name}.failed.{LOG_NAME}")] if os.path.lexists(path)]


def _remove_objects(place: Place, root: Place, run_id: str) -> None:
    names = place.names()
    if not any(name in (MANIFEST_NAME, FAILED_LOG, CHECKPOINT, LOCK_NAME) or name.startswith(RUN) for name in names):
        return
    lock = StoreLock(place, run_id, single_writer=True)  # the run that does this has been let write there
    lock.take()
    try:
        if is_result(place):
            place.remove(MANIFEST_NAME)  # from now on it is no result, whatever happens
        elif MANIFEST_NAME in place.names():
            raise UsageError(f"{place} is not an edgemill result: it is left alone")
        for name in place.names():
            if name in (FAILED_LOG, CHECKPOINT) or name.startswith(RUN):
                place.remove(name)
    finally:
        lock.release()
