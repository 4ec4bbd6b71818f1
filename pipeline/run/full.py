"""A run that computes everything, on a cluster: start the cluster, plan, warm the workers, find the graph, and compute.

Until the graph is complete, a run saves its edges in checkpoints: first in buckets, then on one worker. A later
checkpoint replaces an earlier one, and that of the graph replaces both. If a worker is lost with its state, the next
attempt to compute resumes from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ...kernels.runtime.device import releasing_pool
from ...tasks.attributes import AttributeSource
from ...tasks.device import MemorySpace
from ...tasks.errors import EdgemillError, StateLost, StoreLost
from ...tasks.graph import PartitionCounts, count_triangles
from ...tasks.ids.order import MANY
from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.warm import load_coding
from ..bounding.bounding import BoundingCheckpoint, records_order
from ..checkpoint.checkpoint import Checkpoint, Graph, edges_of, facts_of, file_identities, made_of_input
from ..cluster.client import Client
from ..cluster.connecting.connect import await_workers
from ..cluster.connecting.start import connect
from ..cluster.engine import Engine
from ..cluster.execution import Execution
from ..cluster.failures import scheduler_named
from ..cluster.session import Session
from ..nightly.night import Lineage, lineage_from, lineage_of, refuse_few_edges
from ..opening.context import Call, RunContext
from ..opening.observers import monitored
from ..output.manifest import Manifest
from ..plan.choice import capacity_of, plan_run, plan_without_sample
from ..plan.fit import refuse_if_too_large, remedy
from ..plan.plan import Plan
from ..programs.saving import KeptPrograms
from ..programs.vertices import find_vertices
from ..report.report import import_early
from ..results.result import Result
from ..stages import ingesting, partitioning
from ..stages.attributes import join_attributes, read_isolated, with_attributes
from ..stages.ingesting import Buckets, RowCounts
from ..stages.kernels import FEWEST_THREADS, KernelLoading, Needed, is_prepared, prepare, run_cliques
from ..stages.publishing import Partitions
from ..stages.task_engine import Future
from ..updating.eligibility import keeps_state
from .tables import MadeTables, make_tables, plan_record

if TYPE_CHECKING:
    from ...kernels.runtime.side_by_side import WarmUp
    from ...tasks.shards.group_edges import ShardCounts
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
        results_together=plan.results_together,
        partitions_at_once=1 if in_files else None,
    )


def _run(run: RunContext) -> tuple[MadeTables, Checkpoint]:
    engine, events, plan, settings = run.engine, run.events, run.plan, run.settings
    warm_workers(run)
    workers = engine.capacity.workers
    checkpoint = Checkpoint(settings.checkpoint, _made_of(run), run.call.staging.out, plan.checkpoint_bytes, workers)
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


def _made_of(run: RunContext) -> dict[str, Any]:
    """Values that must be equal to resume from a checkpoint, as JSON values by their names in messages."""
    plan, settings = run.plan, run.settings
    listed = run.vertices if settings.input.isolated else None  # the graph then depends on the table of vertices
    return made_of_input(settings, run.source) | {
        "isolated vertices": None if listed is None else [listed.id_column, file_identities(listed.files)],
        "number of partitions": plan.partitions,
        "number of shards": plan.shards,
        "number of buckets": plan.buckets,
        "device": "gpu" if plan.capacity.device_bytes else "cpu",
        "place of its edges": "gpu" if plan.ingest_on_device else "host",
    }


def compute(run: RunContext, graph: Graph, checkpoint: Checkpoint) -> MadeTables:
    """Bound, run programs, extract and publish.

    If a worker is lost with its state, the next attempt resumes from the last checkpoint. Raises StateLost after
    MAX_ATTEMPTS without progress.
    """
    if run.settings.output.report:
        import_early()

    @cache
    def lineage(groups: str) -> Lineage:
        base = None if run.call.night is not None else _base(run)
        if base is not None:
            found = lineage_from(base, run.source.id_type, run.events, groups)
        else:
            found = lineage_of(run.call.night, run.source.id_type, run.events, groups)
        run.call.reads(found.before)
        return found

    @cache
    def earlier() -> Result | None:
        found = _earlier(run)
        run.call.reads(found)
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
            return make_tables(run, graph, progress, programs, lineage, earlier)
        except StateLost as error:
            # Peeling makes no exchanges, so only its checkpoints show progress.
            now = progress.saves + programs.progress
            attempts = 1 if len(events.exchanges) > exchanges or now > saves else attempts + 1
            exchanges, saves = max(exchanges, len(events.exchanges)), now
            if attempts == MAX_ATTEMPTS:
                raise
            events.emit("rolled_back", **events.reached)
            error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures


def _earlier(run: RunContext) -> Result | None:
    """The earlier result that the call names, or that of the night before; None if there is none, or it is damaged."""
    night = run.call.night
    before = None if night is None else night.previous()
    place = _base(run) or (None if before is None else before.place)
    if place is None:
        return None
    try:
        return Result(place)
    except StoreLost:
        raise
    except EdgemillError:
        return None


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
            records = run.keeps_state and records_order(engine, plan)
            method = "butterflies" if plan.source.two_sided else plan.method
            if in_process and plan.partitions == 1 and engine.capacity.threads >= FEWEST_THREADS:
                run.loading.start(engine, parts_for(method, 1, text, many, records=records))
            else:
                bands = plan.in_bands or plan.bands_on > 1
                own = method, plan.partitions, False, text, engine.capacity.kernel_threads, many, bands, records
                reports = engine.on_every_worker(warm, *own)
            if plan.in_shards:
                from ...tasks.shards import warm_shards  # imports kernels

                engine.on_every_worker(warm_shards, engine.capacity.kernel_threads)
            if plan.in_bands or plan.bands_on > 1:
                from ..bounding.peel_bands import load_bands  # imports kernels of bands

                engine.on_every_worker(load_bands, MemorySpace.HOST)
        elif plan.source.kind == "string":
            from ...kernels.runtime.warm import load_parts

            reports = engine.on_every_worker(load_parts, ["text"])
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
        engine.on_every_worker(load_coding, MemorySpace.DEVICE, needed.text)
    else:
        from ...kernels.runtime.warm import BY_STAGE, load_parts  # loads Numba

        engine.on_every_worker(load_parts, sorted(BY_STAGE["read"]))
    if plan.finds_lambda and plan.is_whole and engine.capacity.threads > 1:  # while rows are read
        engine.leave_to_workers("load", run_cliques, needed)
        if plan.in_bands:
            from ..bounding.peel_bands import load_bands  # imports kernels of bands

            engine.leave_to_workers("load", load_bands, MemorySpace.DEVICE)
    return []


_NUMBERED = "edges"
"""Name of the checkpoint of the edges in buckets."""
_OWNED = "owned"
"""Name of the checkpoint of the edges on one worker."""


@dataclass(frozen=True)
class _Numbered:
    """The clean edges in buckets, with dense numbers in place of ids."""

    rows: RowCounts
    buckets: Buckets


@dataclass(frozen=True)
class _Owned:
    """The same edges on one worker, and the buckets, which publishing needs."""

    numbered: _Numbered
    degrees: list[Future]
    """[buckets] BucketDegrees"""
    edges: Future
    """OwnedEdges"""


def find_graph(run: RunContext, checkpoint: Checkpoint) -> Graph:
    """The graph on one worker, or in groups of shards. Saves checkpoints when they are due."""
    graph = checkpoint.load_graph(run.engine, run.events)
    if graph is None:
        graph = _build_graph(run, checkpoint)  # its edges are released on return, before the graph is saved
        if checkpoint.due(run.events, "graph"):
            checkpoint.save_graph(run.engine, run.events, graph)
    if run.plan.ingest_in_parts:  # a graph that was saved or restored is on the GPU
        graph.buckets.move_to_host(run.engine)
    run.finish_loading("triangulate")
    return graph


def _build_graph(run: RunContext, checkpoint: Checkpoint) -> Graph:
    owned = _load_owned(run, checkpoint)
    if owned is None:
        numbered = _load_numbered(run, checkpoint) or _read_and_number(run, checkpoint)
        if (before := run.call.before) is not None:
            edges = sum(run.engine.peek(numbered.buckets.edges, len))
            refuse_few_edges(before, run.settings.nightly, edges)
        if not run.plan.finds_lambda:
            return _count_degrees(run, numbered)
        if run.plan.in_shards:
            return _build_shards(run, numbered)
        owned = _partition(run, checkpoint, numbered)
    if run.plan.ingest_in_parts:  # edges that were saved or restored are on the GPU
        owned.numbered.buckets.move_to_host(run.engine)
    run.finish_loading("triangulate")
    count = partial(_count_by_shares, run) if run.plan.in_bands else None
    own = run.plan.is_whole, count, run.plan.index_bytes
    rows, subgraph, counts = partitioning.triangulate(run.engine, run.events, owned.edges, *own)
    partitions = Partitions([rows], owned.degrees)
    return Graph(owned.numbered.rows, owned.numbered.buckets, partitions, [subgraph], [counts], [])


def _count_by_shares(run: RunContext, owned: Future) -> Future:
    """The triangles of each edge, on several workers; on one if a worker is lost meanwhile."""
    from ..bounding.peel_bands import count_by_shares  # imports kernels for CPUs

    engine = run.engine.for_tasks(1)
    try:
        return count_by_shares(engine, owned, run.settings.bounding.carrier, run.plan.band_workers)
    except StateLost as error:
        error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures
        engine.refresh_workers()
        return engine.submit("count-triangles", count_triangles, owned)


def _read_and_number(run: RunContext, checkpoint: Checkpoint) -> _Numbered:
    engine, events, plan, source = run.engine, run.events, run.plan, run.source
    packed = ingesting.packs_rows(source, run.space)
    blocks, rows = ingesting.read(engine, events, source, plan.blocks, run.settings.input.nulls, run.space, packed)
    if run.settings.input.isolated and run.vertices is not None:
        blocks += read_isolated(engine, source, run.vertices, run.settings, len(blocks), run.space)
    run.finish_loading("number")
    buckets = ingesting.number(engine, events, source, blocks, plan.buckets, run.space)
    if checkpoint.due(events, _NUMBERED):
        parts = {"ids": buckets.ids, "edges": buckets.edges}
        checkpoint.save_step(engine, events, _NUMBERED, parts, facts_of(rows, buckets))
    return _Numbered(rows, buckets)


def _partition(run: RunContext, checkpoint: Checkpoint, numbered: _Numbered) -> _Owned:
    engine, events, plan, buckets = run.engine, run.events, run.plan, numbered.buckets
    run.finish_loading("number")
    edges, degrees = partitioning.partition(engine, events, buckets, run.space, plan.ingest_in_parts)
    if checkpoint.due(events, _OWNED):
        parts = {"ids": buckets.ids, "edges": buckets.edges, "degrees": degrees, "owned": [edges]}
        checkpoint.save_step(engine, events, _OWNED, parts, facts_of(numbered.rows, buckets))
        (edges,) = parts["owned"]
    return _Owned(numbered, degrees, edges)


def _build_shards(run: RunContext, numbered: _Numbered) -> Graph:
    from ..stages import sharding  # imports kernels

    engine, events, plan = run.engine, run.events, run.plan
    ordered = partitioning.order(engine, events, numbered.buckets, run.space)
    shards = sharding.triangulate_shards(engine, events, ordered, plan.partitions, plan.shards)
    partitions = Partitions(shards.rows, ordered.degrees)
    counts = [_partition_counts(own) for own in shards.counts]
    return Graph(numbered.rows, numbered.buckets, partitions, shards.edges, counts, shards.supports)


def _count_degrees(run: RunContext, numbered: _Numbered) -> Graph:
    """The graph for vertex programs alone, which have no partitions: buckets, and degrees of vertices."""
    degrees = partitioning.count_degrees(run.engine, run.events, numbered.buckets)
    return Graph(numbered.rows, numbered.buckets, Partitions([], degrees), [], [], [])


def _partition_counts(own: ShardCounts) -> PartitionCounts:
    """The counts of a group of shards. An edge with both ends in the group has two entries there."""
    inner = own.entries - own.edges
    return PartitionCounts(own.group, own.owned, inner, own.owned - inner, own.vertices)


def _load_numbered(run: RunContext, checkpoint: Checkpoint) -> _Numbered | None:
    return checkpoint.load_step(
        run.engine, run.events, _NUMBERED, lambda facts, futures: _Numbered(*edges_of(run.engine, facts, futures))
    )


def _load_owned(run: RunContext, checkpoint: Checkpoint) -> _Owned | None:
    return checkpoint.load_step(
        run.engine,
        run.events,
        _OWNED,
        lambda facts, futures: _Owned(
            _Numbered(*edges_of(run.engine, facts, futures)), futures["degrees"], futures["owned"][0]
        ),
    )
