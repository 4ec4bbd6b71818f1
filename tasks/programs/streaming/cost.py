"""What a superstep that reads all entries of a block costs on a GPU, if some of them are streamed there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....kernels.chunked.streaming import BUFFERS, chunk_bytes, kept_bytes

LINK_RATE = 55e9
"""Bytes a second from pinned host memory to a GPU (PCIe 5, 16 lanes; measured on the host of an H200)."""
PINNING_SECONDS = 0.3 / 2**30
"""Seconds a byte of copying entries to new pinned memory, once for a block."""
ENTRY_SECONDS = 7.3e-12
"""Seconds an entry of a gather on an H200 over 2^22 vertices, whose values fit the L2 cache."""
ENTRY_SECONDS_MORE = 0.8e-12
"""What each doubling of the vertices adds. Measured: 8.5e-12 s at 2^24, 10.5e-12 s at 2^26.

docs/engineering/programs.md has the times.
"""
CACHED_VERTICES = 2**22
VERTEX_SECONDS = 1e-10
"""Seconds a vertex of the arrays' operations in a superstep of PageRank on an H200."""
STEP_SECONDS = 5e-4
"""Seconds of a superstep beside these: launches, and the transfer of sums."""


@dataclass(frozen=True)
class StreamCost:
    """Costs of one block on one GPU."""

    entries: int
    vertices: int
    """Own vertices."""
    entry_bytes: int
    """4, or 12 with weights."""
    topology_bytes: int
    """GPU memory for entries."""
    longest_row: int = 0
    """Entries of the longest row."""
    link_rate: float = LINK_RATE
    """Bytes a second over the link."""

    @property
    def whole_bytes(self) -> int:
        """Bytes of all entries."""
        return self.entry_bytes * self.entries

    @property
    def streamed(self) -> bool:
        """Whether entries are streamed."""
        return self.whole_bytes > self.topology_bytes

    @property
    def _chunk(self) -> int:
        """Bytes of the largest chunk."""
        return max(chunk_bytes(self.topology_bytes), self.entry_bytes * self.longest_row)

    @property
    def kept(self) -> int:
        """Bytes of the chunks that stay on the GPU."""
        return kept_bytes(self.whole_bytes, self._chunk, self.topology_bytes)

    @property
    def copied(self) -> int:
        """Bytes over the link in each superstep but the first, in which it is all."""
        return max(0, self.whole_bytes - self.kept - BUFFERS * self._chunk) if self.streamed else 0

    @property
    def step_seconds(self) -> float:
        """Seconds of a superstep of PageRank: copies run beside the gather, and not beside the rest."""
        doublings = max(0.0, math.log2(max(self.vertices, 1) / CACHED_VERTICES))
        gather = self.entries * (ENTRY_SECONDS + ENTRY_SECONDS_MORE * doublings)
        return max(self.copied / self.link_rate, gather) + VERTEX_SECONDS * self.vertices + STEP_SECONDS

    def seconds(self, supersteps: int) -> float:
        """Seconds of these many supersteps of PageRank, the first of which brings all entries."""
        first = (self.whole_bytes - self.copied) / self.link_rate
        return first + supersteps * self.step_seconds

    @property
    def pinning_seconds(self) -> float:
        """Seconds of copying the entries to pinned memory, before the first program of a block."""
        return PINNING_SECONDS * self.whole_bytes if self.streamed else 0.0
