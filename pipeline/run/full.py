"""A run that computes everything, on a cluster: start the cluster, plan, warm the workers, find the graph, and compute.

If a worker is lost with its state, the next attempt to compute resumes from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ...kernels.runtime.device import releasing_pool
from ...tasks.attributes import AttributeSource
from ...tasks.device import MemorySpace
from ...tasks.errors import StateLost
from ...tasks.ids.order import MANY
from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.warm import load_packing
from ..bounding.bounding import BoundingCheckpoint
from ..checkpoint.checkpoint import Checkpoint, Graph
from ..cluster.client import Client
from ..cluster.connecting.connect import await_workers
from ..cluster.connecting.start import connect
from ..cluster.engine import Engine
from ..cluster.execution import Execution
from ..cluster.failures import scheduler_named
from ..cluster.session import Session
from ..nightly.night import Lineage, lineage_from, lineage_of
from ..opening.context import Call, RunContext
from ..output.manifest import Manifest
from ..plan.choice import capacity_of, plan_run, plan_without_sample
from ..plan.fit import refuse_if_too_large, remedy
from ..plan.made_of import made_of
from ..plan.plan import Plan
from ..programs.saving import KeptPrograms
from ..programs.vertices import find_vertices
from ..report.report import import_early
from ..stages.attributes import join_attributes, with_attributes
from ..stages.kernels import FEWEST_THREADS, KernelLoading, Needed, is_prepared, prepare, run_cliques
from ..updating.eligibility import keeps_state
from .graph import find_graph
from .observers import monitored
from .tables import Made, make_tables, plan_record

if TYPE_CHECKING:
    from ...kernels.runtime.side_by_side import WarmUp
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
            from ..programs.results import refuse_large_table  # imports kernels

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


MAX_ATTEMPTS = 3
"""Most consecutive attempts that lose a worker and reach no later checkpoint or exchange than the previous attempt."""


def compute(run: RunContext, graph: Graph, checkpoint: Checkpoint) -> Made:
    """Bound, run programs, extract and publish.

    If a worker is lost with its state, the next attempt resumes from the last checkpoint. Raises StateLost after
    MAX_ATTEMPTS without progress.
    """
    if run.settings.output.report:
        import_early()

    @cache
    def lineage() -> Lineage:
        base = None if run.call.night is not None else _base(run)
        if base is not None:
            found = lineage_from(base, run.source.id_type, run.events)
        else:
            found = lineage_of(run.call.night, run.source.id_type, run.events)
        run.call.reads(found.before)
        return found

    events = run.events
    how = {"bounding.method": run.plan.method, "bounding.operator": run.settings.bounding.operator}
    holding = run.engine.for_tasks(max(1, len(graph.subgraphs))).for_partitions()
    progress = BoundingCheckpoint(checkpoint, graph, holding, events, how, run.plan.ingest_in_parts)
    # A search builds rows before it begins, also when it starts again. It was not timed yet, so it counts as the
    # triangles do, which are found in such rows.
    progress.stop_seconds = sum(own.seconds for own in events.stages if own.stage == "triangulate")
    programs = KeptPrograms(checkpoint, graph, run.engine, events)
    exchanges, saves, attempts = -1, 0, 0
    while True:
        try:
            return make_tables(run, graph, progress, programs, lineage)
        except StateLost as error:
            # Peeling makes no exchanges, so only its checkpoints show progress.
            now = progress.saves + programs.progress
            attempts = 1 if len(events.exchanges) > exchanges or now > saves else attempts + 1
            exchanges, saves = max(exchanges, len(events.exchanges)), now
            if attempts == MAX_ATTEMPTS:
                raise
            events.emit("rolled_back", **events.reached)
            error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures


def _base(run: RunContext) -> Folder | None:
    """The earlier result that the run was to start from, if the call names one."""
    settings, batch = run.settings, run.call.input.batch
    if batch is not None:
        return batch.base.place
    previous = settings.nightly.previous
    return None if previous is None else folder_at(previous, settings.output.storage_options)


def warm_workers(run: RunContext) -> None:
    """Make every worker compile the kernels of the run, or load them from its cache.

    One process with several threads loads most kernels for CPUs while rows are read; see `KernelLoading`.
    The first worker of a machine compiles kernels for GPUs, and the others load them. A worker whose GPU kernels were
    all compiled before loads those first that its threads would load at the same time. It loads those for λ in the
    background.
    """
    engine, plan = run.engine, run.plan
    with run.events.stage("compile", 0):
        reports: list[WarmUp] = []
        if engine.capacity.device_bytes:
            reports = _warm_gpus(engine, plan)
        elif plan.finds_lambda:
            from ...kernels.runtime.warm import parts_for, warm  # loads Numba

            text, many, in_process = plan.source.kind == "string", plan.edges >= MANY, engine.capacity.in_process
            if in_process and plan.partitions == 1 and engine.capacity.threads >= FEWEST_THREADS:
                run.loading.start(engine, parts_for(plan.method, 1, text, many))
            else:
                bands = plan.in_bands or plan.bands_on > 1
                own = plan.method, plan.partitions, False, text, engine.capacity.kernel_threads, many, bands
                reports = engine.on_every_worker(warm, *own)
            if plan.in_shards:
                from ...tasks.shards import warm_shards  # imports kernels

                engine.on_every_worker(warm_shards, engine.capacity.kernel_threads)
            if plan.in_bands or plan.bands_on > 1:
                from ..bounding.peel_bands import load_bands  # imports kernels of bands

                engine.on_every_worker(load_bands, MemorySpace.HOST)
        if run.settings.programs.vertex_programs:
            from ..programs.running import warm_programs

            warm_programs(engine, run.settings, plan.programs.blocks if plan.programs else 1)
    if not run.loading.is_pending:
        run.events.emit("kernels", compiled=max((report.compiled for report in reports), default=0))


def _warm_gpus(engine: Engine, plan: Plan) -> list[WarmUp]:
    needed = Needed(
        plan.method if plan.finds_lambda else None,
        plan.partitions > 1,
        plan.is_whole,
        plan.compact_rows,
        plan.ingest_on_device,
        plan.source.kind == "string",
        plan.in_bands,
    )
    if not all(engine.on_every_worker(is_prepared, needed)):
        return engine.on_every_worker(prepare, needed, engine.capacity.threads)
    if plan.ingest_on_device:
        engine.on_every_worker(load_packing, MemorySpace.DEVICE)
    if needed.text or not plan.ingest_on_device:
        from ...kernels.runtime.warm import BY_STAGE, load_parts  # loads Numba

        engine.on_every_worker(load_parts, sorted(BY_STAGE["read"]))
    if plan.finds_lambda and plan.is_whole and engine.capacity.threads > 1:  # while rows are read
        engine.leave_to_workers("load", run_cliques, needed)
        if plan.in_bands:
            from ..bounding.peel_bands import load_bands  # imports kernels of bands

            engine.leave_to_workers("load", load_bands, MemorySpace.DEVICE)
    return []
