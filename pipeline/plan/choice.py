"""The choice of a plan from footers, the workers' capacity and, if these are not enough, a sample of the rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...kernels.gpu_shards import MAX_PEERS, MAX_PEERS_PER_DEVICE
from ...kernels.graph import MAX_LOCAL_VERTICES
from ...kernels.runtime.threads import cores
from ...tasks.errors import UsageError
from ...tasks.estimate.estimate import GraphEstimate, estimate, upper_bounds
from ...tasks.ingest.packed import can_pack
from ...tasks.inputs.sources import Source, plan_blocks, read_with_types
from ...tasks.storage.folders import folder_at
from ..cluster.connecting.local import (
    WORKER_BYTES,
    check_device,
    check_least_workers,
    has_gpu_workers,
    host_memory_bytes,
    local_gpu,
    threads_of_a_worker,
)
from ..cluster.connecting.start import connect
from ..cluster.execution import Capacity, Execution
from ..cluster.session import Session
from ..inputs.input_object import open_input
from ..settings.models import BLOCK_ROWS, MAX_PARTITIONS, Settings
from ..stages.ingesting import block_bytes
from ..stages.limits import FILL
from .fit import excess
from .plan import NO_METHOD, Plan

if TYPE_CHECKING:
    from .programs import PlannedPrograms

LEAST_EDGES = 500_000
"""Edges for each worker that `auto` uses. With fewer, the rounds cost more than the work in them."""
GPU_BLOCK_ROWS = 8_000_000
"""Most rows of a block if several workers have GPUs. Each block sends a part to each bucket, and exchanging the parts
of smaller blocks takes longer than reading them.
"""
GPU_BLOCKS_A_THREAD, MOST_GPU_BLOCK_ROWS = 4, 16_000_000
"""Blocks for each thread of a single worker with a GPU, and the most rows of one. A GPU decodes large blocks faster."""
MIN_BLOCK_ROWS = 250_000
"""Fewest rows of a block. Smaller blocks cost more in tasks than parallel reading gains."""
_BAND_CARRIERS = ("mailboxes", "shared-memory", "dask")
"""Carriers of the settings with which GPUs peel bands: with mailboxes they read each other's memory."""
GPU_THREADS = 1000
"""About the number of CPU threads that peel as fast as a GPU: one H200 takes 0.29 s for λ of R-MAT 22, and 16 cores
19.5 s.
"""
HELP_AT = 0.1
"""Workers without a GPU peel bands if they have at least this share of the CPU threads that would be as fast as the
GPUs.
"""
_GIVEN = "as partitioning.count says"
_ONE = "one worker holds them all"
_EACH = "one for each worker"


def make_plan(settings: Settings) -> Plan:
    """Plan a run without starting it. It asks a running scheduler for its workers and contacts nothing else.

    Raises InputError, and ClusterLost if a scheduler does not answer.
    """
    check_device(settings.cluster)
    check_least_workers(settings.cluster)
    return read_with_types(open_input(settings), partial(_plan_input, settings))


def _plan_input(settings: Settings, source: Source) -> Plan:
    cluster = settings.cluster
    if cluster.scheduler is not None or cluster.scheduler_file is not None:
        with connect(cluster) as client:
            session = Session(client, "plan", waiting_seconds=cluster.waiting_seconds)
            capacity = capacity_of(settings, session, session.execution_on(cluster.device))
            return plan_run(settings, source, capacity)
    workers = cluster.workers or 1
    threads, for_kernels = threads_of_a_worker(cluster)
    memory = cluster.memory_limit_bytes or host_memory_bytes() // workers
    capacity = Capacity(
        workers,
        threads,
        memory,
        in_process=cluster.workers is None,
        kernel_threads=for_kernels,
        hosts=1,
        host_threads=min(cores(), workers * for_kernels),
    )
    if has_gpu_workers(cluster):
        gpu = local_gpu(cluster)
        capacity = replace(capacity, device_bytes=gpu.memory_bytes)
    if settings.bounding.carrier != "auto":
        capacity = replace(capacity, hosts=workers, host_threads=for_kernels)
    return plan_run(settings, source, capacity)


def plan_without_sample(settings: Settings, source: Source, capacity: Capacity) -> Plan | None:
    """The plan, if it fits for any content of the rows; None if rows must be sampled.

    It assumes that each row is an edge, and that each end of a row, or each number in the range of the ids, is a
    vertex. It has one partition, or as many shards on GPUs as `partitioning.count` says.
    """
    count = settings.partitioning.count
    one = _has_one_partition(settings, capacity)
    peels = settings.bounding.method in ("auto", "peel")
    on_gpus = capacity.device_bytes and not capacity.in_process and peels and settings.programs.find_lambda
    in_bands = not one and count == "auto" and peels and not capacity.device_bytes
    graph = upper_bounds(source) if one or on_gpus or in_bands else None
    if graph is None:
        return None
    plan = _one_partition(settings, source, graph, capacity)
    if in_bands:
        plan = _plan_on_cpus(plan, count)
        if plan.in_shards:  # there may be fewer edges than rows
            return None
    elif on_gpus and count != 1:
        plan = _plan_on_gpus(plan, count, settings.bounding.carrier in _BAND_CARRIERS)
        if count == "auto" and plan.partitions > 1:  # one GPU may have room for the edges that there are
            return None
    plan = _limited(settings, plan)
    return plan if _is_sure(plan) else None


def _has_one_partition(settings: Settings, capacity: Capacity) -> bool:
    """Whether the settings or the workers leave no choice but one partition."""
    count = settings.partitioning.count
    return (
        settings.input.two_sided
        or count == 1
        or (count == "auto" and capacity.workers == 1)
        or not settings.programs.find_lambda
    )


def _is_sure(plan: Plan) -> bool:
    """Whether a plan with upper bounds of the graph fits the workers and the disk."""
    room = plan.disk_bytes is None or plan.graph.output_bytes / 2 <= plan.disk_bytes
    return plan.fits() and room and not plan.compact_rows


def plan_run(settings: Settings, source: Source, capacity: Capacity) -> Plan:
    """Choose blocks, partitions and method for the given workers. Reads a sample of the rows.

    Raises UsageError if these workers cannot peel, or if they peel and bounding.max_exchanges is set. Raises InputError
    if the sample cannot be read.
    """
    return _limited(settings, _chosen(settings, source, capacity))


def _limited(settings: Settings, plan: Plan) -> Plan:
    """Return the plan. Raises UsageError for a limit on exchanges with peeling, which has no iterations, for a GPU
    carrier without GPUs, and for `band` on GPUs.
    """
    carrier = settings.bounding.carrier
    if carrier in ("mailboxes", "nccl") and not plan.capacity.device_bytes:
        raise UsageError(
            f"bounding.carrier is {carrier}, which is for GPUs, and this run computes on CPUs: use "
            "bounding.carrier=auto"
        )
    if plan.method == "band" and plan.capacity.device_bytes:
        raise UsageError("bounding.method is band, which computes on CPUs: use cluster.device=cpu, or another method")
    if plan.method == "peel" and settings.bounding.max_exchanges is not None:
        raise UsageError(
            "bounding.max_exchanges ends band and fixpoint, and this run would peel: leave it out, limit the time with "
            "bounding.max_seconds, or set bounding.method to band or fixpoint"
        )
    return plan


def _chosen(settings: Settings, source: Source, capacity: Capacity) -> Plan:
    count = settings.partitioning.count
    graph = estimate(source, settings.ingest.sample_rows)
    one = _one_partition(settings, source, graph.for_output(settings.output.compression), capacity)

    if not one.finds_lambda:
        return one
    if one.method == "peel":
        if not capacity.device_bytes:
            return _plan_on_cpus(one, count)
        return _plan_on_gpus(one, count, settings.bounding.carrier in _BAND_CARRIERS)
    if count == 1 or capacity.device_bytes:
        return one
    found = _in_bands(one)
    return replace(found, reason=f"each of {found.band_workers} workers holds them all") if found.in_bands else found


def _plan_on_gpus(one: Plan, count: int | str, in_bands: bool) -> Plan:
    """One partition on one GPU if it fits, else one shard on the GPU of each worker.

    With `in_bands` all GPUs peel bands of a graph that fits one of them. By itself the plan does not choose that: four
    GPUs were as fast as one at 0.5 G edges, and slower with fewer (docs/engineering/bands.md).

    In one process the plan has shards only if `count` is a number. All shards are then on one GPU, and they need more
    memory than one partition.

    For the largest graph that fits one GPU, two GPUs peel only slightly faster, and they take longer to exchange the
    edges. One GPU peels in compact rows at half the speed (docs/engineering/gpus.md).
    """
    capacity = one.capacity
    most, why_most = min(capacity.workers, MAX_PEERS), _EACH
    if capacity.in_process:
        most, why_most = MAX_PEERS_PER_DEVICE, "as many as one GPU works on at once"
    elif capacity.workers > most:
        why_most = f"the most allowed; of {capacity.workers:,} workers the others have none"
    if isinstance(count, int):
        groups = min(count, most)
        reason = _GIVEN if groups == count else f"{why_most}; partitioning.count is {count:,}"
        return replace(one, reason=reason) if groups == 1 else _in_shards(one, groups, groups, reason)
    if most == 1 or capacity.in_process:
        return _bands_of_gpus(one) if in_bands and capacity.helpers else one
    if one.compact_rows or not one.fits():
        return _in_shards(one, most, most, why_most)
    if in_bands and (bands := _bands_of_gpus(one)).in_bands:
        return bands
    return replace(one, reason="one GPU has room for its edges")


def _bands_of_gpus(one: Plan) -> Plan:
    """Bands on all GPUs, if each GPU can hold the graph and the graph is large enough.

    Workers without a GPU also peel bands if they are fast enough together.
    """
    capacity = one.capacity
    workers = min(capacity.workers, max(1, one.edges // LEAST_EDGES))
    pays = capacity.helper_threads >= HELP_AT * GPU_THREADS * workers
    helpers = capacity.helpers if pays and not capacity.in_process else 0
    reason = f"each of {workers} GPUs holds them all and peels bands of λ"
    if helpers:
        reason += f", and so do {helpers} workers without one"
    bands = replace(one, band_workers=workers, band_helpers=helpers, reason=reason)
    return bands if bands.in_bands and bands.fits_device() else one


def _plan_on_cpus(one: Plan, count: int | str) -> Plan:
    """One partition if it fits the memory and is either requested or fastest, else shards.

    Each worker has a group of shards. If some of the workers are enough, the others have none.
    """
    workers = one.capacity.workers
    if isinstance(count, int):
        if count == 1 and one.fits():
            return one
        groups = min(count, workers)
        return _in_shards(one, groups, max(count, groups * one.capacity.threads), _GIVEN)
    groups = min(workers, MAX_PARTITIONS, max(1, one.edges // LEAST_EDGES))
    banded = _in_bands(one)
    if one.fits() and (banded.in_bands or groups == 1 or one.capacity.hosts == 1):
        return banded
    most, threads = min(workers, MAX_PARTITIONS), one.capacity.threads
    every = _in_shards(one, most, most * threads, _EACH if workers > 1 else f"with one {excess(one)}")
    some = _in_shards(one, groups, groups * threads, f"{groups} workers are enough for its edges")
    return _last_edges_elsewhere(every if groups == workers or some.on_disk or not some.fits() else some)


def _in_bands(one: Plan) -> Plan:
    """The plan for a graph that one worker can hold: bands on several hosts, if the graph is large enough.

    Workers of one host share its cores: one of them peels with the threads of all.
    """
    hosts, threads = min(one.capacity.hosts, max(1, one.edges // LEAST_EDGES)), one.capacity.host_threads
    if hosts > 1:
        bands = replace(one, band_workers=hosts)
        if bands.fits():
            return replace(bands, reason=f"each of {hosts} workers holds them all and peels bands of λ")
    if threads > one.capacity.kernel_threads:
        return replace(one, reason=f"one worker holds them all, and uses the {threads} cores of its host")
    return one


def _last_edges_elsewhere(shards: Plan) -> Plan:
    """The plan in shards that stop when a worker can hold the remaining edges, if that saves time; else the plan as it
    is.

    Several hosts then peel bands, each with at least LEAST_EDGES of the remaining edges. Workers of one host share its
    cores: one of them peels all remaining edges with the threads of all.
    """
    capacity = shards.capacity
    if capacity.workers == 1 or capacity.in_process or capacity.device_bytes or not capacity.memory_bytes:
        return shards
    if shards.graph.vertices.most > MAX_LOCAL_VERTICES:
        return shards
    hosts = min(capacity.hosts, max(1, shards.remaining_edges(True) // LEAST_EDGES))
    left = shards.remaining_edges(hosts > 1)
    found = replace(shards, bands_at=left, bands_on=hosts)
    if not left or not found.seconds_saved > 0:
        return shards
    workers, how = f"each of {hosts} workers holds", "peels in bands of λ"
    if hosts == 1:
        workers, how = "one worker holds", f"peels with the {capacity.host_threads} cores of its host"
    if left >= shards.edges * shards.graph.with_triangles:
        then = f"to count triangles; {workers} all edges that have some, and {how}"
    else:
        then = f"until ~{float(f'{left:.3g}'):,.0f} edges are left, which {workers} and {how}"
    return replace(found, reason=f"{shards.reason}, {then}")


def capacity_of(settings: Settings, session: Session, execution: Execution) -> Capacity:
    """What the workers offer. Each worker counts as a host if the settings name a carrier between workers."""
    return session.capacity_by_host(execution) if settings.bounding.carrier == "auto" else execution.capacity


def _in_shards(one: Plan, groups: int, shards: int, reason: str) -> Plan:
    """The plan with `groups` groups and `shards` shards in all."""
    return replace(one, partitions=groups, shards=shards, reason=reason)


def _one_partition(settings: Settings, source: Source, graph: GraphEstimate, capacity: Capacity) -> Plan:
    most = _rows_per_block(settings.ingest.rows_per_block, source, graph, capacity)
    method = "peel" if settings.bounding.method == "auto" else settings.bounding.method
    return Plan(
        source,
        plan_blocks(source, most),
        partitions=1,
        method=method if settings.programs.find_lambda else NO_METHOD,
        capacity=capacity,
        graph=graph,
        disk_bytes=_free_bytes(settings),
        programs=_programs(settings, source, graph, capacity),
        packs=can_pack(source) and not settings.input.isolated,
        reason=_GIVEN if settings.partitioning.count == 1 else _ONE,
    )


def _programs(settings: Settings, source: Source, graph: GraphEstimate, capacity: Capacity) -> PlannedPrograms | None:
    if not settings.programs.vertex_programs:
        return None
    from .programs import PlannedPrograms  # imports all programs

    sizes = source.rows, graph.edges.likely, graph.vertices.likely
    found = PlannedPrograms.of(settings, source.directed, *sizes, capacity)
    return found if found.programs else None


def _rows_per_block(most: int | None, source: Source, graph: GraphEstimate, capacity: Capacity) -> int:
    """Rows of a block, so that all threads have blocks and the blocks read at the same time fit the workers' memory.

    At most `most`, if given. A task reads whole row groups, so blocks may be larger.
    """
    if most is None:
        most = BLOCK_ROWS
        if capacity.device_bytes and capacity.workers > 1:
            most = GPU_BLOCK_ROWS
        elif capacity.device_bytes:
            own = source.rows // (GPU_BLOCKS_A_THREAD * capacity.threads)
            most = min(max(BLOCK_ROWS, own), MOST_GPU_BLOCK_ROWS)
    rows = min(most, max(-(-source.rows // (capacity.workers * capacity.threads)), MIN_BLOCK_ROWS))
    if capacity.device_bytes or not capacity.memory_bytes:
        return rows
    room = (FILL * capacity.memory_bytes - WORKER_BYTES) / capacity.threads
    while rows > MIN_BLOCK_ROWS and block_bytes(source, graph, rows) > room:
        rows = max(rows // 2, MIN_BLOCK_ROWS)
    return rows


def _free_bytes(settings: Settings) -> int | None:
    """Free bytes on the disk of the output; None if they are not known."""
    place = folder_at(settings.output.path, settings.output.storage_options)
    if not place.is_local:
        return None
    folder = Path(place.url).absolute()
    try:
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free
    except OSError:
        return None
