"""Rows of in-edges whose entries are not in the memory of the processor that reads them, and gathers over their chunks.

The entries are in pinned host memory, for a GPU, or in mapped files, for a CPU. A gather visits the chunks that it
needs, one after the other, and calls the kernel for rows in memory on each. The same code runs on both, and a row's
result has the same bits as in memory, since a chunk has whole rows. May import `kernels.graph`, `kernels.runtime` and
`kernels.cpu.programs`. Start with `rows`; `mapped` reads chunks on the CPU, and `streaming` copies them to a GPU.
"""

from .mapped import is_mapped, rows_in_files
from .rows import Chunk, ChunkedRows, ChunkGathers, Feed, cut_chunks, source_counts_of_chunks

__all__ = [
    "Chunk",
    "ChunkGathers",
    "ChunkedRows",
    "Feed",
    "cut_chunks",
    "is_mapped",
    "rows_in_files",
    "source_counts_of_chunks",
]
