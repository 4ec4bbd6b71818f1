"""Rows of in-edges whose entries are not in the memory of the processor that reads them, and gathers over their chunks.

The entries are in pinned host memory, for a GPU, or in mapped files, for a CPU. A gather visits the chunks that it
needs, one after the other, and calls the kernel for rows in memory on each. The same code runs on both, and a row's
result has the same bits as in memory, since a chunk has whole rows. May import `kernels.in_rows` and `kernels.graph`.
Start with `rows`, then `gathers`; `host` reads chunks on the CPU, and `passing` copies them to the memory of a GPU.
"""

from .gathers import ChunkGathers, source_counts_of_chunks
from .host import is_mapped, rows_in_files
from .rows import Chunk, ChunkedRows, Feed, cut_chunks

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
