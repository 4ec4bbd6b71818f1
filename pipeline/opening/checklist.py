"""What happens before the first row of a run is read, in this order:

1. locations: the output contains nothing that the run reads, and lies in nothing that it reads
2. workers: the device and the workers that the settings ask for can be had
3. night, performance report and Delta tables: they can be written
4. lock and staging: no other run writes the output
5. log: from here on the run has one of its own
6. existing result: it is kept if it is the one that this run would make, or may be replaced
7. input and attributes of vertices: they can be opened

An error in 1 leaves nothing beside the output. An error in 2 to 4 leaves a log of the failure alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ...tasks.errors import EdgemillError, OutputLocked, StoreLost, UsageError
from ..cluster.connecting.local import check_device, check_least_workers
from ..events import Events
from ..inputs.input_object import InputObject
from ..nightly.delta import DeltaTables
from ..nightly.night import Night
from ..output.staging import LOG_NAME, Staging, keep_failure, staging_for
from ..results.result import Result
from ..results.series import PreviousResult
from ..settings.models import Settings
from ..settings.overlap import check_locations
from .context import Call
from .existing_result import keep_existing, outdated_by, reasons_to_replace
from .input import RunInput, open_vertices, refuse_overlap
from .observers import check_performance_report

if TYPE_CHECKING:
    from ..cluster.client import Client


@contextmanager
def prepared(
    settings: Settings, client: Client | None, events: Events, given: InputObject | None
) -> Iterator[tuple[Call, Result | None]]:
    """The call of a run that holds the lock of its output, and the existing result if that is kept.

    `given` is an input that is not a path. Raises the same errors as `mine`.
    """
    check_locations(settings)
    refuse_overlap(given, settings)
    with _leaving_trace(settings, events):
        if client is None:
            check_device(settings.cluster)
            check_least_workers(settings.cluster)
        night = Night.of(settings)
        check_performance_report(settings)
        tables = DeltaTables.of(settings, night, [settings.input.path] if given is None else given.paths)
        with _telling_latest(night, events), staging_for(settings, events.run_id, is_path=given is None) as staging:
            input = RunInput(settings, given, staging, client, events)
            call = Call(settings, events, input, staging, night, tables)
            recording = events.recording(staging.scratch / LOG_NAME, settings.model_dump())
            with recording, input.named(), call.explaining_errors():
                kept, reasons = _existing(call)
                if kept is None:
                    _open_inputs(call)
                    _report_lock(staging, events)
                    if reasons:
                        events.emit("replacing", reason="; ".join(reasons))
                yield call, kept


def _existing(call: Call) -> tuple[Result | None, list[str]]:
    """The existing result if it is the one that this call would make; else the reasons to replace it, if there is one.

    Raises UsageError if it must not be replaced.
    """
    staging, reasons = call.staging, list[str]()
    if staging.or_same and staging.holds_result():
        reasons = reasons_to_replace(call)
        if not reasons:
            outdated = outdated_by(call)
            if outdated is None or not call.settings.output.overwrite:
                return keep_existing(call, outdated), []
            reasons = [outdated]
    _refuse_existing(staging, reasons)
    return None, reasons


def _open_inputs(call: Call) -> None:
    """Open the input and the attributes of vertices. A frame without requirements on its rows is opened later."""
    settings = call.settings.input
    if not call.input.is_written or settings.complete_marker or settings.least_rows:
        open_vertices(call.settings, call.input.open())


@contextmanager
def _leaving_trace(settings: Settings, events: Events) -> Iterator[None]:
    """If the block raises before the run has its log, write a log of the failure alone, where `status` finds it.

    Nothing is written if another run holds the output, whose log counts, if a store does not answer, or if the output
    is a foreign file or folder. A log that cannot be written changes nothing.
    """
    try:
        yield
    except BaseException as error:
        if not events.has_recorded and not isinstance(error, OutputLocked | StoreLost):
            with suppress(EdgemillError, OSError):
                log = events.log_of_failure(error, settings.model_dump())
                if (place := keep_failure(settings, events.run_id, log)) is not None:
                    error.add_note(f"log of the failed run: {place}")
        raise


@contextmanager
def _telling_latest(night: Night | None, events: Events) -> Iterator[None]:
    """If the block raises before the night is published, a note on the error says which night `latest` points to.

    Another run that holds the output may move it, and a store that does not answer is not asked.
    """
    try:
        yield
    except (OutputLocked, StoreLost):
        raise
    except Exception as error:
        with suppress(EdgemillError, OSError):
            day = None if night is None else night.latest_day()
            if night is not None and day is not None and PreviousResult(night.day, night.place).run != events.run_id:
                error.add_note(f"{night.series.at('latest')} stays at {day}")
        raise


def _refuse_existing(staging: Staging, reasons: list[str]) -> None:
    """Raises UsageError, with the `reasons` for the difference, if the existing result must not be replaced."""
    try:
        staging.refuse_existing()
    except UsageError as error:
        if reasons:
            error.add_note("It holds the result of a different run:")
        for reason in reasons:
            error.add_note(f"- {reason}")
        raise


def _report_lock(staging: Staging, events: Events) -> None:
    if staging.left_by is not None:
        events.emit("lock_taken_over", left_by=str(staging.left_by))
    if staging.weakness is not None:
        events.emit("weak_lock", reason=staging.weakness)
