"""Rows in chunks, by every way to bring chunks to a processor."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends import Backend, OnCpu, OnGpu
from edgemill.kernels.chunked import Chunk, ChunkedRows, cut_chunks, rows_in_files
from edgemill.kernels.chunked.streaming import PassingFeed
from edgemill.kernels.graph import InRows


class Slot:
    """A place of `SlowMemory`."""

    def __init__(self, entries: int) -> None:
        self.source, self.weight = np.full(entries, -1, np.int32), np.full(entries, np.nan)
        self.coming: Chunk | None = None
        self.is_read = False


class SlowMemory:
    """The memory of a processor, in which a copy is made at the latest or at the earliest time that is allowed."""

    def __init__(self, rows: InRows, late: bool) -> None:
        self.rows, self.late = rows, late
        self.width = 4 if rows.weight is None else 12
        self.slots: list[Slot] = []

    def new_place(self, entries: int) -> Slot:
        self.slots.append(Slot(entries))
        return self.slots[-1]

    def copy(self, place: Slot, chunk: Chunk) -> None:
        assert not place.is_read, "kernels that are not launched yet will read this place"
        place.source[:], place.weight[:], place.coming = -1, np.nan, chunk
        if not self.late:
            self._arrive(place)

    def acquire(self, place: Slot, entries: int) -> tuple[Any, Any]:
        self._arrive(place)
        place.is_read = True
        return place.source[:entries], None if self.rows.weight is None else place.weight[:entries]

    def release(self, place: Slot) -> None:
        place.is_read = False

    def settle(self) -> None:
        for place in self.slots:
            self._arrive(place)

    def _arrive(self, place: Slot) -> None:
        chunk, place.coming = place.coming, None
        if chunk is not None:
            place.source[: len(chunk)] = self.rows.source[chunk.begin : chunk.end]
            if self.rows.weight is not None:
                place.weight[: len(chunk)] = self.rows.weight[chunk.begin : chunk.end]


class Way:
    """A way to bring chunks: rows that are put by it give what the same rows in memory give."""

    backend: Backend = OnCpu()

    def put(self, rows: InRows, chunk_bytes: int, topology_bytes: int, folder: Path) -> ChunkedRows:
        """The rows in chunks of this size, of which this many bytes stay if the way keeps some."""
        raise AssertionError


class FromMemory(Way):
    """Arrays in memory, by slices."""

    def put(self, rows: InRows, chunk_bytes: int, topology_bytes: int, folder: Path) -> ChunkedRows:
        return rows_in_files(rows, chunk_bytes)


class FromFiles(Way):
    """Mapped files."""

    def put(self, rows: InRows, chunk_bytes: int, topology_bytes: int, folder: Path) -> ChunkedRows:
        weight = None if rows.weight is None else mapped(rows.weight, folder / "weight")
        return rows_in_files(InRows(rows.offsets, mapped(rows.source, folder / "source"), weight), chunk_bytes)


class Passing(Way):
    """Chunks that pass through buffers of NumPy arrays."""

    def __init__(self, late: bool) -> None:
        self.late = late

    def put(self, rows: InRows, chunk_bytes: int, topology_bytes: int, folder: Path) -> ChunkedRows:
        memory = SlowMemory(rows, self.late)
        chunks = cut_chunks(rows.offsets, max(1, chunk_bytes // memory.width))
        return ChunkedRows.of(rows, PassingFeed(chunks, memory, topology_bytes), rows)


class OnDevice(Way):
    """Pinned memory that is streamed past a GPU."""

    backend = OnGpu()

    def put(self, rows: InRows, chunk_bytes: int, topology_bytes: int, folder: Path) -> ChunkedRows:
        from edgemill.kernels.gpu.runtime.memory import PinnedArray
        from edgemill.kernels.gpu.streaming import streamed_rows

        weight = None if rows.weight is None else PinnedArray.of(rows.weight)
        return streamed_rows(rows.offsets, PinnedArray.of(rows.source), weight, topology_bytes, chunk_bytes)


WAYS = [
    pytest.param(FromMemory(), id="memory"),
    pytest.param(FromFiles(), id="files"),
    pytest.param(Passing(late=True), id="late copies"),
    pytest.param(Passing(late=False), id="early copies"),
    pytest.param(OnDevice(), id="gpu", marks=pytest.mark.gpu),
]
"""To parametrise by."""


def mapped(array: NDArray[Any], path: Path) -> NDArray[Any]:
    """The array in a mapped file, from the middle of a page."""
    skipped = 24
    path.write_bytes(bytes(skipped) + array.tobytes())
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), array.dtype, len(array), skipped)
