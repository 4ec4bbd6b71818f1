"""One run, from settings to a published result.

It composes the rooms of the pipeline, so it imports more modules of the project than other modules do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from ...kernels.runtime.device import releasing_pool
from ...tasks.attributes import AttributeSource
from ...tasks.errors import UsageError
from ...tasks.inputs.sources import Source, refuse_changed_files
from ...tasks.storage.folders import folder_at
from ..checkpoint.checkpoint import Checkpoint
from ..checkpoint.made_of import made_of
from ..cluster.client import Client
from ..cluster.connecting.arrival import await_workers
from ..cluster.connecting.start import check_device, check_least_workers, connect
from ..cluster.engine import Engine
from ..cluster.execution import Execution
from ..cluster.session import Session
from ..frames.input_object import InputObject
from ..monitor.events import Events
from ..nightly.night import Night
from ..nightly.textfile import reporting_to_textfile
from ..output.delta.publishing import DeltaTables
from ..output.folder_staging import LOG_NAME
from ..output.manifest import Manifest, write_manifest
from ..output.staging import Staging, staging_for
from ..plan.choice import plan_run, plan_without_sample
from ..plan.fit import refuse_if_too_large, remedy
from ..plan.plan import Plan
from ..programs.vertices import find_vertices
from ..results.report.run_report import add_report
from ..results.result import Result
from ..settings.models import Settings
from ..settings.overlap import check_locations
from ..stages.attributes import join_attributes, open_vertices, with_attributes
from ..updating.updating import keep_state_of, update
from .attempts import compute
from .context import Call, RunContext
from .existing_result import follow_up, keep_existing, reasons_to_replace
from .graph import find_graph
from .inputs.input_record import no_triangle, report_input
from .inputs.run_input import RunInput, refuse_overlap
from .inputs.up_to_date import fingerprint
from .observers import check_performance_report, monitored, serve_metrics
from .result_manifest import plan_record
from .warming import warm_workers


def mine_settings(
    settings: Settings, *, client: Client | None, events: Events, given: InputObject | None = None
) -> Result:
    """Run with these settings and report to `events`. Raises the same errors as `mine`.

    `given` is an input that is not a path. The settings then have its name as the path. If the output already holds
    the result that this run would make, the run ends with the event `nothing_to_do`.
    """
    with reporting_to_textfile(settings, events) as ending, releasing_pool():
        ending.result = _mine(settings, client, events, given)
        return ending.result


def _mine(settings: Settings, client: Client | None, events: Events, given: InputObject | None) -> Result:
    if client is None:
        check_device(settings.cluster)
        check_least_workers(settings.cluster)
    night = Night.of(settings)
    check_performance_report(settings)
    check_locations(settings)
    refuse_overlap(given, settings)
    tables = DeltaTables.of(settings, night, [settings.input.path] if given is None else given.paths)
    with staging_for(settings, events.run_id, is_path=given is None) as staging:
        input = RunInput(settings, given, staging, client, events)
        call = Call(settings, events, input, staging, night, tables)
        reasons: list[str] = []
        if staging.or_same and staging.holds_result():
            reasons = reasons_to_replace(call)
            if not reasons:
                return keep_existing(call)
        _refuse_existing(staging, reasons)
        if not input.is_written or settings.input.complete_marker or settings.input.least_rows:
            open_vertices(settings, input.open())  # before the log exists, so a mistyped input leaves no files
        with events.recording(staging.scratch / LOG_NAME, settings.model_dump()), input.named():
            _report_lock(staging, events)
            if reasons:
                events.emit("replacing", reason="; ".join(reasons))
            _run_and_publish(call, client)
    return Result(folder_at(staging.out))


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
    if call.tables is not None:
        call.tables.check(source)
    vertices = open_vertices(settings, source)
    known = fingerprint(source, vertices)
    report_input(source, events)
    manifest = update(call, source, call.input.batch, client is not None)
    if manifest is None:
        source = call.input.written(source)
        cluster = connect(settings.cluster) if client is None else nullcontext(client)
        started_here = client is None and settings.cluster.is_started_here
        with cluster as connected, monitored(connected, settings, started_here, events, metrics, staging.scratch):
            if client is not None:
                await_workers(client, settings.cluster.least_workers or 1, settings.cluster.waiting_seconds)
                scheduler: Any = client.scheduler
                events.emit("client", scheduler=scheduler.address)
            session = Session(connected, events.run_id, (known or "unknown")[:8], settings.cluster.waiting_seconds)
            with restored(client, session):
                manifest, checkpoint = _run(planned(call, source, vertices, session))
        keep_state_of(call, manifest)
    else:
        checkpoint = Checkpoint(settings.checkpoint, {}, staging.out)
    notes = [*manifest.input.notes, *no_triangle(manifest.counts, events)]
    read = manifest.input.model_copy(update={"fingerprint": known, "notes": notes})
    manifest = manifest.model_copy(update={"input": read})
    write_manifest(staging.scratch, manifest)
    if settings.output.report:
        add_report(staging, manifest, events, call.night.before if call.night and manifest.exact else None)
    refuse_changed_files(source)
    if vertices is not None:
        refuse_changed_files(vertices)
    highest = {"lambda_max": manifest.lam.max} if manifest.has_lambda else {}
    events.emit("run_finished", edges=manifest.counts.edges, **highest, seconds=manifest.seconds)
    call.input.remove()
    staging.commit()
    follow_up(call, checkpoint, manifest.converged)


@contextmanager
def restored(client: Client | None, session: Session) -> Iterator[None]:
    """Restore the state of the caller's cluster, if the run uses one."""
    if client is None:
        yield
        return
    try:
        yield
    except BaseException:
        session.release_all()
        raise
    finally:
        session.close()


def planned(call: Call, source: Source, vertices: AttributeSource | None, session: Session) -> RunContext:
    """Choose the device and the plan, and set the workers up for them."""
    settings = call.settings
    session.refuse_other_versions()
    execution = session.execution_on(settings.cluster.device)
    capacity = execution.capacity
    plan = plan_without_sample(settings, source, capacity) or plan_run(settings, source, capacity)
    refuse_if_too_large(plan)
    call.events.emit("planned", partitions=plan.partitions, **plan_record(plan).model_dump())
    return RunContext(call, source, vertices, Engine.set_up(session, _with_plan(execution, plan)), plan)


def _with_plan(execution: Execution, plan: Plan) -> Execution:
    in_files = plan.in_waves and (plan.method != "peel" or plan.in_shards)
    return replace(
        execution,
        memory_advice=remedy(plan),
        pinned_partitions=plan.partitions if plan.method == "peel" or plan.in_waves else None,
        results_in_files=in_files,
        partitions_at_once=plan.at_once if in_files else None,
    )


def _run(run: RunContext) -> tuple[Manifest, Checkpoint]:
    engine, events, plan, settings = run.engine, run.events, run.plan, run.settings
    warm_workers(run)
    values = made_of(settings, run.source, plan, run.vertices)
    checkpoint = Checkpoint(settings.checkpoint, values, run.call.staging.out)
    if settings.checkpoint.fresh:
        checkpoint.clear()
    try:
        graph = find_graph(run, checkpoint)
        find_vertices(engine, settings, run.source, graph.buckets)  # an unknown id ends the run early
        joined = None
        if run.vertices is not None and run.vertices.schema.names:
            tables = run.call.staging.tables
            joined = join_attributes(engine, events, run.vertices, graph.buckets.ids, tables, settings)
        manifest = compute(run, graph, checkpoint)
    except BaseException as error:
        if checkpoint.note is not None:
            error.add_note(checkpoint.note)
        raise
    return with_attributes(manifest, joined, run.call.staging.prefix), checkpoint
