"""The report of a run that is about to publish its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import Thread

from ...messages.exits import message
from ...monitor.events import Events
from ...nightly.night import PreviousResult
from ...output.folder_staging import REPORT_NAME
from ...output.manifest import Manifest
from ...output.staging import Staging
from ..result import Result


def import_early() -> None:
    """Start to import Bokeh, which takes half a second, in a thread. `add_report` meets any error of the import."""

    def importing() -> None:
        with suppress(Exception):
            import_module(".page", __package__)

    Thread(target=importing, daemon=True).start()


def add_report(
    staging: Staging, manifest: Manifest, events: Events, before: Callable[[], PreviousResult | None] | None = None
) -> None:
    """Add the report of a run to the files that will be published. `before` finds the night to compare with.

    An error does not fail the run: it becomes the event `report_failed`.
    """
    start = time.perf_counter()
    try:
        from .changes import compare_nights
        from .page import page

        result = Result.unpublished(staging.named_from, manifest)
        since = compare_nights(result, before, events) if before else None
        content = page(result, str(staging.out), since)
        staging.add(REPORT_NAME, content)
    except Exception as error:
        events.emit("report_failed", reason=message(error))
        return
    events.emit("report_written", bytes=len(content), seconds=round(time.perf_counter() - start, 3))
