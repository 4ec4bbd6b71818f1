"""The choice of a plan: from footers, what workers have, and a sample of the rows where these leave a choice."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from distributed.system import MEMORY_LIMIT

from ..kernels.peers import MOST_ON_ONE_DEVICE, MOST_PEERS
from ..tasks.complete import refuse_unmarked
from ..tasks.errors import InputAbsent, InputIncomplete, UsageError
from ..tasks.estimate import Figures, at_most, estimate
from ..tasks.places import place_of
from ..tasks.reading import count_rows
from ..tasks.replication import Copies
from ..tasks.sources import Source, open_source, plan_blocks
from ..tasks.writing import VALUE_COLUMNS
from .cluster import check_device, check_least_workers, connect, cores, has_gpu_workers, local_gpu
from .engine import Capacity, Engine
from .plan import FILL, WORKER_BYTES, Plan
from .row_memory import row_bytes
from .settings import MAX_PARTITIONS, Settings

__all__ = ["make_plan", "open_input", "plan_run", "plan_without_sample", "refuse_few_rows"]

MOST_CHOSEN = 256
"""`auto` stops here: beyond, replication takes what smaller partitions give."""
LEAST_EDGES = 500_000
"""`auto` takes a worker more for so many edges: with fewer, rounds take longer than the work in them."""
WORTH = 1.1
"""Where nothing fits well, more partitions are worth it that bring the need below this many times the least."""
MIN_BLOCK_ROWS = 250_000
"""Smaller blocks cost more in tasks than they bring in parallel reading."""
_GIVEN = "as partitioning.count says"
_ONE = "one worker holds them all"
_EACH = "one for each worker"


def make_plan(settings: Settings) -> Plan:
    """Plan a run without starting it. A running scheduler is asked for its workers; nothing else is contacted.

    Raises InputError, and ClusterLost if a scheduler does not answer.
    """
    check_device(settings.cluster)
    check_least_workers(settings.cluster)
    source = open_input(settings)
    cluster = settings.cluster
    if cluster.scheduler is not None or cluster.scheduler_file is not None:
        with connect(cluster) as client:
            engine = Engine(client, "plan", waiting_seconds=cluster.waiting_seconds)
            engine.use(cluster.device)
            return plan_run(settings, source, engine.capacity)
    workers = cluster.workers or 1
    threads = cluster.threads_per_worker or max(1, cores() // workers)
    memory = cluster.memory_limit_bytes or MEMORY_LIMIT // workers
    capacity = Capacity(workers, threads, memory, in_process=cluster.workers is None)
    if has_gpu_workers(cluster):
        gpu = local_gpu(cluster)
        capacity = replace(capacity, device_bytes=gpu.memory_bytes)
    return plan_run(settings, source, capacity)


def open_input(settings: Settings) -> Source:
    """The input's footers. Raises InputError, InputIncomplete if the settings ask for more than is there."""
    given = settings.input
    if given.complete_marker is not None:
        refuse_unmarked(given.path, given.complete_marker, given.storage_options)
    columns = given.source_column, given.target_column
    version, form = given.table_version, given.form
    try:
        source = open_source(given.path, *columns, given.storage_options, VALUE_COLUMNS, version, form)
    except InputAbsent as error:
        if given.least_rows is None:
            raise
        raise InputIncomplete(f"{error}: run again when input.least_rows, {given.least_rows:,}, are there") from error
    refuse_few_rows(source, given.least_rows)
    return source


def refuse_few_rows(source: Source, least: int | None) -> None:
    """Raises InputIncomplete if the input has fewer rows than the settings ask for."""
    rows = source.rows if least is None else count_rows(source)
    if rows < (least or 0):
        raise InputIncomplete(
            f"input {source.path!r} is not complete: it has {rows:,} rows, and {least:,} are asked for "
            "(input.least_rows); run again when they are there"
        )


def plan_without_sample(settings: Settings, source: Source, capacity: Capacity) -> Plan | None:
    """The plan, if it is one partition whatever the rows hold and nothing of it could be refused; None if rows must be
    looked at. What it expects is the most that can be: each row an edge, each number of the ids' range a vertex.
    """
    one = settings.partitioning.count == 1 or (settings.partitioning.count == "auto" and capacity.workers == 1)
    if not one or source.kind != "integer" or source.most_rows is None:
        return None
    plan = _limited(settings, _one_partition(settings, source, at_most(source), capacity))
    room = plan.disk_bytes is None or plan.graph.output_bytes / 2 <= plan.disk_bytes
    return plan if plan.fits() and room and not plan.compact_rows else None


def plan_run(settings: Settings, source: Source, capacity: Capacity) -> Plan:
    """Choose blocks, partitions and method for the given workers. Reads a sample of the rows.

    Raises UsageError if these workers cannot peel, or peel where bounding.max_exchanges is set; InputError if the
    sample cannot be read.
    """
    return _limited(settings, _chosen(settings, source, capacity))


def _limited(settings: Settings, plan: Plan) -> Plan:
    """Raises UsageError for a limit on exchanges that peeling does not make, and for a GPUs' carrier without GPUs."""
    carrier = settings.bounding.carrier
    if carrier in ("mailboxes", "nccl") and not plan.capacity.device_bytes:
        raise UsageError(
            f"bounding.carrier is {carrier}, which is for GPUs, and this run computes on CPUs: use "
            "bounding.carrier=auto"
        )
    if plan.method == "peel" and settings.bounding.max_exchanges is not None:
        raise UsageError(
            "bounding.max_exchanges ends band and fixpoint, and this run would peel: leave it out, limit the time with "
            "bounding.max_seconds, or set bounding.method to band or fixpoint"
        )
    return plan


def _chosen(settings: Settings, source: Source, capacity: Capacity) -> Plan:
    count = settings.partitioning.count
    graph = estimate(source, settings.ingest.sample_rows)
    one = _one_partition(settings, source, graph.figures(settings.output.compression), capacity)

    if settings.bounding.method in ("auto", "peel"):
        return _plan_on_gpus(one, count) if capacity.device_bytes else _plan_on_cpus(one, count)

    def plan(partitions: int, reason: str) -> Plan:
        if partitions == 1:
            return replace(one, reason=reason)
        return replace(one, partitions=partitions, copies=graph.copies(one.partitioning, partitions), reason=reason)

    if isinstance(count, int):
        return plan(count, _GIVEN)
    tried = [plan(*_one_each(capacity.workers))]
    while not tried[-1].fits() and tried[-1].partitions < MOST_CHOSEN:
        last = tried[-1]
        tried.append(plan(2 * last.partitions, f"with {last.partitions} {last.excess}"))
    return tried[-1] if tried[-1].fits() else _tightest(tried)


def _plan_on_gpus(one: Plan, count: int | str) -> Plan:
    """One partition on one GPU, if it fits, else shards: one on each worker's GPU. In one process only a given `count`
    makes shards: all lie on its GPU, and take more room there than one partition.

    Two GPUs peel the largest graph that fits one hardly quicker, and take longer to bring the edges together; one GPU
    peels in compact rows half as fast (docs/performance.md).
    """
    capacity = one.capacity
    most, why_most = min(capacity.workers, MOST_PEERS), _EACH
    if capacity.in_process:
        most, why_most = MOST_ON_ONE_DEVICE, "as many as one GPU works on at once"
    elif capacity.workers > most:
        why_most = f"as many as are allowed, of {capacity.workers:,} workers the others have none"
    if isinstance(count, int):
        groups = min(count, most)
        reason = _GIVEN if groups == count else f"{why_most}; partitioning.count is {count:,}"
        return replace(one, reason=reason) if groups == 1 else _in_shards(one, groups, groups, reason)
    if most == 1 or capacity.in_process:
        return one
    if one.compact_rows or not one.fits():
        return _in_shards(one, most, most, why_most)
    return replace(one, reason="one GPU has room for its edges")


def _plan_on_cpus(one: Plan, count: int | str) -> Plan:
    """One partition, if it fits the memory and is asked for or quickest, else shards: a group of them on each worker,
    or on some.
    """
    workers = one.capacity.workers
    if isinstance(count, int):
        if count == 1 and one.fits():
            return one
        groups = min(count, workers)
        return _in_shards(one, groups, max(count, groups * one.capacity.threads), _GIVEN)
    groups = min(workers, MAX_PARTITIONS, max(1, one.edges // LEAST_EDGES))
    if groups == 1 and one.fits():
        return one
    most, threads = min(workers, MAX_PARTITIONS), one.capacity.threads
    every = _in_shards(one, most, most * threads, _EACH if workers > 1 else f"with one {one.excess}")
    some = _in_shards(one, groups, groups * threads, f"{groups} workers are enough for its edges")
    return every if groups == workers or some.on_disk or not some.fits() else some


def _in_shards(one: Plan, groups: int, shards: int, reason: str) -> Plan:
    """The graph in so many groups of so many shards in all."""
    stored = one.graph.with_triangles
    return replace(
        one,
        partitions=groups,
        shards=shards,
        partitioning="shards",
        copies=Copies(stored, stored / groups, "estimated"),
        reason=reason,
    )


def _one_partition(settings: Settings, source: Source, graph: Figures, capacity: Capacity) -> Plan:
    most = _rows_per_block(settings.ingest.rows_per_block, source, graph, capacity)
    method, partitioning = settings.bounding.method, settings.partitioning.method
    return Plan(
        source,
        plan_blocks(source, most),
        partitions=1,
        partitioning="range" if partitioning == "auto" else partitioning,
        method="peel" if method == "auto" else method,
        capacity=capacity,
        graph=graph,
        copies=Copies(1.0, 1.0, "estimated"),
        disk_bytes=_free_bytes(settings),
        reason=_GIVEN if settings.partitioning.count == 1 else _ONE,
    )


def _rows_per_block(most: int, source: Source, graph: Figures, capacity: Capacity) -> int:
    """Such that all threads have some, and that what they read at once fits the workers' memory, if blocks can be as
    small; row groups are read whole.
    """
    rows = min(most, max(-(-source.rows // (capacity.workers * capacity.threads)), MIN_BLOCK_ROWS))
    if capacity.device_bytes or not capacity.memory_bytes:
        return rows
    room = (FILL * capacity.memory_bytes - WORKER_BYTES) / capacity.threads
    while rows > MIN_BLOCK_ROWS and rows * row_bytes(source, graph, rows) > room:
        rows = max(rows // 2, MIN_BLOCK_ROWS)
    return rows


def _one_each(workers: int) -> tuple[int, str]:
    """Partitions that `auto` starts with, and why."""
    if workers > MAX_PARTITIONS:
        return MAX_PARTITIONS, f"as many as are allowed, of {workers:,} workers the others have none"
    return workers, _EACH if workers > 1 else _ONE


def _tightest(plans: Sequence[Plan]) -> Plan:
    """Of plans none of which fits well the first that needs about as little as any, within the memory if one is."""
    device = min(plan.device_bytes for plan in plans)
    least = min(plan.worker_bytes for plan in plans)
    most, limit = WORTH * least, plans[0].capacity.memory_bytes
    if least <= limit:
        most = min(most, limit)
    enough = [plan for plan in plans if plan.worker_bytes <= most and plan.device_bytes <= WORTH * device]
    return enough[0] if enough else min(plans, key=lambda plan: (plan.device_bytes, plan.worker_bytes))


def _free_bytes(settings: Settings) -> int | None:
    """Free on the disk where the output will be; None where that is not known."""
    place = place_of(settings.output.path, settings.output.storage_options)
    if not place.is_local:
        return None
    folder = Path(place.url).absolute()
    try:
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free
    except OSError:
        return None
