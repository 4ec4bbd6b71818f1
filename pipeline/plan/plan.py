"""A plan: the facts of a run, the counts that follow from them, and the memory that the run is projected to take."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ...kernels.graph import MAX_LOCAL_EDGES
from ...tasks.estimate.estimate import GraphEstimate
from ...tasks.ingest.packed import has_dense_ids
from ...tasks.inputs.sources import InputBlock, Source
from ...tasks.publish.tables import TEXT_PER_GROUP
from ..cluster.connecting.local import CLIENT_BYTES, WORKER_BYTES
from ..cluster.execution import RESULTS_TOGETHER, Capacity
from ..stages.extracting import extract_tasks, tracks_tasks
from ..stages.gpu_memory import compact_bytes, halves_of_a_shard, shards_bytes
from ..stages.ingesting import (
    block_bytes,
    coding_bytes,
    distinct_ids,
    distinct_of,
    number_tasks,
    read_tasks,
    sorted_groups,
)
from ..stages.layout import Layout
from ..stages.limits import FILL, GPU_FILL, MOST_BUCKETS, PACKED_ROW_BYTES, SORTED_SHARE
from ..stages.partitioning import order_tasks, partition_tasks
from ..stages.publishing import publish_tasks, results_tasks
from ..stages.shard_memory import ShardMemory
from .seconds import predicted_seconds, seconds_saved

if TYPE_CHECKING:
    from .programs import PlannedPrograms


GPU_ROW_BYTES = 60
"""Memory of a row on a GPU that cleans and numbers it."""
GPU_STRING_BYTES = 68
"""Memory of a string, beside its own bytes, on a GPU that codes the strings of a block."""
GPU_ROW_IN_PARTS_BYTES = 20
"""Memory of a row on a GPU that numbers rows in parts, besides the rows sorted at once: 16 for packed rows and the same
rows sorted, and then 17 for the edges of all parts and the ranks of their ends.
"""
FEW_BUCKETS = 4
"""Fewest buckets of a large graph, also on a worker with fewer threads, since buckets differ in size."""
MIN_BUCKET_ROWS = 1_000_000
"""Rows for each bucket beyond one per partition."""
FILES_A_THREAD = 3
"""Files of edges for each thread that writes, where GPUs compute. Each thread has equally many, one after the other."""
COUNTER_BYTES = 16
"""Memory of a vertex for each thread that counts butterflies or builds an index of them."""
LEAST_INDEX_BYTES, MOST_INDEX_BYTES = 64 * 2**20, 2**62
"""Memory for an index of butterflies on a small worker, and on one without a limit."""
NO_METHOD = "none"
"""The method of a run that does not compute λ."""
CHECKPOINT_EDGE_BYTES = 62
"""Bytes of an edge in a checkpoint, with its state now and at the checkpoint before."""


@dataclass(frozen=True)
class PlanFacts:
    """The facts of a planned run: its input, workers, partitions and estimates."""

    source: Source
    blocks: list[InputBlock]
    partitions: int
    """Groups of shards, or 1: one worker holds the graph, or several hold copies of it."""
    method: str
    """peel, band or fixpoint; none in a run without λ"""
    capacity: Capacity
    graph: GraphEstimate
    disk_bytes: int | None
    """Free on the output's disk; None in an object store."""
    reason: str
    """Why the run has this number of partitions."""
    programs: PlannedPrograms | None = None
    """The vertex programs of the run; None if there are none."""
    packs: bool = False
    """Whether rows are packed if a GPU cleans them (`tasks/ingest/packed`)."""
    shards: int = 0
    """Shards in all groups; 0 if the graph is not peeled by shards."""
    band_workers: int = 1
    """Workers that each hold a copy of the graph; 1 if one worker holds it, or if shards do."""
    band_helpers: int = 0
    """Workers without a GPU that peel bands beside those with a GPU."""

    bands_at: int | None = None
    """Remaining edges at which shards stop, since a worker can hold that many; None if shards peel to the end."""
    bands_on: int = 1
    """Workers that then peel bands; 1 if one worker peels all remaining edges."""

    @property
    def finds_lambda(self) -> bool:
        """Whether the run computes λ."""
        return self.method != NO_METHOD

    @property
    def in_shards(self) -> bool:
        """Whether the graph is stored once, in shards, and peeled in step."""
        return self.shards > 0

    @property
    def in_bands(self) -> bool:
        """Whether several workers find λ, each with a copy of the graph."""
        return self.band_workers > 1 or self.band_helpers > 0

    @property
    def on_device(self) -> bool:
        """Whether GPUs count triangles and peel."""
        return self.capacity.device_bytes > 0

    @property
    def edges(self) -> int:
        """Edges of the graph, as estimated."""
        return self.graph.edges.likely

    @property
    def seconds(self) -> float | None:
        """Predicted duration of a run for λ; None on GPUs, without λ, and if triangles are not estimated."""
        triangles = self.graph.triangles
        if triangles is None or self.on_device or self.method != "peel" or self.source.two_sided:
            return None
        if not self.in_shards:
            return self.seconds_in_bands(self.band_workers)
        found = predicted_seconds(self.edges, triangles, self.capacity.workers * self.capacity.kernel_threads)
        return found - self.seconds_saved

    @property
    def seconds_saved(self) -> float:
        """Predicted seconds that the run saves, compared with shards to the end, by peeling the last `bands_at` edges
        in bands or on one worker. Infinite, of either sign, if triangles are not estimated.
        """
        if self.bands_at is None:
            return 0.0
        triangles = inf if self.graph.triangles is None else self.graph.triangles
        own = self.bands_at, self._closed_edges, triangles
        return seconds_saved(*own, self.capacity.host_threads, self.bands_on)

    def seconds_in_bands(self, workers: int) -> float:
        """Predicted duration on `workers` workers that peel bands, or on one worker. Call it only if `seconds` is not
        None.
        """
        triangles = self.graph.triangles or 0
        return predicted_seconds(self.edges, triangles, self.capacity.host_threads, workers)

    @property
    def _closed_edges(self) -> int:
        """Edges with triangles."""
        return round(self.edges * self.graph.with_triangles)

    @property
    def largest_edges(self) -> int:
        """Edges of a partition or group; on GPUs, edges with an end in the largest shard."""
        if self.in_shards and self.on_device:
            return halves_of_a_shard(self._closed_edges, self.shards)
        return round(self.edges / self.partitions)

    @property
    def block_rows(self) -> int:
        """Rows of the largest block."""
        return max((block.rows for block in self.blocks), default=0)

    @property
    def blocks_at_once(self) -> int:
        """Blocks that a worker reads at once."""
        return min(self.capacity.threads, -(-len(self.blocks) // self.capacity.workers))

    @property
    def shards_on_a_gpu(self) -> int:
        """Shards of a GPU: those of one worker; all shards if the workers are in one process."""
        return self.shards if self.capacity.in_process else -(-self.shards // self.capacity.workers)

    @property
    def ingest_on_device(self) -> bool:
        """Whether rows are cleaned, numbered and written from the GPUs' memory. Rows with weights stay in host memory.
        The GPUs code the strings of each block as positions among the distinct ones, which stay in host memory.
        """
        if self.source.weights is not None:
            return False
        return self._fits_at_once or self.ingest_in_parts

    @property
    def _fits_at_once(self) -> bool:
        rows = self.source.rows * GPU_ROW_BYTES / self.capacity.workers
        if self.source.kind == "string":
            rows += self.blocks_at_once * 2 * self.block_rows * (self.graph.id_bytes + GPU_STRING_BYTES)
        return 0 < rows <= GPU_FILL * self.capacity.device_bytes

    @property
    def ingest_in_parts(self) -> bool:
        """Whether the GPU of this process numbers rows in several buckets, as it has no room for all rows at once.

        Edges of a single partition are then moved to host memory while the partition is made and bounded. The footers
        must tell that the ids are dense, as other rows cannot be numbered in parts.
        """
        rows, device = self.source.rows, self.capacity.device_bytes
        alone = self.capacity.in_process and self.method == "peel" and self.partitions == 1 and not self.in_shards
        if not (device and alone and self._has_dense_rows):
            return False
        fits = rows * GPU_ROW_IN_PARTS_BYTES <= (GPU_FILL - 2 * SORTED_SHARE) * device
        return fits and (not self._fits_at_once or self.graph.edges.most > MAX_LOCAL_EDGES)

    @property
    def _has_dense_rows(self) -> bool:
        """Whether GPUs sort packed rows whose ids are dense, as the footers tell."""
        low, high = self.source.id_range or (-1, -1)
        return self.packs and low >= 0 and has_dense_ids(self.source.rows, high)

    @property
    def sorted_groups(self) -> int:
        """Groups of blocks whose rows GPUs sort together; 0 if they do not."""
        if self.ingest_on_device and self.packs and self.buckets == 1:
            return 1
        if not (self.ingest_on_device and self._has_dense_rows):
            return 0
        workers = min(self.capacity.workers, len(self.blocks))
        return workers * sorted_groups(-(-self.source.rows // max(workers, 1)), self.capacity)

    @property
    def buckets(self) -> int:
        """Minimum number of buckets, which are ranges of ids that are numbered separately.

        On GPUs there is one for each shard, or several if the rows are numbered in parts. On CPUs the number is the
        larger of two, up to MOST_BUCKETS. The first is one for each thread of this process, or for every second thread
        of worker processes, whose tasks exchange more slowly; at least FEW_BUCKETS; and at most one for each
        MIN_BUCKET_ROWS rows. The second is one for each group, but at most four for each thread. The stage `number`
        makes more buckets if a worker's memory is too small for these.
        """
        if self.ingest_in_parts:
            return max(2, -(-self.source.rows * PACKED_ROW_BYTES // int(SORTED_SHARE * self.capacity.device_bytes)))
        if self.ingest_on_device:
            return self.partitions
        threads = self.capacity.workers * self.capacity.threads
        large_enough = self.source.rows // MIN_BUCKET_ROWS
        busy = threads if self.capacity.in_process else max(self.capacity.workers, threads // 2)
        wanted = max(min(self.partitions, 4 * threads), min(max(busy, FEW_BUCKETS), large_enough))
        return min(wanted, MOST_BUCKETS)

    @property
    def files(self) -> int:
        """Files for the edges of each bucket, and for its vertices."""
        if not self.ingest_on_device:
            return 1
        threads = self.capacity.workers * self.capacity.background_threads
        return max(1, min(FILES_A_THREAD * threads, self.source.rows // MIN_BUCKET_ROWS) // self.buckets)

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint."""
        return self.edges * CHECKPOINT_EDGE_BYTES


ID_COPIES = 1.5
"""Copies in memory of the string ids of a worker's vertices while the result is written."""
TEXT_COPIES = 3
"""Copies in memory of the text of a row group while it is written."""
IN_PROCESS_FACTOR = 1.4
"""Factor on the memory of rows, text aside, if the worker is this process, which has read the sample and keeps freed
memory. Fitted, like the two constants before and those of `stages.ingesting`, to blocks read by one or two threads
(docs/engineering/memory.md).
"""
EDGE_BYTES = 45
"""Memory of an edge from ingest to result, if the worker is this process.

This and the next six constants are fitted to graphs with and without locality and triangles, with few and with many
vertices, on one, four and sixteen partitions, with one and two workers. The fit is within a fifth of the memory that
was measured (docs/engineering/memory.md).
"""
COPY_BYTES = 35
"""Additional memory of an edge with triangles. Edges without triangles are not bounded."""
VERTEX_BYTES = 150
"""Memory of a vertex: its number, its degree and its component."""
WORKER_EDGE_BYTES = 42
"""Memory of an edge in a worker process. Dask returns freed memory there at once (MALLOC_TRIM_THRESHOLD_)."""
WORKER_COPY_BYTES = 28
"""Additional memory of an edge with triangles in a worker process."""
BAND_COPY_BYTES = 27
"""Additional memory of an edge with triangles if workers peel bands, or if the method is band. From R-MAT 20 on two
workers; within a tenth for method band on one (docs/engineering/memory.md).
"""
WORKER_VERTEX_BYTES = 115
"""Memory of a vertex in a worker process."""
REMAINING_VERTEX_BYTES = 30
"""Memory of a vertex of the graph in a worker that peels the edges that shards have left: its mark, its number, and its
row if it has one.
"""
HELD_EDGE_BYTES = 12
"""Memory of an edge in its bucket: its ends, as numbers."""
HELD_VERTEX_BYTES = 24
"""Memory of a vertex in its bucket: its id, number and degree."""
MIN_RESIDENT_BYTES = 64 * 2**20
"""Fewest bytes of rows in files that stay in memory, even if less memory is free."""
IMBALANCE = 1.5
"""Largest share of a worker over the mean share."""
MOVED_EDGE_BYTES = 26
"""Host memory of an edge whose row is numbered in parts on a GPU: 8 for its ends in its bucket and 6 for its row there,
while it is peeled, and 12 for its end, triangles and λ if the GPU has no room for them.
"""
GPU_BAND_BYTES = 34
"""Additional memory of an edge on a GPU that peels bands; 10 of them hold what other GPUs read."""
GPU_EDGE_BYTES = 120
"""Memory of an edge on a GPU, from ingest to result. Measured: 114 to 117, R-MAT 22 and 24, one partition."""


@dataclass(frozen=True)
class Plan(PlanFacts):
    """What a run will do, and the memory that this takes. All bytes are projections."""

    @property
    def _idle_bytes(self) -> int:
        """Memory of a worker's process without work."""
        return WORKER_BYTES + (CLIENT_BYTES if self.capacity.in_process else 0)

    @property
    def partition_bytes(self) -> int:
        """Projected host memory of a task that bounds the only partition, or a group."""
        return self._shard_memory.in_files if self.on_disk else self._host_bytes(1 / self.partitions)

    @property
    def worker_bytes(self) -> int:
        """Projected memory of a worker's running tasks. Dask can spill everything else."""
        running = self.reading_bytes, self.bounding_bytes, self._writing_bytes, self.programs_bytes
        return self._idle_bytes + max(running)

    @property
    def index_bytes(self) -> int | None:
        """Memory for an index of butterflies: what the worker has beside the graph. None if λ counts triangles."""
        if not self.source.two_sided:
            return None
        limit = self.capacity.memory_bytes
        return max(int(FILL * limit) - self.worker_bytes, LEAST_INDEX_BYTES) if limit else MOST_INDEX_BYTES

    @property
    def unspilled_bytes(self) -> int:
        """Projected memory of a worker that does not spill."""
        return self._idle_bytes + max(
            self.reading_bytes + self._read_bytes,
            self._share_bytes + self._names_bytes + self._writing_bytes,
            self._held_bytes + self.programs_bytes,
        )

    @property
    def programs_bytes(self) -> int:
        """Projected host memory of a worker for vertex programs, besides the edges in buckets."""
        if self.programs is None:
            return 0
        if self.programs_in_files:
            return self.programs.bytes_with_pieces
        return self.programs.bytes

    @property
    def programs_in_files(self) -> bool:
        """Whether blocks of vertex programs are in files, because they do not fit the workers' memory."""
        limit = self.capacity.memory_bytes
        if self.programs is None or self.on_device or self.capacity.in_process:
            return False
        return 0 < FILL * limit < self._idle_bytes + self._held_bytes + self.programs.bytes

    @property
    def _held_bytes(self) -> int:
        """Memory of the edges and ids that a worker's buckets hold while vertex programs run."""
        share = min(1.0, max(IMBALANCE / self.capacity.workers, 1 / self.partitions))
        return int(share * (HELD_EDGE_BYTES * self.edges + HELD_VERTEX_BYTES * self.graph.vertices.likely))

    @property
    def spilled_bytes(self) -> int:
        """Bytes that a worker spills to its disk."""
        limit = self.capacity.memory_bytes
        return max(0, self.unspilled_bytes - int(FILL * limit)) if limit else 0

    @property
    def results_together(self) -> int:
        """Most results of one worker from which one task takes parts: one, if workers spill results."""
        return 1 if self.spilled_bytes else RESULTS_TOGETHER

    @property
    def on_disk(self) -> bool:
        """Whether rows of shards are in files, because they do not fit the workers' memory."""
        limit = self.capacity.memory_bytes
        return self.in_shards and not self.on_device and 0 < FILL * limit < self._idle_bytes + self._share_bytes

    @property
    def in_waves(self) -> bool:
        """Whether workers keep results that wait for a task in files, because not all of them fit in memory."""
        limit = self.capacity.memory_bytes
        return not self.on_device and 0 < FILL * limit < self._idle_bytes + self._share_bytes

    @property
    def resident_bytes(self) -> int:
        """Bytes of rows in files that a worker may keep in memory: the memory that is left for them."""
        free = int(FILL * self.capacity.memory_bytes) - self._idle_bytes - self._shard_memory.peeling_in_files
        return max(MIN_RESIDENT_BYTES, free)

    @property
    def device_bytes(self) -> int:
        """Projected memory on a GPU of the largest partition, or of all shards of the GPU; 0 if the CPU computes."""
        if not self.on_device or not self.finds_lambda:
            return 0
        vertices = self.graph.vertices.likely
        if self.compact_rows:
            return compact_bytes(self.edges, self._closed_edges, vertices, moved=self.ingest_in_parts)
        if not self.in_shards:
            return self.largest_edges * (GPU_EDGE_BYTES + (GPU_BAND_BYTES if self.in_bands else 0))
        return shards_bytes(self.edges, self._closed_edges, vertices, self.shards, self.shards_on_a_gpu)

    @property
    def is_whole(self) -> bool:
        """Whether the only partition is peeled on a GPU."""
        return self.on_device and self.method == "peel" and self.partitions == 1 and not self.in_shards

    @property
    def compact_rows(self) -> bool:
        """Whether peeling starts in compact rows. They are slower, and used while other rows do not fit."""
        return self.is_whole and self.largest_edges * GPU_EDGE_BYTES > GPU_FILL * self.capacity.device_bytes

    @property
    def layout(self) -> Layout:
        """The sizes that determine the number of tasks."""
        return Layout(
            len(self.blocks),
            self.buckets,
            self.partitions,
            self.files,
            self.capacity.workers,
            self.capacity.threads,
            apart=not self.capacity.in_process,
            results_together=self.results_together,
            edges=self.edges,
            sorted_groups=self.sorted_groups,
        )

    @property
    def tasks(self) -> int:
        """Tasks of all stages, as the stages predict, except the rounds of bounding; close to the upper bound."""
        found = stage_tasks(self.layout, self.in_shards)
        if self.programs is not None:
            found += self.programs.tasks(self.layout)
        return found

    def fits(self) -> bool:
        """Whether the projected memory of a worker is well within its limit."""
        limit = self.capacity.memory_bytes
        return not self.has_too_many_edges and self.fits_device() and (not limit or self.worker_bytes <= FILL * limit)

    @property
    def has_too_many_edges(self) -> bool:
        """Whether a partition has more edges than can be numbered. A partition made in parts has no such limit."""
        return self.largest_edges > MAX_LOCAL_EDGES and not self.ingest_in_parts

    def may_fit_device(self) -> bool:
        """Whether a GPU has enough memory if shards are equally large and nothing is kept in reserve.

        The share of the edges that have triangles is an upper estimate for a graph of which a small part was sampled.
        """
        if not (self.in_shards and self.on_device):
            return self.fits_device()
        own = self.edges, self._closed_edges, self.graph.vertices.likely, self.shards, self.shards_on_a_gpu
        return shards_bytes(*own, largest=1.0) <= self.capacity.device_bytes

    def fits_device(self) -> bool:
        """Whether the projected memory on a GPU is within its limit."""
        return self.device_bytes <= GPU_FILL * self.capacity.device_bytes

    def remaining_edges(self, bands: bool) -> int:
        """Edges that a worker has memory for once its shards have stopped for good, to peel them alone or in bands."""
        held = 0 if self.on_disk else self._shard_memory.stopped
        vertices = self.graph.vertices.likely * REMAINING_VERTEX_BYTES
        room = FILL * self.capacity.memory_bytes - self._idle_bytes - held - vertices
        return max(0, min(int(room / (WORKER_COPY_BYTES + BAND_COPY_BYTES * bands)), MAX_LOCAL_EDGES))

    def _host_bytes(self, share: float) -> int:
        """Host memory of a share of the edges and vertices."""
        if self.ingest_on_device:
            return int(share * self.edges * MOVED_EDGE_BYTES) if self.ingest_in_parts else 0
        of_edge, of_copy, of_vertex = (
            (EDGE_BYTES, COPY_BYTES, VERTEX_BYTES)
            if self.capacity.in_process
            else (WORKER_EDGE_BYTES, WORKER_COPY_BYTES, WORKER_VERTEX_BYTES)
        )
        if self.in_bands or self.method == "band":
            of_copy += BAND_COPY_BYTES
        in_shards, in_copy = self.in_shards and not self.on_device, self.graph.with_triangles
        if self.source.two_sided:
            in_copy = 1.0  # a sample does not tell which edges are in butterflies
            of_vertex += COUNTER_BYTES * self.capacity.kernel_threads
        bounded = 0.0 if in_shards or not self.finds_lambda else of_copy * in_copy
        size = int(share * (self.edges * (of_edge + bounded) + self.graph.vertices.likely * of_vertex))
        return max(size, self._shard_memory.in_memory) if in_shards else size

    @property
    def _shard_memory(self) -> ShardMemory:
        """Memory of shards on CPUs, except while results are written."""
        share, vertices = self.graph.with_triangles, self.graph.vertices.likely
        return ShardMemory(self.edges, share, vertices, self.partitions, self.shards, self.capacity.in_process)

    @property
    def _share_bytes(self) -> int:
        """Memory of the edges and vertices that one worker holds."""
        return self._host_bytes(1 / self.partitions)

    @property
    def bounding_bytes(self) -> int:
        """Memory of the partition or group that a worker bounds."""
        return min(self.partition_bytes, self._share_bytes)

    @property
    def reading_bytes(self) -> int:
        """Memory of the blocks that a worker reads at once."""
        largest = sorted((block.rows for block in self.blocks), reverse=True)[: self.blocks_at_once]
        kept = IN_PROCESS_FACTOR if self.capacity.in_process else 1
        size = sum(block_bytes(self.source, self.graph, rows, kept) for rows in largest)
        # Half of the threads that code strings at the same time are at the peak of their memory.
        coding = [coding_bytes(self.source, self.graph, rows) for rows in largest]
        return int(size - sum(coding[len(coding) - len(coding) // 2 :]))

    @property
    def _read_bytes(self) -> int:
        """Memory of a worker's blocks until their ids are numbered."""
        blocks = -(-len(self.blocks) // self.capacity.workers)
        text = self.source.kind == "string"
        ids = distinct_ids(self.graph, self.block_rows) * (self.graph.id_bytes + 8 * text)
        return int(blocks * (ids + 8 * distinct_of(self.edges, self.block_rows)))

    @property
    def _names_bytes(self) -> int:
        """Memory of the string ids of one worker's vertices; 0 for integers."""
        if self.source.kind == "integer":
            return 0
        share = min(1.0, IMBALANCE / self.capacity.workers)
        return int(ID_COPIES * share * self.graph.vertices.likely * (self.graph.id_bytes + 8))

    @property
    def _writing_bytes(self) -> int:
        """Memory in which a worker's threads write rows with string ids; 0 for integers."""
        if self.source.kind == "integer":
            return 0
        text = 2 * self.edges * self.graph.id_bytes / self.buckets if self.buckets else 0
        return int(TEXT_COPIES * min(self.capacity.threads, max(1, self.buckets)) * min(text, TEXT_PER_GROUP))


def stage_tasks(layout: Layout, in_shards: bool = False) -> int:
    """Tasks of all stages of a run for λ. Tasks that search λ, match DN-graphs with those of the night before, or load
    kernels are not counted.
    """
    found = read_tasks(layout) + number_tasks(layout) + order_tasks(layout)
    if in_shards:
        from ..stages.sharding import triangulate_tasks  # imports shards and their kernels

        found += triangulate_tasks(layout)
    else:
        found += partition_tasks(layout)
    return found + results_tasks(layout) + extract_tasks(layout) + tracks_tasks(layout) + publish_tasks(layout)
