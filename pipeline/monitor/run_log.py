"""The progress of a run from its log on disk: only both ends are read, and the last line may be incomplete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...tasks.storage.checksums import json_object
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import open_own
from .progress import Progress

_MOST_BYTES = 256 * 1024
"""Most bytes to read of each end; an event has about 200."""


def read_log(folder: Folder, name: str) -> Progress | None:
    """The progress according to the log `name` in `folder`; None if it is absent or belongs to another user.

    Raises UsageError if the store refuses access, and OSError.
    """
    try:
        ends = _own_ends(Path(folder.url, name)) if folder.is_local else folder.read_ends(name, _MOST_BYTES)
    except PermissionError:  # only its user may read the log of a running run
        return None
    if ends is None:
        return None
    first, last = ends
    head, progress = Progress(), Progress(partial=True)
    for event in _events(first):
        if event["event"] in ("run_started", "serving"):
            _update(head, event)
    for event in _events(last if last == first else last.partition(b"\n")[2]):
        _update(progress, event)
    progress.settings, progress.serving = head.settings, head.serving
    return progress


def _own_ends(log: Path) -> tuple[bytes, bytes] | None:
    """The first and the last bytes of a log on a disk; None without a log. A link that stands there is not followed,
    and a pipe is not waited for.
    """
    try:
        with open(open_own(log, os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_MOST_BYTES)
            if size <= _MOST_BYTES:
                return first, first
            file.seek(size - _MOST_BYTES)
            return first, file.read(_MOST_BYTES)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO):
            return None
        raise


def _update(progress: Progress, event: Mapping[str, Any]) -> None:
    with suppress(LookupError, TypeError, ValueError):  # other releases may write other fields
        progress.update(event)


def _events(text: bytes) -> Iterator[Mapping[str, Any]]:
    """The events in complete lines."""
    for line in text.split(b"\n")[:-1]:
        try:
            event = json_object(line)
        except ValueError:
            continue
        if {"time", "run", "event"} <= event.keys():
            yield event
