"""Limits that a plan and the stages share."""

from __future__ import annotations

FILL = 0.6
"""Share of a worker's memory that a plan may use. The rest is for Dask, Arrow and the allocator."""
GPU_FILL = 0.9
"""Share of a GPU's memory that a partition may use."""
MOST_BUCKETS = 2**15 - 1
"""Most buckets: bucket numbers are int16. With more rows the buckets are larger."""
SORTED_SHARE = 1 / 8
"""Share of a GPU's memory in which packed rows are sorted together. The other rows of the GPU stay in the rest."""
PACKED_ROW_BYTES = 40
"""Memory of a packed row on a GPU while it is sorted: joined, sorted, and both ends."""
SHARE_OF_PIECES = 0.25
"""Share of a plan's memory that holds entries of blocks in files."""
LEAST_ENTRIES = 2**21
"""Fewest entries in each of several blocks of vertex programs. With fewer, barriers take longer than the work."""


def program_blocks(workers: int, entries: int) -> int:
    """Blocks of a graph for vertex programs: one for each worker that has enough entries."""
    return max(1, min(workers, entries // LEAST_ENTRIES))
