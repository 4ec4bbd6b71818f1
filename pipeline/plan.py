"""What a run would do: partitions, tasks, projected bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dask.utils import format_bytes

from ..kernels.graph import MAX_LOCAL_EDGES
from ..tasks.errors import OutOfRoom
from ..tasks.estimate import Figures
from ..tasks.replication import Copies
from ..tasks.sources import Block, Source
from ..tasks.writing import TEXT_PER_GROUP
from .cluster import WORKER_BYTES
from .engine import Capacity
from .gpu_memory import compact_bytes, halves_of_a_shard, shards_bytes
from .plan_tasks import Layout
from .row_memory import distinct_of, in_parts, row_bytes
from .shard_memory import ShardMemory

__all__ = ["WORKER_BYTES", "Plan"]

NAMES = 1.5
"""Times that the ids of a worker's vertices are in memory, if they are strings, when the result is written."""
WRITTEN_TEXT = 3
"""Times that the text of a row group is in memory while it is written."""
HERE = 1.4
"""Times as much if the worker is this process, which has looked at the sample and keeps some of what is free. In worker
processes, too, for strings that are coded part by part. Fitted, like the two before and those of `row_memory`, to
blocks of 1 and 2 M rows read by one thread or two (docs/benchmarks.md).
"""
EDGE_BYTES = 45
"""Memory of an edge, from ingest to result, beside that of its copies, if the worker is this process.

Fitted, with the next six, to graphs with and without locality and triangles, and with few and with many vertices, on
one partition, on four and on sixteen, by one worker and by two: within a fifth of what was taken (docs/benchmarks.md).
"""
COPY_BYTES = 65
"""Memory of each copy of an edge that has triangles: only these are bounded."""
VERTEX_BYTES = 135
"""Memory of a vertex: its number, its degree, the component that it is in."""
WORKER_EDGE_BYTES = 42
"""Of an edge in a process of its own, which Dask has give back at once what is free (MALLOC_TRIM_THRESHOLD_)."""
WORKER_COPY_BYTES = 47
"""Of a copy there."""
WORKER_VERTEX_BYTES = 85
"""Of a vertex there."""
LEAST_RESIDENT = 64 * 2**20
"""Bytes of rows in files that stay in memory, however little there is."""
UNEVEN = 1.5
"""Of several workers, the one with most has so many times its share: partitions are not moved once they are placed."""
GPU_EDGE_BYTES = 120
"""Memory of a copy of an edge on a GPU, from ingest to result. Measured: 114 to 117, R-MAT 22 and 24, one partition."""
GPU_ROW_BYTES = 60
"""Memory of a row on a GPU that reads and numbers it."""
GPU_FILL = 0.9
"""Share of a GPU's memory that a partition may take."""
FILL = 0.6
"""Share of a worker's memory that a plan may fill; the rest is Dask's, Arrow's and the allocator's."""
_MORE_PARTITIONS = "raise partitioning.count"
MOST_BUCKETS = 2**15 - 1
"""As many as an int16 tells apart; with more rows buckets are larger."""
MIN_BUCKET_ROWS = 1_000_000
"""Rows that make it worth to have one bucket more than partitions."""
MESSAGES = 2.4
"""Times that the id of an edge is sent to each ghost of it, by bands. Measured: 2.1 to 2.5."""
MESSAGE_BYTES = 4
"""Of an id."""
KEPT_EDGE_BYTES = 16
"""What a checkpoint keeps of an edge, beside its copies."""
KEPT_COPY_BYTES = 46
"""What it keeps of each copy, with what is known of λ now and a while ago."""


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
    graph: Figures
    copies: Copies
    """Of an edge, over all partitions."""
    disk_bytes: int | None
    """Free on the output's disk; None in an object store."""
    reason: str
    """Why so many partitions."""
    shards: int = 0
    """Shards over all partitions, which are groups of them then; 0 where the graph is not peeled by shards."""

    @property
    def in_shards(self) -> bool:
        """Whether the graph is stored once, in shards, and peeled in step."""
        return self.shards > 0

    @property
    def on_device(self) -> bool:
        """Whether GPUs count triangles and peel."""
        return self.capacity.device_bytes > 0

    @property
    def on_disk(self) -> bool:
        """Whether rows of shards lie in files, as they do not fit the workers' memory."""
        limit = self.capacity.memory_bytes
        return self.in_shards and not self.on_device and 0 < FILL * limit < WORKER_BYTES + self._share_bytes

    @property
    def resident_bytes(self) -> int:
        """What a worker may keep in memory of rows that lie in files: a part of what is left beside all else."""
        free = int(FILL * self.capacity.memory_bytes) - WORKER_BYTES - self._shard_memory.peeling_in_files
        return max(LEAST_RESIDENT, free)

    @property
    def replication(self) -> float:
        """Copies of an edge that take memory; one without triangles counts once, for what it takes before bounding."""
        return max(1.0, self.copies.mean)

    @property
    def edges(self) -> int:
        """Edges of the graph, as estimated."""
        return self.graph.edges.likely

    @property
    def largest_edges(self) -> int:
        """Edges of the largest partition, with its ghosts; of a shard on a GPU, those that have an end there."""
        if self.in_shards and self.on_device:
            return halves_of_a_shard(self._closed_edges, self.shards)
        return round(self.edges * max(self.copies.largest, 1 / self.partitions))

    @property
    def _closed_edges(self) -> int:
        """Edges with triangles."""
        return round(self.edges * self.graph.with_triangles)

    @property
    def buckets(self) -> int:
        """Ranges of ids that are numbered apart, at least: one for each partition on a GPU; on the CPU two for each
        thread while they are large enough, and one for each partition up to four for each thread; MOST_BUCKETS at
        most. `stages.number` takes more where a worker's memory is too small for these.
        """
        if self.ingest_on_device:
            return self.partitions
        wanted = max(min(self.partitions, 4 * self.capacity.workers * self.capacity.threads), self._pieces)
        return min(wanted, MOST_BUCKETS)

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
        """Projected memory of a task that bounds the largest partition on the host."""
        if self.on_disk:
            return self._shard_memory.in_files
        largest = self._bounded_copies if self.partitions == 1 else self.copies.largest
        return self._host_bytes(1 / self.partitions, largest)

    @property
    def _bounded_copies(self) -> float:
        """Copies of an edge in all partitions, of edges that have triangles."""
        return self.graph.with_triangles if self.partitions == 1 else self.copies.mean

    def _host_bytes(self, share: float, copies: float) -> int:
        """Of a share of the edges and vertices, and of so many copies of each edge."""
        if self.ingest_on_device:
            return 0
        of_edge, of_copy, of_vertex = (
            (EDGE_BYTES, COPY_BYTES, VERTEX_BYTES)
            if self.capacity.in_process
            else (WORKER_EDGE_BYTES, WORKER_COPY_BYTES, WORKER_VERTEX_BYTES)
        )
        in_shards = self.in_shards and not self.on_device
        if in_shards:
            of_copy = 0
        size = int(self.edges * (of_edge * share + of_copy * copies) + self.graph.vertices.likely * of_vertex * share)
        return max(size, self._shard_memory.in_memory) if in_shards else size

    @property
    def _shard_memory(self) -> ShardMemory:
        """Of shards on CPUs; their results are written as those of any partition are."""
        share, vertices = self.graph.with_triangles, self.graph.vertices.likely
        return ShardMemory(self.edges, share, vertices, self.partitions, self.shards, self.capacity.in_process)

    @property
    def device_bytes(self) -> int:
        """Projected memory on a GPU of the largest partition, or of all its shards; 0 if the CPU computes."""
        if not self.on_device:
            return 0
        vertices = self.graph.vertices.likely
        if self.compact_rows:
            return compact_bytes(self.edges, self._closed_edges, vertices)
        if not self.in_shards:
            return self.largest_edges * GPU_EDGE_BYTES
        return shards_bytes(self.edges, self._closed_edges, vertices, self.shards, self.shards_on_a_gpu)

    @property
    def compact_rows(self) -> bool:
        """Whether the only partition is peeled in compact rows: its GPU has no room for others, which are quicker."""
        alone = self.on_device and self.method == "peel" and self.partitions == 1 and not self.in_shards
        return alone and self.largest_edges * GPU_EDGE_BYTES > GPU_FILL * self.capacity.device_bytes

    @property
    def shards_on_a_gpu(self) -> int:
        """One for each worker; in one process all."""
        return self.shards if self.capacity.in_process else -(-self.shards // self.capacity.workers)

    @property
    def at_once(self) -> int:
        """Partitions that a worker bounds at once: one for each thread, or, where these do not fit, as many as do, and
        one at least. They share the threads then.
        """
        most = self.most_at_once
        if not self.in_waves or not self.partition_bytes:
            return most
        room = int(FILL * self.capacity.memory_bytes) - WORKER_BYTES
        return max(1, min(most, room // self.partition_bytes))

    @property
    def most_at_once(self) -> int:
        """Partitions that a worker has threads for."""
        if self.in_shards:
            return 1
        return min(self.capacity.threads, -(-self.partitions // self.capacity.workers))

    @property
    def too_many(self) -> str:
        """What does not fit of partitions for all threads."""
        needed = format_bytes(WORKER_BYTES + self.most_at_once * self.partition_bytes)
        return (
            f"{self.most_at_once} would need ~{needed}, over {FILL:.0%} of {format_bytes(self.capacity.memory_bytes)}"
        )

    @property
    def block_rows(self) -> int:
        """Rows of the largest block."""
        return max((block.rows for block in self.blocks), default=0)

    @property
    def _reading_bytes(self) -> int:
        more = HERE if self.capacity.in_process or in_parts(self.source, self.graph, self.block_rows) else 1
        row = row_bytes(self.source, self.graph, self.block_rows) * more
        return int(self.block_rows * row) * self._blocks_at_once

    @property
    def _read_bytes(self) -> int:
        """What is kept of a worker's blocks until their ids have numbers."""
        blocks = -(-len(self.blocks) // self.capacity.workers)
        text = self.source.kind == "string"
        ids = distinct_of(self.graph.vertices.likely, 2 * self.block_rows) * (self.graph.id_bytes + 8 * text)
        return int(blocks * (ids + 8 * distinct_of(self.edges, self.block_rows)))

    @property
    def _blocks_at_once(self) -> int:
        return min(self.capacity.threads, -(-len(self.blocks) // self.capacity.workers))

    @property
    def worker_bytes(self) -> int:
        """Projected memory that a worker cannot do without: Dask spills what its running tasks do not need."""
        return WORKER_BYTES + max(self._reading_bytes, self._bounding_bytes, self._writing_bytes)

    @property
    def _bounding_bytes(self) -> int:
        return min(self.at_once * self.partition_bytes, self._share_bytes)

    @property
    def _share_bytes(self) -> int:
        """What all partitions of one worker take together."""
        share = 1 / self.partitions if self.in_shards else self._uneven_share
        return self._host_bytes(share, self._bounded_copies * share)

    @property
    def _uneven_share(self) -> float:
        return min(1.0, max(UNEVEN / self.capacity.workers, 1 / self.partitions))

    @property
    def _names_bytes(self) -> int:
        """What the ids of one worker's vertices take, if they are strings."""
        if self.source.kind == "integer":
            return 0
        share = min(1.0, UNEVEN / self.capacity.workers)
        return int(NAMES * share * self.graph.vertices.likely * self.graph.id_bytes)

    @property
    def _writing_bytes(self) -> int:
        """What a worker's threads take to write rows, if their ids are strings."""
        if self.source.kind == "integer":
            return 0
        text = 2 * self.edges * self.graph.id_bytes / self.buckets if self.buckets else 0
        return int(WRITTEN_TEXT * min(self.capacity.threads, max(1, self.buckets)) * min(text, TEXT_PER_GROUP))

    @property
    def unspilled_bytes(self) -> int:
        """Projected memory of a worker that spills nothing."""
        return WORKER_BYTES + max(
            self._reading_bytes + self._read_bytes, self._share_bytes, self._names_bytes + self._writing_bytes
        )

    @property
    def spilled_bytes(self) -> int:
        """What a worker would write to its disk, of what does not fit its memory."""
        limit = self.capacity.memory_bytes
        return max(0, self.unspilled_bytes - int(FILL * limit)) if limit else 0

    @property
    def messages(self) -> int:
        """Ids that partitions send each other in all."""
        if self.partitions == 1 or self.in_shards:
            return 0
        return round(MESSAGES * self.edges * max(0.0, self.copies.mean - self.graph.with_triangles))

    @property
    def checkpoint_bytes(self) -> int:
        """What a checkpoint takes."""
        return round(self.edges * (KEPT_EDGE_BYTES + KEPT_COPY_BYTES * self.replication))

    @property
    def in_waves(self) -> bool:
        """Whether workers hold partitions that they do not work at in files, as not all of them fit in memory."""
        limit = self.capacity.memory_bytes
        return not self.on_device and 0 < FILL * limit < WORKER_BYTES + self._share_bytes

    @property
    def tasks(self) -> int:
        """Tasks until bounding starts and after it ends, and parcels between workers: hardly more, often fewer."""
        together = self.in_waves
        layout = Layout(
            len(self.blocks),
            self.buckets,
            self.partitions,
            self.files,
            self.capacity.workers,
            apart=not self.capacity.in_process,
            placed=together,
            homes=together or self.method == "peel",
            edges=self.edges,
        )
        return layout.tasks(self.partitioning)

    def fits(self) -> bool:
        """Whether the projected memory of a worker is well within its limit."""
        limit = self.capacity.memory_bytes
        return (
            self.largest_edges <= MAX_LOCAL_EDGES
            and self._fits_device()
            and (not limit or self.worker_bytes <= FILL * limit)
        )

    @property
    def excess(self) -> str:
        """What does not fit."""
        if not self._fits_device():
            has = format_bytes(self.capacity.device_bytes)
            what = "a GPU's shards" if self.in_shards else "the largest"
            return f"{what} would need ~{format_bytes(self.device_bytes)} of a GPU that has {has}"
        if self.largest_edges > MAX_LOCAL_EDGES:
            return f"the largest would hold ~{self.largest_edges:,} edges, more than are allowed"
        has = format_bytes(self.capacity.memory_bytes)
        return f"a worker would need ~{format_bytes(self.worker_bytes)}, over {FILL:.0%} of its {has}"

    @property
    def remedy(self) -> str:
        """What makes the part of the graph smaller that a worker holds."""
        if self.method != "peel" or self.partitions < self.capacity.workers:
            return _MORE_PARTITIONS
        return "start more workers" + ", each with a GPU of its own" * self.on_device

    def _fits_device(self) -> bool:
        return self.device_bytes <= GPU_FILL * self.capacity.device_bytes

    def refuse_if_hopeless(self) -> None:
        """Raises OutOfRoom if a partition would hold too many edges, or if the projected memory of a worker or of its
        GPU, or half of the projected result, exceeds what there is.

        Where copies of edges are not estimated but assumed, only if it does with one copy of each.
        """
        if self.copies.basis != "estimated":
            least = Copies(self.graph.with_triangles, 1 / self.partitions, "estimated")
            replace(self, copies=least).refuse_if_hopeless()
            return
        more = self.remedy
        parts, ghosts = ("groups of shards", "") if self.in_shards else ("partitions", " with its ghosts")
        if self.largest_edges > MAX_LOCAL_EDGES:
            raise OutOfRoom(
                f"the largest of {self.partitions} {parts} would hold about {self.largest_edges:,} edges{ghosts}, over "
                f"the {MAX_LOCAL_EDGES:,} allowed: {more}"
            )
        if not self._fits_device():
            what = f"the largest of {self.partitions} partitions"
            if self.in_shards:
                what = f"{self.shards_on_a_gpu} of {self.shards} shards"
            # Banding leaves partitions that wait on the host.
            other = "use bounding.method=band with more partitions, " * (self.method == "peel")
            raise OutOfRoom(
                f"{what} would need about {format_bytes(self.device_bytes)} on a GPU of "
                f"{format_bytes(self.capacity.device_bytes)}: {more}, {other}or use cluster.device=cpu"
            )
        limit = self.capacity.memory_bytes
        if limit and limit < WORKER_BYTES:
            raise OutOfRoom(
                f"a worker needs about {format_bytes(WORKER_BYTES)} before it holds anything and has "
                f"{format_bytes(limit)}: give workers more memory (cluster.memory_limit_bytes=…), or start "
                "fewer of them"
            )
        if limit and self.worker_bytes > limit:
            what, change = f"{self.at_once} of {self.partitions} {parts}", more
            if self._reading_bytes > self._bounding_bytes:
                what = f"{self._blocks_at_once} of {len(self.blocks)} blocks, of up to {self.block_rows:,} rows,"
                change = "lower ingest.rows_per_block, write smaller row groups"
            raise OutOfRoom(
                f"a worker would need about {format_bytes(self.worker_bytes)} for {what} at once and has "
                f"{format_bytes(limit)}: {change}, give workers more memory (cluster.memory_limit_bytes=…) or fewer "
                "threads (cluster.threads_per_worker=…)"
            )
        if self.disk_bytes is not None and self.graph.output_bytes / 2 > self.disk_bytes:
            raise OutOfRoom(
                f"no room left for the result: it takes about {format_bytes(self.graph.output_bytes)}, and the disk of "
                f"output.path has {format_bytes(self.disk_bytes)}: free some, or choose another output folder"
            )
