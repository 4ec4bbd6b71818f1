"""The report of a run that is about to publish its result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import Thread

from markupsafe import escape

from ....tasks.errors import EdgemillError
from ....tasks.storage.passwords import without_passwords
from ...messages.exits import message
from ...messages.wording import one_line, shell_word
from ...monitor.events import Events
from ...nightly.night import PreviousResult
from ...output.manifest import Manifest
from ...output.staging import REPORT_NAME, Staging
from ..result import Result


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
