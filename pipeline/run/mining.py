"""One run, from settings to a published result. What computes is imported when it is needed: `full`, or `updating`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...tasks.errors import EdgemillError, OutputLocked, StoreLost, UsageError
from ...tasks.ids.display import type_name
from ...tasks.inputs.sources import Source, read_with_types, refuse_changed_files
from ...tasks.storage.folders import folder_at
from ..cluster.connecting.local import check_device, check_least_workers
from ..events import Events
from ..inputs.input_object import InputObject
from ..monitor.textfile import reporting_to_textfile
from ..nightly.night import Night, refuse_other_ids
from ..output.delta import DeltaTables
from ..output.manifest import Manifest, write_manifest
from ..output.staging import LOG_NAME, Staging, keep_failure, staging_for
from ..report.report import add_report, take_report_over
from ..results.result import Result
from ..results.series import PreviousResult
from ..settings.models import Settings
from ..settings.overlap import check_locations
from ..updating.unchanged import Digests, Unchanged, digests_of, take_over_unchanged
from .context import Call
from .existing_result import clear_checkpoint, fingerprint, follow_up, keep_existing, outdated_by, reasons_to_replace
from .input import RunInput, no_triangle, open_vertices, refuse_overlap, report_input, with_digests
from .observers import check_performance_report, serve_metrics

if TYPE_CHECKING:
    from ...tasks.attributes import AttributeSource
    from ..cluster.client import Client
    from ..monitor.metrics import Metrics


def mine_settings(
    settings: Settings, *, client: Client | None, events: Events, given: InputObject | None = None
) -> Result:
    """Run with these settings and report to `events`. Raises the same errors as `mine`.

    `given` is an input that is not a path. The settings then have its name as the path. If the output already holds
    the result that this run would make, the run ends with the event `nothing_to_do`.
    """
    with reporting_to_textfile(settings, events) as ending:
        ending.result = _mine(settings, client, events, given)
        return ending.result


def _mine(settings: Settings, client: Client | None, events: Events, given: InputObject | None) -> Result:
    check_locations(settings)  # nothing is written beside an output that is refused
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
                return _find_or_make(call, client)


def _find_or_make(call: Call, client: Client | None) -> Result:
    """The existing result if it is the one that this call would make; else a new one."""
    settings, events, staging = call.settings, call.events, call.staging
    reasons: list[str] = []
    if staging.or_same and staging.holds_result():
        reasons = reasons_to_replace(call)
        if not reasons:
            outdated = outdated_by(call)
            if outdated is None or not settings.output.overwrite:
                return keep_existing(call, outdated)
            reasons = [outdated]
    _refuse_existing(staging, reasons)
    if not call.input.is_written or settings.input.complete_marker or settings.input.least_rows:
        open_vertices(settings, call.input.open())
    _report_lock(staging, events)
    if reasons:
        events.emit("replacing", reason="; ".join(reasons))
    _run_and_publish(call, client)
    return Result(folder_at(staging.out))


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


def _run_and_publish(call: Call, client: Client | None) -> None:
    settings, events, staging = call.settings, call.events, call.staging
    metrics = serve_metrics(settings.monitoring, str(folder_at(staging.out)), events)
    source = call.input.open()
    report_input(source, events, source.notes)
    digests = digests_of(source) if settings.nightly.may_start_from_earlier else None
    made = read_with_types(source, partial(_make, call, client, digests, metrics))
    source, vertices, kept, manifest = made.source, made.vertices, made.kept, made.manifest
    notes = [*manifest.input.notes, *no_triangle(manifest.counts, events)]
    read = manifest.input.model_copy(update={"fingerprint": made.fingerprint, "notes": notes})
    if digests is not None and (own := digests.result()) is not None:
        read = with_digests(read, own)
    manifest = manifest.model_copy(update={"input": read})
    write_manifest(staging.scratch, manifest)
    if settings.output.report and not (kept and take_report_over(staging, kept.base, manifest, events)):
        add_report(staging, manifest, events, call.night.before if call.night and manifest.exact else None)
    refuse_changed_files(source)
    if vertices is not None:
        refuse_changed_files(vertices)
    highest = {"lambda_max": manifest.lam.max} if manifest.has_lambda else {}
    events.emit("run_finished", edges=manifest.counts.edges, **highest, seconds=manifest.seconds)
    call.input.remove()
    call.refuse_replaced()
    staging.commit()
    follow_up(call, made.clear_checkpoint, manifest.converged)


@dataclass(frozen=True)
class _Made:
    """A result whose files are written."""

    source: Source
    """The input that was read."""
    vertices: AttributeSource | None
    fingerprint: str | None
    """Of the input."""
    manifest: Manifest
    kept: Unchanged | None
    """The earlier result that it has all files of, if any."""
    clear_checkpoint: Callable[[], None]


def _make(call: Call, client: Client | None, digests: Digests | None, metrics: Metrics | None, source: Source) -> _Made:
    """Find the result of `source`, and write its tables. Raises OtherType for rows of other types, and nothing is
    written then.
    """
    settings = call.settings
    call.input.read_as(source)
    refuse_other_ids(call.before, settings.nightly, type_name(source.id_type))
    if call.tables is not None:
        call.tables.check(source)
    vertices = open_vertices(settings, source)
    known = fingerprint(source, vertices)
    clear: Callable[[], None] = partial(clear_checkpoint, call)
    kept, made = None, None
    if digests is not None and call.input.batch is None:
        kept = take_over_unchanged(call, source, known, digests)
    if kept is None and (digests is not None or call.input.batch is not None):
        with collector_off():
            from ..updating.beginning import Begun, begin

        begun = begin(call, source, call.input.batch, client is not None)
        if isinstance(begun, Begun):
            with collector_off():
                from ..updating.updating import update  # loads the kernels, and not Dask

            made = update(call, source, begun)
        else:
            kept = begun
    if kept is not None:
        made = kept.manifest
    elif made is None:
        from .full import run_in_full  # loads Dask

        source, made, clear = run_in_full(call, source, vertices, client, known, metrics)
    return _Made(source, vertices, known, made, kept, clear)


@contextmanager
def collector_off() -> Iterator[None]:
    """Disable the cycle collector while the block imports modules: each collection visits all objects of all modules.

    If this process has frozen objects, as the command does, those of the modules are frozen, too: later collections
    then leave them out.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count():
            gc.freeze()
        if enabled:
            gc.enable()
