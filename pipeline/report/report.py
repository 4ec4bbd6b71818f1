"""The report of a run: made before the run publishes its result, or again for a finished result.

A report lies beside the log, in OUT on a disk or in the run's folder in an object store. It is no part of the result:
the manifest does not list it, and a result without a report is complete.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread

from markupsafe import escape

from ...tasks.errors import NO_SPACE, EdgemillError, OutOfRoom, UsageError
from ...tasks.storage.atomic import atomic_file
from ...tasks.storage.folders import Folder
from ...tasks.storage.passwords import without_passwords
from ..events import Events
from ..messages.exits import message
from ..messages.wording import one_line, shell_word
from ..output.manifest import Manifest
from ..output.new_path import new_file
from ..output.staging import REPORT_NAME, RUN, Staging
from ..results.result import Result
from ..results.series import PreviousResult, previous_result


def write_report(
    out: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, overwrite: bool = False
) -> str:
    """Make the report of the finished run at `out`, a folder or URL, and return its path or URL.

    Without `output` the report replaces the one of the run. With it, the report becomes the file `output`, which
    `overwrite` replaces if it exists.

    Raises UsageError if `out` has no result, if the file cannot be written, exists without `overwrite`, or would lie in
    the result; InputError for damage, or if another run replaces the result; OutOfRoom or OSError for a full disk.
    """
    result = Result(out)
    if output is not None:
        with new_file(output, overwrite, [result.place]) as file:
            file.write(_page(result))
        return str(output)
    content = _page(result)
    name = _name_in(result.place, result.manifest)
    if result.place.is_local:
        _replace(result.path / name, content)
    else:
        result.place.write(name, content)
    return f"{result.place}/{name}"


def report_of(result: Result) -> str | None:
    """The path or URL of a result's report; None if it has none. Raises StoreLost, or UsageError for a store."""
    name = _name_in(result.place, result.manifest)
    return None if result.place.sizes([name]) == [None] else f"{result.place.absolute}/{name}"


def _page(result: Result) -> bytes:
    from .changes import compare_nights
    from .page import page

    with result.reading():
        since = compare_nights(result, partial(previous_result, result), Events())
        return page(result, result.place.absolute, since)


def _name_in(folder: Folder, manifest: Manifest) -> str:
    """The report's path relative to the result."""
    return REPORT_NAME if folder.is_local else f"{RUN}{manifest.run}/{REPORT_NAME}"


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside `path`, then rename it, so that readers see a whole file. Raises UsageError, OutOfRoom."""
    try:
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(None, "it is a folder")
        with atomic_file(path) as file:
            file.write(content)
    except OSError as error:
        kind = OutOfRoom if error.errno in NO_SPACE else UsageError
        raise kind(f"cannot write the report {path}: {error.strerror}; --output names another file") from error


def import_early() -> None:
    """Start to import what pages need, in a thread. `add_report` meets any error of the import.

    The interpreter waits for the thread at its end: native libraries must not be loaded while it frees its own memory.
    """

    def importing() -> None:
        with suppress(Exception):
            import_module(".page", __package__)

    Thread(target=importing, name="edgemill-report").start()


def add_report(
    staging: Staging, manifest: Manifest, events: Events, before: Callable[[], PreviousResult | None] | None = None
) -> None:
    """Add the report of a run to the files that will be published. `before` finds the night to compare with.

    An error does not fail the run: it becomes the event `report_failed`.
    """
    start = time.perf_counter()
    try:
        from .page import page

        result, since = Result.unpublished(staging.named_from, manifest), None
        if before is not None:
            from .changes import compare_nights

            since = compare_nights(result, before, events)
        content = page(result, str(staging.out), since)
        staging.add(REPORT_NAME, content)
    except Exception as error:
        events.emit("report_failed", reason=message(error))
        return
    events.emit("report_written", bytes=len(content), seconds=round(time.perf_counter() - start, 3))


_HEAD = re.compile(
    r"(?P<title><title>).*?(?P<end>: edgemill report</title>.*?<h1>).*?(?P<place></h1>\n<p class=\"place\">).*?</p>\n"
    r"(?:<p class=\"taken\">.*?</p>\n)?",
    re.DOTALL,
)
"""The parts of a page that name its result. Text in them is escaped, so it has no tags."""
_COMMAND = "<code>edgemill explore "
"""How the command starts that names the result alone; others name it, too."""


def take_report_over(staging: Staging, base: Result, manifest: Manifest, events: Events) -> bool:
    """Make the page of an earlier result, whose files are all taken over, that of the new one; False if it has none.

    The page gets the new name, also in its commands, and a sentence that says from where it is. So no chart is drawn
    again.
    """
    start = time.perf_counter()
    try:
        old = base.place.read(REPORT_NAME)
        page = "" if old is None else old.decode()
        place = without_passwords(str(staging.out))
        name, shown = (escape(one_line(text)) for text in (place.rstrip("/").rpartition("/")[2], place))
        note = escape(
            f"Nothing has changed since the result {one_line(str(base.place))}: run {manifest.run} took all its files "
            f"over at {manifest.finished:%Y-%m-%d %H:%M:%S} UTC. The rest of this page is that of the run at its end."
        )
        taken = f'{shown}</p>\n<p class="taken">{note}</p>\n'
        new, found = _HEAD.subn(lambda m: f"{m['title']}{name}{m['end']}{name}{m['place']}{taken}", page, 1)
        if not found:
            return False
        new = _with_commands(new, str(escape(shell_word(place))))
        staging.add(REPORT_NAME, new.encode())
    except (EdgemillError, OSError, UnicodeDecodeError) as error:
        events.emit("report_failed", reason=message(error))
        return False
    events.emit("report_written", bytes=len(new.encode()), seconds=round(time.perf_counter() - start, 3))
    return True


def _with_commands(page: str, place: str) -> str:
    """The page with `place` instead of the result that its commands name. Both are escaped."""
    _, start, rest = page.partition(_COMMAND)
    before = rest.partition("</code>")[0] if start else ""
    if not before:
        return page
    named = re.compile(rf"(<code>edgemill (?:explore|members|subgraph) ){re.escape(before)}(?=[ <])")
    return named.sub(lambda found: f"{found[1]}{place}", page)
