"""Rows of in-edges that are streamed from pinned host memory past the GPU, on a stream of their own.

`kernels.chunked.streaming` decides what is copied when.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..chunked.rows import Chunk, ChunkedRows, cut_chunks
from ..chunked.streaming import CHUNK_BYTES, PassingFeed, chunk_bytes
from ..graph import InRows
from .runtime.memory import PinnedArray


@dataclass(eq=False)
class _Place:
    """Device memory for one chunk."""

    source: Any
    weight: Any
    copied: Any
    """Event: the chunk is here."""
    read: Any
    """Event: kernels have read the chunk before."""


class DeviceMemory:
    """Device memory for chunks in pinned memory; see `kernels.chunked.streaming.Memory`.

    Kernels must be launched on the stream that is current when a chunk is visited.
    """

    def __init__(self, source: PinnedArray, weight: PinnedArray | None) -> None:
        self._source, self._weight = source, weight
        self.width = 4 if weight is None else 12
        self._copies = cupy.cuda.Stream(non_blocking=True)

    def new_place(self, entries: int) -> _Place:
        """Memory for `entries` entries."""
        source = cupy.empty(entries, np.int32)
        weight = None if self._weight is None else cupy.empty(entries, np.float64)
        place = _Place(source, weight, *(cupy.cuda.Event(disable_timing=True) for _ in range(2)))
        self.release(place)  # kernels that read earlier arrays in this memory may be queued
        return place

    def copy(self, place: _Place, chunk: Chunk) -> None:
        """Queue the copy of a chunk."""
        self._copies.wait_event(place.read)
        for pinned, own in ((self._source, place.source), (self._weight, place.weight)):
            if pinned is not None and len(chunk):
                size, kind = pinned.host.itemsize, cupy.cuda.runtime.memcpyHostToDevice
                first = pinned.device.data.ptr + size * chunk.begin
                cupy.cuda.runtime.memcpyAsync(own.data.ptr, first, size * len(chunk), kind, self._copies.ptr)
        place.copied.record(self._copies)

    def acquire(self, place: _Place, entries: int) -> tuple[Any, Any]:
        """The sources and weights of the chunk in `place`, after its copy on the current stream."""
        cupy.cuda.get_current_stream().wait_event(place.copied)
        return place.source[:entries], None if place.weight is None else place.weight[:entries]

    def release(self, place: _Place) -> None:
        """Declare that kernels launched later do not read the chunk in `place`."""
        place.read.record(cupy.cuda.get_current_stream())

    def settle(self) -> None:
        """Wait for all copies."""
        self._copies.synchronize()


def streamed_rows(
    offsets: Any, source: PinnedArray, weight: PinnedArray | None, topology_bytes: int, most_bytes: int | None = None
) -> ChunkedRows:
    """Rows whose entries are in pinned memory. `offsets` int64 [rows + 1] are on the host.

    About `topology_bytes` of device memory hold entries. A chunk has whole rows of at most `most_bytes` in all. A
    longer row is a chunk by itself, and the buffers are then as large as this chunk.
    """
    memory = DeviceMemory(source, weight)
    chunks = cut_chunks(offsets, max(1, (most_bytes or chunk_bytes(topology_bytes)) // memory.width))
    weights = (None, None) if weight is None else (weight.host, weight.device)
    home = InRows(offsets, source.host, weights[0])
    rows = InRows(cupy.asarray(offsets), source.device, weights[1])
    return ChunkedRows.of(rows, PassingFeed(chunks, memory, topology_bytes), home)


_pinned_of: dict[int, tuple[weakref.ref[InRows], PinnedArray, PinnedArray | None]] = {}
"""The sources and weights of rows in pinned memory, by the id of the rows, while these are alive."""


def stream_rows(rows: InRows, topology_bytes: int) -> ChunkedRows:
    """The rows, which are on the host, with their entries in pinned memory; see `streamed_rows`.

    The pinned copy is kept as long as `rows`, so that several programs share it.
    """
    key = id(rows)
    known = _pinned_of.get(key)
    if known is None or known[0]() is not rows:
        weight = None if rows.weight is None else PinnedArray.of(rows.weight)
        known = weakref.ref(rows, lambda _: _pinned_of.pop(key, None)), PinnedArray.of(rows.source), weight
        _pinned_of[key] = known
    return streamed_rows(rows.offsets, known[1], known[2], topology_bytes)


def transposed_rows(rows: InRows, sources: int) -> ChunkedRows:
    """The entries of rows on the host by source, in pinned memory; see `kernels.programs.transpose_rows`.

    The host transposes them. No entries stay on the device.
    """
    from ..cpu.programs import transpose_rows  # loads Numba

    by = transpose_rows(rows, sources)
    weight = None if by.weight is None else PinnedArray.of(by.weight)
    return streamed_rows(by.offsets, PinnedArray.of(by.source), weight, 0, CHUNK_BYTES)
