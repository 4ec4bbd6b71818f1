"""Where report.html lies, and how it comes there: with a run's result, or anew.

It stands beside the log, in OUT or in the folder of the run in an object store, and is no part of the result: the
manifest does not list it, and a result without is as good.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ...tasks.errors import NO_SPACE, OutOfRoom, UsageError
from ...tasks.own_files import replacing
from ...tasks.places import Place
from ..comparing import Foremost, compare
from ..exits import message
from ..manifest import Manifest, read_manifest
from ..new_place import new_file
from ..nightly import Earlier, night_before
from ..output import REPORT_NAME
from ..result import Result
from ..staging import AnyStaging
from ..store_output import RUN
from ..telemetry import Events

if TYPE_CHECKING:
    from .changes import Before

__all__ = ["add_report", "import_early", "report_of", "write_report"]


def import_early() -> None:
    """Start to import Bokeh, which takes half a second, while others compute. What goes wrong comes again."""

    def importing() -> None:
        with suppress(Exception):
            import_module(".page", __package__)

    Thread(target=importing, daemon=True).start()


def add_report(
    staging: AnyStaging, manifest: Manifest, events: Events, before: Callable[[], Earlier | None] | None = None
) -> None:
    """Put the report of a run beside its tables, to be published with them; it tells what changed since the night
    that `before` finds.

    What goes wrong is told as the event `report_failed`: a result is worth more than a page about it.
    """
    start = time.perf_counter()
    try:
        from .page import page

        result = Result.unpublished(staging.named_from, manifest)
        content = page(result, str(staging.out), _compared(result, before, events) if before else None)
        staging.add(REPORT_NAME, content)
    except Exception as error:
        events.emit("report_failed", reason=message(error))
        return
    events.emit("report_written", bytes=len(content), seconds=round(time.perf_counter() - start, 3))


def write_report(
    out: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, overwrite: bool = False
) -> str:
    """Make the report of the finished run in the folder or at the URL `out`: in its place, or as the file `output`.

    Returns where it is. Raises UsageError if there is no result, if the file cannot be written, is there and is not to
    be replaced, or would lie in the result; InputError for damage; OutOfRoom or OSError for a full disk.
    """
    result = Result(out)
    if output is not None:
        with new_file(output, overwrite, [result.place]) as file:
            file.write(_page(result))
        return str(output)
    content = _page(result)
    name = f"{_folder(result.place, result.manifest)}{REPORT_NAME}"
    if result.place.is_local:
        _replace(result.path / name, content)
    else:
        result.place.write(name, content)
    return f"{result.place}/{name}"


def report_of(result: Result) -> str | None:
    """Where the report of a result is; None if it has none. Raises StoreLost, or UsageError for a store."""
    name = f"{_folder(result.place, result.manifest)}{REPORT_NAME}"
    return None if result.place.sizes([name]) == [None] else f"{result.place.whole}/{name}"


def _compared(result: Result, before: Callable[[], Earlier | None], events: Events) -> Before | None:
    """What changed since the earlier night, if there is one; what goes wrong is told there, and to the events."""
    from .changes import MOST_DN_GRAPHS, MOST_EDGES, Before

    start, foremost, earlier = time.perf_counter(), Foremost(MOST_EDGES, MOST_DN_GRAPHS), None
    try:
        earlier = before()
        if earlier is None:
            return None
        with events.stage("compare", 0):
            found = compare(Result(earlier.place), result, foremost)
    except Exception as error:
        reason = message(error).replace(str(result.place), "this one")  # a run's has no lasting place yet
        events.emit("comparison_failed", before=str(earlier.place) if earlier else None, reason=reason)
        return Before(earlier, None, foremost, reason)
    counts = {name: part for name, part in found.as_dict().items() if name in ("edges", "dn_graphs", "groups")}
    events.emit("compared", before=str(earlier.place), seconds=round(time.perf_counter() - start, 3), **counts)
    return Before(earlier, found, foremost)


def _page(result: Result) -> bytes:
    from .page import page

    content = page(result, result.place.whole, _compared(result, partial(night_before, result), Events()))
    if (now := read_manifest(result.place).run) != result.manifest.run:
        raise UsageError(f"{result.place} has become the result of run {now} meanwhile: make the report again")
    return content


def _folder(place: Place, manifest: Manifest) -> str:
    """That of the run in an object store, as the names of its files have it."""
    return "" if place.is_local else f"{RUN}{manifest.run}/"


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside `path`, then rename it, so that nobody sees half of it. Raises UsageError, OutOfRoom."""
    try:
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(None, "it is a folder")
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        kind = OutOfRoom if error.errno in NO_SPACE else UsageError
        raise kind(f"cannot write the report {path}: {error.strerror}; --output names another place") from error
