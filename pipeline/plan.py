"""What a run would do: partitions, tasks, projected bytes. Reads footers only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dask.utils import format_bytes
from distributed.system import MEMORY_LIMIT

from ..kernels.peers import MOST_ON_ONE_DEVICE, MOST_PEERS
from ..tasks.errors import OutOfRoom, UsageError
from ..tasks.passwords import without_passwords
from ..tasks.sources import Block, Source, open_source, plan_blocks
from ..tasks.writing import VALUE_COLUMNS
from .cluster import check_device, connect, cores, has_gpu_workers, local_gpu
from .engine import Capacity, Engine
from .settings import Settings

__all__ = ["Plan", "make_plan", "open_input", "plan_run"]

ROW_BYTES = 40
"""Memory of a row while it is read and numbered."""
EDGE_BYTES = 110
"""Memory of a local edge, owned or ghost, from ingest to result, if the worker is this process.

Fitted, with WORKER_EDGE_BYTES and WORKER_BYTES, to R-MAT 16 to 20 and two web graphs on one partition and on four, by
one worker and by two: within a fifth of what was taken (docs/benchmarks.md).
"""
WORKER_EDGE_BYTES = 90
"""The same in a process of its own, which Dask has give back at once what is free (MALLOC_TRIM_THRESHOLD_)."""
GPU_EDGE_BYTES = 115
"""Memory of a local edge on a GPU, from ingest to result. Measured: 109 to 112, R-MAT 22 and 24 on one partition."""
GPU_ROW_BYTES = 60
"""Memory of a row on a GPU that reads and numbers it."""
GPU_FILL = 0.9
"""Share of a GPU's memory that a partition may take."""
WORKER_BYTES = 290 * 2**20
"""Memory of a worker with nothing to do, and of the kernels' buffers."""
FILL = 0.6
"""Share of a worker's memory that a plan may fill; the rest is Dask's, Arrow's and the allocator's."""
MOST_CHOSEN = 256
"""`auto` stops here: beyond, replication takes what smaller partitions give."""
MIN_BUCKET_ROWS = 1_000_000
"""Rows that make it worth to have one bucket more than partitions."""
MIN_BLOCK_ROWS = 250_000
"""Smaller blocks cost more in tasks than they bring in parallel reading."""


@dataclass(frozen=True)
class Plan:
    """What will run."""

    source: Source
    blocks: list[Block]
    partitions: int
    partitioning: str
    method: str
    """peel, band or fixpoint"""
    capacity: Capacity

    @property
    def replication(self) -> float:
        """Assumed copies of an edge over all partitions: measured on R-MAT by hash, the worst case, near 1.1 P^0.65."""
        return 1.0 if self.partitions == 1 else min(self.partitions, 1.1 * self.partitions**0.65)

    @property
    def buckets(self) -> int:
        """Ranges of ids that are numbered apart, at least: one for each partition on a GPU; on the CPU two for each
        thread while they are large enough, and one for each partition up to four for each thread. `stages.number`
        takes more where a worker's memory is too small for these.
        """
        if self.ingest_on_device:
            return self.partitions
        return max(min(self.partitions, 4 * self.capacity.workers * self.capacity.threads), self._pieces)

    @property
    def files(self) -> int:
        """Files that each bucket's edges are written to, and its vertices."""
        return max(1, self._pieces // self.buckets) if self.ingest_on_device else 1

    @property
    def _pieces(self) -> int:
        threads = self.capacity.workers * self.capacity.threads
        return min(2 * threads, self.source.rows // MIN_BUCKET_ROWS)

    @property
    def ingest_on_device(self) -> bool:
        """Whether edges are cleaned, numbered and written from the GPUs' memory; ids that are strings never are."""
        room = GPU_FILL * self.capacity.device_bytes * self.capacity.workers
        return self.source.kind == "integer" and 0 < self.source.rows * GPU_ROW_BYTES <= room

    @property
    def partition_bytes(self) -> int:
        """Projected memory of a task that bounds a partition on the host, every row being an edge of its own."""
        if self.ingest_on_device:
            return 0
        edge_bytes = EDGE_BYTES if self.capacity.in_process else WORKER_EDGE_BYTES
        return int(self.source.rows * self.replication / self.partitions * edge_bytes)

    @property
    def device_bytes(self) -> int:
        """Projected memory of a partition on a GPU; 0 if the CPU computes."""
        if not self.capacity.device_bytes:
            return 0
        return int(self.source.rows * self.replication / self.partitions * GPU_EDGE_BYTES)

    @property
    def at_once(self) -> int:
        """Partitions that a worker bounds at once."""
        return min(self.capacity.threads, -(-self.partitions // self.capacity.workers))

    @property
    def block_rows(self) -> int:
        """Rows of the largest block."""
        return max((block.rows for block in self.blocks), default=0)

    @property
    def _reading_bytes(self) -> int:
        return self.block_rows * ROW_BYTES * self.capacity.threads

    @property
    def worker_bytes(self) -> int:
        """Projected memory that a worker cannot do without: Dask spills what its running tasks do not need."""
        return WORKER_BYTES + max(self._reading_bytes, self.at_once * self.partition_bytes)

    @property
    def unspilled_bytes(self) -> int:
        """Projected memory of a worker that spills nothing."""
        return max(
            self.worker_bytes, WORKER_BYTES + -(-self.partitions // self.capacity.workers) * self.partition_bytes
        )

    @property
    def tasks(self) -> int:
        """Tasks until bounding starts and after it ends, without the parts that travel between workers."""
        return (
            5 * len(self.blocks)
            + (14 if self.partitions == 1 else 19) * self.partitions
            + (19 + 2 * self.files) * self.buckets
        )

    @property
    def can_peel_in_step(self) -> bool:
        """Whether all partitions fit GPUs that reach each other at once: one for each, or that of this process."""
        capacity = self.capacity
        if not capacity.device_bytes or self.partitions > MOST_PEERS:
            return False
        if capacity.shares_device:
            together = self.partitions * self.device_bytes
            return self.partitions <= MOST_ON_ONE_DEVICE and together <= GPU_FILL * capacity.device_bytes
        return capacity.in_step and self.partitions <= capacity.workers

    def fits(self) -> bool:
        """Whether the projected memory of a worker is within its limit."""
        limit = self.capacity.memory_bytes
        return self._fits_device() and (not limit or self.worker_bytes <= FILL * limit)

    def _fits_device(self) -> bool:
        return self.device_bytes <= GPU_FILL * self.capacity.device_bytes

    def refuse_if_hopeless(self) -> None:
        """Raises OutOfRoom if the projected memory of a worker, or of its GPU, exceeds its limit."""
        if not self._fits_device():
            raise OutOfRoom(
                f"each of {self.partitions} partitions would need about {format_bytes(self.device_bytes)} on a GPU "
                f"of {format_bytes(self.capacity.device_bytes)}: raise partitioning.count, or use cluster.device cpu"
            )
        limit = self.capacity.memory_bytes
        if limit and self.worker_bytes > limit:
            what, change = f"{self.at_once} of {self.partitions} partitions", "raise partitioning.count"
            if self._reading_bytes > self.at_once * self.partition_bytes:
                what = f"{self.capacity.threads} blocks of up to {self.block_rows:,} rows"
                change = "lower ingest.rows_per_block, write smaller row groups"
            raise OutOfRoom(
                f"a worker would need about {format_bytes(self.worker_bytes)} for {what} at once and has "
                f"{format_bytes(limit)}: {change}, give workers more memory (cluster.memory_limit_bytes) or fewer "
                "threads (cluster.threads_per_worker)"
            )

    def render(self) -> str:
        """The plan as text."""
        source, capacity = self.source, self.capacity
        limit = format_bytes(capacity.memory_bytes) if capacity.memory_bytes else "no limit"
        rows = [
            (
                "input",
                f"{without_passwords(source.path)}: {_many(len(source.files), 'file')}, {source.rows:,} rows, "
                f"{format_bytes(source.bytes)}",
            ),
            ("columns", f"{source.source_column}, {source.target_column} ({source.id_type})"),
            ("workers", f"{capacity.workers} x {_many(capacity.threads, 'thread')}, {limit} each"),
            ("device", _device(self)),
            ("blocks", f"{len(self.blocks)}, at most {self.block_rows:,} rows"),
            ("partitions", f"{self.partitions} by {self.partitioning}, at most {source.rows:,} edges in all"),
            ("replication", f"at most {self.replication:.1f} copies of an edge, assumed (by range it is often near 1)"),
            ("method", self.method),
            ("tasks", f"about {self.tasks}, and up to {self.partitions} for each exchange of bounding"),
            (
                "memory",
                f"{format_bytes(self.partition_bytes)} a partition, {format_bytes(self.unspilled_bytes)} a worker, "
                f"of which it may spill all but {format_bytes(self.worker_bytes)}",
            ),
            ("fits", "yes" if self.fits() else "tight: more than the recommended share of a worker's memory"),
        ]
        return "\n".join(f"{name:<12} {text}" for name, text in rows)


def _device(plan: Plan) -> str:
    if not plan.device_bytes:
        return "cpu"
    ingest = "rows cleaned and numbered there" if plan.ingest_on_device else "rows cleaned and numbered by the CPU"
    return f"gpu, {format_bytes(plan.device_bytes)} a partition of {format_bytes(plan.capacity.device_bytes)}; {ingest}"


def make_plan(settings: Settings) -> Plan:
    """Plan a run without starting it. A running scheduler is asked for its workers; nothing else is contacted.

    Raises InputError, and ClusterLost if a scheduler does not answer.
    """
    check_device(settings.cluster)
    source = open_input(settings)
    cluster = settings.cluster
    if cluster.scheduler is not None or cluster.scheduler_file is not None:
        with connect(cluster) as client:
            engine = Engine(client, "plan")
            engine.use(cluster.device)
            return plan_run(settings, source, engine.capacity)
    workers = cluster.workers or 1
    threads = cluster.threads_per_worker or max(1, cores() // workers)
    memory = cluster.memory_limit_bytes or MEMORY_LIMIT // workers
    capacity = Capacity(workers, threads, memory, in_process=cluster.workers is None)
    if has_gpu_workers(cluster):
        gpu = local_gpu(cluster)
        capacity = replace(
            capacity, device_bytes=gpu.memory_bytes, in_step=gpu.reaches_all, shares_device=capacity.in_process
        )
    return plan_run(settings, source, capacity)


def open_input(settings: Settings) -> Source:
    """The input's footers. Raises InputError."""
    given = settings.input
    return open_source(given.path, given.source_column, given.target_column, given.storage_options, VALUE_COLUMNS)


def plan_run(settings: Settings, source: Source, capacity: Capacity) -> Plan:
    """Choose blocks, partitions and method for the given workers. Raises UsageError if these cannot peel."""
    share = -(-source.rows // (capacity.workers * capacity.threads))
    blocks = plan_blocks(source, min(settings.ingest.rows_per_block, max(share, MIN_BLOCK_ROWS)))
    count = settings.partitioning.count

    def plan(partitions: int) -> Plan:
        method = settings.bounding.method
        made = Plan(source, blocks, partitions, settings.partitioning.method, method, capacity)
        if method != "auto":
            return made
        return replace(made, method="peel" if partitions == 1 or made.can_peel_in_step else "band")

    chosen = plan(count if isinstance(count, int) else capacity.workers)
    if settings.bounding.method == "peel":
        return _peeled(chosen if isinstance(count, int) or chosen.can_peel_in_step else plan(1))
    while not isinstance(count, int) and not chosen.fits() and chosen.partitions < MOST_CHOSEN:
        chosen = plan(2 * chosen.partitions)
    return chosen


def _peeled(plan: Plan) -> Plan:
    if plan.partitions == 1 or plan.can_peel_in_step:
        return plan
    raise UsageError(
        f"bounding.method peel works on one partition, on up to {MOST_ON_ONE_DEVICE} that fit one GPU together, or on "
        "one for each GPU of a machine whose GPUs reach each other's memory, "
        f"not on {plan.partitions} here: use band, or partitions 1"
    )


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
