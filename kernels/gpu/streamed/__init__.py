"""Rows of in-edges that are streamed from pinned host memory past the GPU.

May import `kernels.chunked`, `kernels.in_rows`, `kernels.cpu.programs` and CuPy. Start with `kernels.chunked.passing`,
which decides what is copied when; `feed` copies, and `pinned` has memory that both the host and the device read.
"""

from .feed import stream_rows, streamed_rows, transposed_rows
from .pinned import PinnedArray

__all__ = ["PinnedArray", "stream_rows", "streamed_rows", "transposed_rows"]
