"""The facts of a planned run: its fields, and the counts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ...kernels.graph import MAX_LOCAL_EDGES
from ...tasks.estimate.estimate import GraphEstimate
from ...tasks.ingest.packed import has_dense_ids
from ...tasks.inputs.sources import Block, Source
from ..cluster.execution import Capacity
from .gpu_memory import halves_of_a_shard
from .limits import GPU_FILL, MOST_BUCKETS, PACKED_ROW_BYTES, SORTED_SHARE
from .seconds import predicted_seconds, seconds_saved

if TYPE_CHECKING:
    from .programs import PlannedPrograms

GPU_ROW_BYTES = 60
"""Memory of a row on a GPU that cleans and numbers it."""
GPU_ROW_IN_PARTS_BYTES = 20
"""The same, besides the rows sorted at once, if the rows are numbered in parts: 16 for packed rows and the same rows
sorted, and then 17 for the edges of all parts and the ranks of their ends.
"""
FEW_BUCKETS = 4
"""Buckets of a large graph on a worker with fewer threads: buckets differ in size."""
MIN_BUCKET_ROWS = 1_000_000
"""Rows for each bucket beyond one per partition."""
FILES_A_THREAD = 3
"""Files of edges for each thread that writes, where GPUs compute. Each thread has equally many, one after the other."""
NO_METHOD = "none"
"""The method of a run that does not compute λ."""
CHECKPOINT_EDGE_BYTES = 62
"""Bytes of an edge in a checkpoint, with its state now and at the checkpoint before."""


@dataclass(frozen=True)
class PlanFacts:
    """The facts of a planned run: its input, workers, partitions and estimates."""

    source: Source
    blocks: list[Block]
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
    """Workers without a GPU that take bands beside those with one."""

    bands_at: int | None = None
    """Edges left at which shards stop, since a worker can hold these; None if shards peel to the end."""
    bands_on: int = 1
    """Workers that then peel bands; 1 if one peels all that is left."""

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
        if triangles is None or self.on_device or self.method != "peel":
            return None
        if not self.in_shards:
            return self.seconds_in_bands(self.band_workers)
        found = predicted_seconds(self.edges, triangles, self.capacity.workers * self.capacity.kernel_threads)
        return found - self.seconds_saved

    @property
    def seconds_saved(self) -> float:
        """Predicted seconds that the run takes less than in shards to its end, as bands, or one worker, peel the edges
        that are left at `bands_at`. Infinite, of either sign, if triangles are not estimated.
        """
        if self.bands_at is None:
            return 0.0
        triangles = inf if self.graph.triangles is None else self.graph.triangles
        own = self.bands_at, self._closed_edges, triangles
        return seconds_saved(*own, self.capacity.host_threads, self.bands_on)

    def seconds_in_bands(self, workers: int) -> float:
        """Predicted duration on a number of workers that peel bands, or on one worker; `seconds` is not None."""
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
        """Whether rows are cleaned, numbered and written from the GPUs' memory. String ids and weights stay in host
        memory.
        """
        if self.source.kind != "integer" or self.source.weights is not None:
            return False
        return self._fits_at_once or self.ingest_in_parts

    @property
    def _fits_at_once(self) -> bool:
        room = GPU_FILL * self.capacity.device_bytes * self.capacity.workers
        return 0 < self.source.rows * GPU_ROW_BYTES <= room

    @property
    def ingest_in_parts(self) -> bool:
        """Whether the GPU of this process numbers rows in several buckets, as it has no room for all at once.

        Edges of a single partition are then moved to host memory while the partition is made and bounded. The footers
        must tell that the ids are dense, as other rows cannot be numbered so.
        """
        rows, device = self.source.rows, self.capacity.device_bytes
        alone = self.capacity.in_process and self.method == "peel" and self.partitions == 1 and not self.in_shards
        low, high = self.source.id_range or (-1, -1)
        if not (device and alone and self.packs and low >= 0 and has_dense_ids(rows, high)):
            return False
        fits = rows * GPU_ROW_IN_PARTS_BYTES <= (GPU_FILL - 2 * SORTED_SHARE) * device
        return fits and (not self._fits_at_once or self.graph.edges.most > MAX_LOCAL_EDGES)

    @property
    def buckets(self) -> int:
        """Fewest buckets, which are ranges of ids that are numbered separately.

        On GPUs there is one for each shard, or several if the rows are numbered in parts. On CPUs there is one for
        each thread of this process or each second one of other workers, whose tasks exchange more slowly, and at least
        four, if they are large enough, and one for each group up to four for each thread, but MOST_BUCKETS at most.
        The stage `number` makes more if a worker's memory is too small for these.
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
