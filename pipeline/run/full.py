"""A run that computes everything, on a cluster.

It composes the rooms of the pipeline, so it imports more modules of the project than other modules do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...kernels.runtime.device import releasing_pool
from ...tasks.attributes import AttributeSource
from ...tasks.inputs.sources import Source
from ..checkpoint.checkpoint import Checkpoint
from ..checkpoint.made_of import made_of
from ..cluster.client import Client
from ..cluster.connecting.arrival import await_workers
from ..cluster.connecting.start import connect
from ..cluster.engine import Engine
from ..cluster.execution import Execution
from ..cluster.failures import scheduler_named
from ..cluster.session import Session
from ..cluster.workers.kernel_loading import KernelLoading
from ..output.manifest import Manifest
from ..plan.choice import capacity_of, plan_run, plan_without_sample
from ..plan.fit import refuse_if_too_large, remedy
from ..plan.plan import Plan
from ..programs.making import find_vertices
from ..stages.attributes import join_attributes, with_attributes
from ..updating.eligibility import keeps_state
from .attempts import compute
from .cluster_observers import monitored
from .context import Call, RunContext
from .graph import find_graph
from .result_manifest import plan_record
from .tables import Made
from .warming import warm_workers

if TYPE_CHECKING:
    from ..monitor.metrics import Metrics


def run_in_full(
    call: Call,
    source: Source,
    vertices: AttributeSource | None,
    client: Client | None,
    known: str | None,
    metrics: Metrics | None,
) -> tuple[Source, Manifest, Callable[[], None]]:
    """Compute the result of `source` and write its tables, on the caller's cluster or on one that is started here.

    `known` is the fingerprint of the input. Returns the input that was read, the manifest, and a function that removes
    the checkpoint once the result is published.
    """
    settings, events = call.settings, call.events
    with releasing_pool():
        source = call.input.written(source)
        profiled = settings.monitoring.performance_report is not None
        cluster = connect(settings.cluster, profiled, events.waits) if client is None else nullcontext(client)
        started_here = client is None and settings.cluster.is_started_here
        with cluster as connected, monitored(connected, settings, started_here, events, metrics, call.staging.scratch):
            if client is not None:
                least, seconds = settings.cluster.least_workers or 1, settings.cluster.waiting_seconds
                await_workers(client, least, seconds, events.waits)
                scheduler: Any = client.scheduler
                events.emit("client", scheduler=scheduler.address)
            waiting = settings.cluster.waiting_seconds
            session = Session(connected, events.run_id, (known or "unknown")[:8], waiting, events.waits)
            with scheduler_named(connected), restored(client, session):
                run = planned(call, source, vertices, session)
                batch = call.input.batch
                needs_state = batch is not None and batch.state is not None  # so does the next batch
                run = replace(run, keeps_state=keeps_state(settings, client is not None, needs_state))
                made, checkpoint = _run(run)
        if run.keeps_state:
            from ..updating.updating import keep_state_of  # imports the kernels of updates

            keep_state_of(call, made.manifest, made.order, made.arcs)
    return source, made.manifest, checkpoint.clear


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
    execution = replace(execution, capacity=capacity_of(settings, session, execution))
    capacity = execution.capacity
    plan = plan_without_sample(settings, source, capacity) or plan_run(settings, source, capacity)
    refuse_if_too_large(plan)
    call.events.emit("planned", partitions=plan.partitions, **plan_record(plan).model_dump())
    engine = Engine.set_up(session, _with_plan(execution, plan))
    return RunContext(call, source, vertices, engine, plan, KernelLoading())


def _with_plan(execution: Execution, plan: Plan) -> Execution:
    in_files = plan.in_waves and plan.in_shards
    return replace(
        execution,
        memory_advice=remedy(plan),
        pinned_partitions=plan.partitions if plan.finds_lambda or plan.in_waves else None,
        results_in_files=in_files or plan.programs_in_files,
        partitions_at_once=1 if in_files else None,
    )


def _run(run: RunContext) -> tuple[Made, Checkpoint]:
    engine, events, plan, settings = run.engine, run.events, run.plan, run.settings
    warm_workers(run)
    values = made_of(settings, run.source, plan, run.vertices)
    workers = engine.capacity.workers
    checkpoint = Checkpoint(settings.checkpoint, values, run.call.staging.out, plan.checkpoint_bytes, workers)
    if settings.checkpoint.fresh:
        checkpoint.clear()
    try:
        graph = find_graph(run, checkpoint)
        find_vertices(engine, settings, run.source, graph.buckets)  # an unknown id ends the run early
        if settings.programs.vertex_programs:
            from ..programs.results import refuse_large_table  # imports programs and their kernels

            refuse_large_table(settings, int(graph.buckets.starts[-1]))
        joined = None
        if run.vertices is not None and run.vertices.schema.names:
            tables = run.call.staging.tables
            joined = join_attributes(engine, events, run.vertices, graph.buckets.ids, tables, settings)
        made = compute(run, graph, checkpoint)
    except BaseException as error:
        if checkpoint.note is not None:
            error.add_note(checkpoint.note)
        raise
    return replace(made, manifest=with_attributes(made.manifest, joined, run.call.staging.prefix)), checkpoint
