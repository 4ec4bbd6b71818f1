"""One run, from settings to a published result. What computes is imported when it is needed: `full`, or `updating`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...tasks.ids.display import type_name
from ...tasks.inputs.sources import Source, read_with_types, refuse_changed_files
from ...tasks.storage.folders import folder_at
from ..events import Events
from ..inputs.input_object import InputObject
from ..monitor.textfile import reporting_to_textfile
from ..nightly.night import refuse_other_ids
from ..opening.checklist import prepared
from ..opening.context import Call
from ..opening.existing_result import clear_checkpoint, fingerprint, follow_up
from ..opening.input import no_triangle, open_vertices, report_input, with_digests
from ..opening.observers import serve_metrics
from ..output.manifest import Manifest, write_manifest
from ..report.report import add_report, take_report_over
from ..results.result import Result
from ..settings.models import Settings
from ..updating.unchanged import Digests, Unchanged, digests_of, take_over_unchanged

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
        with prepared(settings, client, events, given) as (call, kept):
            if kept is None:
                _run_and_publish(call, client)
                kept = Result(folder_at(call.staging.out))
        ending.result = kept
        return kept


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
    refuse_other_ids(call.before, settings.nightly, type_name(source.id_type), source.measure)
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
