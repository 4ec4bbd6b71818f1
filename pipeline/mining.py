"""One run: settings in, a published result out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Any

from distributed import Client

from ..kernels.device import memory_given_back, to_device, to_host
from ..kernels.warm import Warmed, warm
from ..tasks.attributes import AttributeSource
from ..tasks.device import owned_to_device
from ..tasks.errors import EdgemillError, InternalError, StateLost, StoreLost, UsageError
from ..tasks.ingest import Put
from ..tasks.passwords import without_passwords
from ..tasks.places import place_of
from ..tasks.publish import merge_histograms
from ..tasks.shards import warm_shards, warm_shards_on_gpu
from ..tasks.shards.halves import ShardCounts
from ..tasks.sources import Source, refuse_changed_files
from ..tasks.subgraph import PartitionCounts
from ..tasks.warm import run_clique, run_ingest
from . import stages
from .arriving import await_workers
from .checkpoint import Checkpoint, Graph
from .checkpoint_index import checkpoint_place, clear_earlier
from .cluster import check_device, check_least_workers, connect
from .delta.publishing import DeltaTables
from .earlier import differences, fingerprint, input_differences
from .engine import Engine, Future
from .exits import message
from .extracting import extract
from .frames.given import Given
from .frames.run_input import RunInput, refuse_overlap
from .groups.joining import join_attributes, open_vertices, with_attributes
from .input_record import input_record, no_triangle, tell_of_input
from .keeper import Keeper
from .kept_edges import Numbered, Owned, load_numbered, load_owned, save_numbered, save_owned
from .manifest import (
    Counts,
    DenseRecord,
    LambdaRecord,
    Manifest,
    OutputRecord,
    PartitionRecord,
    PlanRecord,
    versions,
    write_manifest,
)
from .monitoring import check_performance_report, monitored, serve_metrics
from .nightly import Night
from .nights import following
from .output import LOG_NAME
from .overlap import check_locations
from .plan import Plan
from .planning import plan_run, plan_without_sample
from .programs.catalogue import LAMBDA
from .report.written import add_report, import_early
from .result import Result
from .schedule import Bounded, Search
from .schedules import bound
from .settings import Settings
from .sharding import collect_intervals, triangulate_shards
from .staging import AnyStaging, staging_for
from .telemetry import Events
from .textfile import told_in_textfile

__all__ = ["mine_settings"]

MOST_TRIES = 3
"""Times that a run looks for λ without getting further, each time losing a worker."""


def mine_settings(settings: Settings, *, client: Client | None, events: Events, given: Given | None = None) -> Result:
    """Run with the given settings, telling `events`. Raises as `mine` does. An input that is no path is `given`, and
    then the settings have its name for a path.

    Where the output holds the very result that would be made, nothing is done: the events tell `nothing_to_do`.
    """
    with told_in_textfile(settings, events) as ending, memory_given_back():
        ending.result = _mine(settings, client, events, given)
        return ending.result


def _mine(settings: Settings, client: Client | None, events: Events, given: Given | None) -> Result:
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
        why: list[str] = []
        if staging.or_same and staging.holds_result():
            why = _look_at(staging, settings, input)
            if not why:
                return _leave(staging, settings, events, night, tables)
        try:
            staging.refuse_existing()
        except UsageError as error:
            for note in (
                ["It holds another result than this run would make:", *(f"- {one}" for one in why)] if why else []
            ):
                error.add_note(note)
            raise
        if not input.is_written or settings.input.complete_marker or settings.input.least_rows:
            open_vertices(settings, input.open())  # before there is a log: with a mistyped input no run has begun
        with events.recording(staging.scratch / LOG_NAME, settings.model_dump()), input.named():
            if staging.left_by is not None:
                events.emit("lock_taken_over", left_by=str(staging.left_by))
            if staging.weakness is not None:
                events.emit("weak_lock", reason=staging.weakness)
            if why:
                events.emit("replacing", reason="; ".join(why))
            metrics = serve_metrics(settings.monitoring, str(place_of(staging.out)), events)
            source = input.open()
            if tables is not None:
                tables.check(source)
            vertices = open_vertices(settings, source)
            known = fingerprint(source, vertices)
            tell_of_input(source, events)
            cluster = connect(settings.cluster) if client is None else nullcontext(client)
            started_here = client is None and settings.cluster.is_started_here
            with cluster as connected, monitored(connected, settings, started_here, events, metrics, staging.scratch):
                if client is not None:
                    await_workers(client, settings.cluster.least_workers or 1, settings.cluster.waiting_seconds)
                    scheduler: Any = client.scheduler
                    events.emit("client", scheduler=scheduler.address)
                engine = Engine(connected, events.run_id, (known or "unknown")[:8], settings.cluster.waiting_seconds)
                try:
                    manifest, checkpoint = _run(settings, source, vertices, night, engine, events, staging)
                except BaseException:
                    if client is not None:
                        engine.abandon()
                    raise
                finally:
                    if client is not None:
                        engine.end()
            notes = [*manifest.input.notes, *no_triangle(manifest.counts, events)]
            read = manifest.input.model_copy(update={"fingerprint": known, "notes": notes})
            manifest = manifest.model_copy(update={"input": read})
            write_manifest(staging.scratch, manifest)
            if settings.output.report:
                add_report(staging, manifest, events, night.before if night and manifest.converged else None)
            refuse_changed_files(source)
            if vertices is not None:
                refuse_changed_files(vertices)
            events.emit(
                "run_finished", edges=manifest.counts.edges, lambda_max=manifest.lam.max, seconds=manifest.seconds
            )
            input.remove()
            staging.commit()
            with _noting(staging):
                _follow_up(checkpoint, night, tables, manifest.converged, events)
    return Result(place_of(staging.out))


@contextmanager
def _noting(staging: AnyStaging) -> Iterator[None]:
    """What fails within the block fails beside a result that is there."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the result is at {staging.out}; the same run again does what is left to do")
        raise


def _follow_up(
    checkpoint: Checkpoint, night: Night | None, tables: DeltaTables | None, converged: bool, events: Events
) -> None:
    """What is done once the result is there."""
    try:
        checkpoint.clear()
    except EdgemillError as error:
        events.emit("not_removed", place=without_passwords(checkpoint.place), reason=message(error))
    if night is not None:
        night.succeeded(events) if converged else night.move_latest(events)
    if tables is not None and converged:
        tables.publish(events)


def _look_at(staging: AnyStaging, settings: Settings, input: RunInput) -> list[str]:
    """All reasons why the result that is there is not the one to make. The input is opened if it can be."""
    try:
        manifest = Result(place_of(staging.out)).manifest
    except StoreLost:
        raise
    except EdgemillError as error:
        return [str(error)]
    why = differences(manifest, settings)
    if why and input.is_written:  # a reader of batches would be used up
        return why
    try:
        source = input.open()
    except EdgemillError:
        if not why:
            raise
        return why  # a run that replaces the result raises it again
    return [*why, *input_differences(manifest, source, open_vertices(settings, source))]


def _leave(
    staging: AnyStaging, settings: Settings, events: Events, night: Night | None, tables: DeltaTables | None
) -> Result:
    """Nothing is to be done, unless a run was ended between its result and what follows."""
    result = Result(place_of(staging.out))
    path, out = settings.checkpoint.path, place_of(staging.out)
    kept = place_of(checkpoint_place(out, path), out.options if path is None else settings.checkpoint.storage_options)
    with events.recording(staging.scratch / LOG_NAME, settings.model_dump()):
        events.emit("nothing_to_do", result=result.manifest.run)
        try:
            clear_earlier(kept, result.manifest.finished)
        except (EdgemillError, OSError) as error:
            events.emit("not_removed", place=str(kept), reason=message(error))
        with _noting(staging):
            if night is not None:
                night.succeeded(events)
            if tables is not None:
                tables.publish(events)
    with suppress(EdgemillError, OSError):  # what the log lacks then has been done all the same
        staging.add_to_log()
    return result


def _run(
    settings: Settings,
    source: Source,
    vertices: AttributeSource | None,
    night: Night | None,
    engine: Engine,
    events: Events,
    staging: AnyStaging,
) -> tuple[Manifest, Checkpoint]:
    engine.refuse_other_releases()
    device = engine.use(settings.cluster.device)
    plan = plan_without_sample(settings, source, engine.capacity) or plan_run(settings, source, engine.capacity)
    plan.refuse_if_hopeless()
    engine.remedy = plan.remedy
    expected = _expected(plan)
    events.emit("planned", partitions=plan.partitions, **expected.model_dump())
    _warm(engine, events, plan, settings)
    if plan.method == "peel" or plan.in_waves:
        engine.keep_apart(plan.partitions)
    if plan.in_waves and (plan.method != "peel" or plan.in_shards):
        engine.keep_in_files(plan.at_once)
    checkpoint = Checkpoint(settings, source, plan, staging.out)
    if settings.checkpoint.fresh:
        checkpoint.clear()
    how = {"bounding.method": plan.method, "bounding.operator": settings.bounding.operator}
    try:
        graph = checkpoint.load_graph(engine, events)
        if graph is None:
            graph = _find_graph(engine, events, settings, source, plan, checkpoint)
            if checkpoint.due():
                checkpoint.save_graph(engine, events, graph)
        joined = None
        if vertices is not None:
            joined = join_attributes(engine, events, vertices, graph.buckets.ids, staging.tables, settings)
        keeper = Keeper(checkpoint, graph, engine, events, how)
        manifest = _find_lambda(engine, events, settings, source, plan, graph, keeper, night, staging, device)
    except BaseException as error:
        if checkpoint.note is not None:
            error.add_note(checkpoint.note)
        raise
    return with_attributes(manifest.model_copy(update={"plan": expected}), joined, staging.prefix), checkpoint


def _expected(plan: Plan) -> PlanRecord:
    return PlanRecord(
        rows_looked_at=plan.graph.rows_looked_at,
        edges=plan.edges,
        vertices=plan.graph.vertices.likely,
        replication=round(plan.replication, 3),
        worker_bytes=plan.unspilled_bytes,
        reason=plan.reason,
    )


def _find_graph(
    engine: Engine, events: Events, settings: Settings, source: Source, plan: Plan, checkpoint: Checkpoint
) -> Graph:
    """From Parquet to subgraphs, going on from what an earlier run has kept. Keeps the edges where they took long."""
    put = to_device if plan.ingest_on_device else to_host
    owned = load_owned(checkpoint, engine, events)
    if owned is None:
        numbered = load_numbered(checkpoint, engine, events)
        if numbered is None:
            blocks, rows = stages.read(engine, events, source, plan.blocks, settings.input.nulls, put)
            numbered = Numbered(rows, stages.number(engine, events, source, blocks, plan.buckets, put))
            if checkpoint.due():
                save_numbered(checkpoint, engine, events, numbered)
        if plan.in_shards:
            return _find_shards(engine, events, numbered, plan, put)
        edges, degrees = stages.partition(engine, events, numbered.buckets, plan.partitions, plan.partitioning, put)
        owned = Owned(numbered, degrees, edges)
        if checkpoint.due():
            save_owned(checkpoint, engine, events, owned)
    kept_rows, subgraphs, counts = stages.triangulate_partitions(engine, events, owned.edges)
    partitions = stages.Partitions(kept_rows, owned.degrees)
    return Graph(owned.numbered.rows, owned.numbered.buckets, partitions, subgraphs, counts, [])


def _find_shards(engine: Engine, events: Events, numbered: Numbered, plan: Plan, put: Put) -> Graph:
    """From buckets to the edges of groups of shards."""
    ordered = stages.order(engine, events, numbered.buckets, put)
    shards = triangulate_shards(engine, events, ordered, plan.partitions, plan.shards)
    partitions = stages.Partitions(shards.rows, ordered.degrees)
    counts = [_counts(own) for own in shards.counts]
    return Graph(numbered.rows, numbered.buckets, partitions, shards.edges, counts, shards.supports)


def _counts(own: ShardCounts) -> PartitionCounts:
    """A group of shards as a partition: it has no ghosts, and each of its edges with both ends here has two entries."""
    inner = own.entries - own.edges
    return PartitionCounts(own.group, own.owned, 0, inner, 0, own.owned - inner, own.vertices, own.owned)


def _collect(engine: Engine, graph: Graph, bounded: Bounded) -> list[Future]:
    """[buckets] BucketResults"""
    if graph.supports:
        return collect_intervals(engine, graph.partitions.rows, graph.supports, bounded.intervals)
    return stages.collect_results(engine, graph.buckets, graph.partitions, graph.subgraphs, bounded.intervals)


def _find_lambda(
    engine: Engine,
    events: Events,
    settings: Settings,
    source: Source,
    plan: Plan,
    graph: Graph,
    keeper: Keeper,
    night: Night | None,
    staging: AnyStaging,
    device: str,
) -> Manifest:
    """From subgraphs to the tables, and what the manifest says of them.

    When a worker is lost with what it held of the search, that starts again from what was kept last.
    """
    if settings.output.report:
        import_early()

    def attempt() -> Manifest:
        with events.stage("bound", 0):
            with engine.on_device():
                search = Search(engine, events, graph.subgraphs, graph.counts, settings.bounding)
                bounded = bound(search, plan, keeper)
                unsettled = sum(engine.peek(bounded.intervals, attrgetter("unsettled")))
            results = _collect(engine, graph, bounded)
        ran = None
        if programs:
            from .programs.running import run_programs

            ran = run_programs(engine, events, settings, source, graph.buckets, graph.partitions.degrees)
        groups = followed = None
        if bounded.converged:
            groups = extract(
                engine,
                events,
                graph.buckets.edges,
                graph.partitions.degrees,
                results,
                graph.buckets.starts,
                plan.partitions,
                put,
            )
        tables = stages.tables_to_write(len(graph.buckets.edges), plan.files, groups is not None)
        with events.stage("publish", tables) as stage:
            if groups is not None:
                own = following.Buckets(
                    graph.buckets.ids, groups.found, graph.buckets.starts, groups.highest, source.id_type
                )
                followed = following.follow_groups(engine, events, own, lineage())
            published = stages.publish_results(
                engine,
                stage,
                source,
                graph.buckets,
                graph.partitions.degrees,
                results,
                groups,
                followed.tracks if followed else [],
                staging.tables,
                settings.output,
                plan.files,
                None if ran is None else ran.columns,
            )
        made = _manifest(
            settings,
            source,
            graph,
            bounded,
            unsettled,
            published,
            groups.record if groups else None,
            staging.prefix,
            device,
            events,
        )
        more = {"tracks": followed.record if followed else None} | ({} if ran is None else {"programs": ran.records})
        return made.model_copy(update=more)

    @cache
    def lineage() -> following.Lineage:
        return following.lineage_of(night, source.id_type, events)

    put = to_device if plan.ingest_on_device else to_host
    programs = set(settings.programs.run) - {LAMBDA}
    furthest, saves, tries = -1, 0, 0
    while True:
        try:
            return attempt()
        except StateLost as error:
            # Peeling makes no exchanges: it gets further by what is kept.
            further = len(events.exchanges) > furthest or keeper.saves > saves
            tries = 1 if further else tries + 1
            furthest, saves = max(furthest, len(events.exchanges)), keeper.saves
            if tries == MOST_TRIES:
                raise
            events.emit("rolled_back", **events.reached)
            error.__traceback__ = None  # Dask keeps it, and it would keep what is in the frames


def _warm(engine: Engine, events: Events, plan: Plan, settings: Settings) -> None:
    """Have the kernels compiled, or loaded from the cache, by every worker."""
    with events.stage("compile", 0):
        on_gpu = bool(engine.capacity.device_bytes)
        reports: list[Warmed] = engine.everywhere(
            warm, plan.method, plan.partitions, on_gpu, plan.source.kind == "string"
        )
        if on_gpu:
            if not engine.shares_memory:
                engine.send_from_devices()
            engine.everywhere(_run_clique, plan.method, plan.partitions, plan.compact_rows)
        if plan.ingest_on_device:
            engine.everywhere(run_ingest, to_device)
        if on_gpu and plan.partitions > 1:
            engine.everywhere(warm_shards_on_gpu)
        elif plan.in_shards:
            engine.everywhere(warm_shards, engine.capacity.threads)
        if set(settings.programs.run) - {LAMBDA}:
            from .programs.running import warm_programs

            warm_programs(engine, settings)
    events.emit("kernels", compiled=max((report.compiled for report in reports), default=0))


def _run_clique(method: str, partitions: int, compact_rows: bool) -> None:
    # What it finds stays there: the driver may have no GPU.
    run_clique(method, partitions, owned_to_device, compact_rows)


def _manifest(
    settings: Settings,
    source: Source,
    graph: Graph,
    bounded: Bounded,
    unsettled: int,
    published: stages.Published,
    dense: DenseRecord | None,
    prefix: str,
    device: str,
    events: Events,
) -> Manifest:
    summaries, rows, counts = published.summaries, graph.rows, graph.counts
    edges = sum(s.edges for s in summaries)
    support = sum(s.support for s in summaries)
    duplicates = rows.duplicates + graph.buckets.duplicates
    left = rows.nulls + rows.filtered
    if rows.rows != edges + rows.self_loops + duplicates + left or support % 3:
        raise InternalError(
            f"rows do not add up: {rows.rows} read, {rows.self_loops} self-loops, {duplicates} duplicates, "
            f"{rows.nulls} nulls, {rows.filtered} left out by input.where, {edges} edges; supports add up to {support}"
        )
    return Manifest(
        run=events.run_id,
        versions=versions(),
        device=device,
        settings=settings.model_dump(),
        started=events.started,
        finished=datetime.now(UTC),
        input=input_record(source),
        counts=Counts(
            rows=rows.rows,
            self_loops=rows.self_loops,
            duplicates=duplicates,
            nulls_dropped=rows.nulls,
            filtered=rows.filtered,
            edges=edges,
            vertices=sum(s.vertices for s in summaries),
            triangles=support // 3,
        ),
        partitions=[
            PartitionRecord(**{name: getattr(c, name) for name in PartitionRecord.model_fields}) for c in counts
        ],
        bounding=bounded.record,
        exchanges=events.exchanges,
        stages=events.stages,
        lam=_lambda([s.low for s in summaries]),
        lambda_high=None if bounded.converged else _lambda([s.high for s in summaries]),
        converged=bounded.converged,
        unsettled=unsettled,
        dense=dense,
        outputs=[
            OutputRecord(path=prefix + f.name, rows=f.rows, bytes=f.bytes, sha256=f.sha256) for f in published.files
        ],
    )


def _lambda(histograms: list[Any]) -> LambdaRecord:
    histogram = merge_histograms(histograms)
    return LambdaRecord(
        max=max((value for value, _ in histogram), default=0),
        sum=sum(value * edges for value, edges in histogram),
        histogram=histogram,
    )
