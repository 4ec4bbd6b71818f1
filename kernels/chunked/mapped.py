"""Rows in mapped files: chunks that the CPU reads in sequence, and the entries by source, written in sequence."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import InRows, IntArray
from ..runtime.sizes import NUMPY_ALLOCATOR, Allocator
from .rows import Chunk, ChunkedRows, cut_chunks

CHUNK_BYTES = 64 * 2**20
"""Bytes of a chunk, except of one with a longer row."""


class MappedFeed:
    """Entries in mapped files: the next chunk is read ahead, and the last one is unmapped.

    Successive visits go through the chunks in alternate directions, so that a visit begins with what the page cache
    still has from the one before. Arrays that are not mapped from files are read in the same way without this advice.
    """

    def __init__(self, chunks: Sequence[Chunk], source: IntArray, weight: NDArray[np.float64] | None) -> None:
        self.chunks, self.source, self.weight = chunks, source, weight
        self.bytes_copied = self.bytes_direct = 0
        self._downwards = False

    def is_near(self, number: int) -> bool:
        """See `Feed.is_near`."""
        return False

    def visit(self, numbers: Sequence[int]) -> Iterator[tuple[Chunk, IntArray, NDArray[np.float64] | None]]:
        """See `Feed.visit`."""
        order = [self.chunks[k] for k in sorted(numbers, reverse=self._downwards)]
        self._downwards = not self._downwards
        for at, chunk in enumerate(order):
            self._advise(order[at + 1 : at + 2], "MADV_WILLNEED")
            source = self.source[chunk.begin : chunk.end]
            weight = None if self.weight is None else self.weight[chunk.begin : chunk.end]
            self.bytes_copied += source.nbytes + (0 if weight is None else weight.nbytes)
            yield chunk, source, weight
            self._advise([chunk], "MADV_DONTNEED")

    def _advise(self, chunks: Sequence[Chunk], advice: str) -> None:
        for chunk in chunks:
            for array in (self.source, self.weight):
                if array is not None:
                    _advise(array[chunk.begin : chunk.end], advice)


def _advise(array: NDArray[Any], advice: str) -> None:
    """Tell the system how an array that is mapped from a file will be read; nothing if it is in memory."""
    mapped = _map_of(array)
    if mapped is None or not array.nbytes or not hasattr(mmap, advice):
        return
    first = array.__array_interface__["data"][0] - np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
    page = mmap.PAGESIZE
    if advice == "MADV_DONTNEED":  # only whole pages of this array: others may be in use
        start, stop = -(-first // page) * page, (first + array.nbytes) // page * page
    else:
        start, stop = first // page * page, first + array.nbytes
    if stop > start:
        mapped.madvise(getattr(mmap, advice), start, stop - start)


def _map_of(array: Any) -> mmap.mmap | None:
    """The map that the array is in, if it is a shared or read-only one of a file."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


def is_mapped(rows: InRows) -> bool:
    """Whether the entries are in a mapped file."""
    return _map_of(rows.source) is not None


def rows_in_files(rows: InRows, chunk_bytes: int = CHUNK_BYTES, allocator: Allocator = NUMPY_ALLOCATOR) -> ChunkedRows:
    """Rows whose entries are in mapped files, in chunks of about `chunk_bytes`. Arrays of entries that are made from
    them are from the `allocator`.
    """
    width = 4 if rows.weight is None else 12
    chunks = cut_chunks(rows.offsets, max(1, chunk_bytes // width))
    return ChunkedRows.of(rows, MappedFeed(chunks, rows.source, rows.weight), rows, allocator)


PIECE_BYTES = 2**28
"""Bytes of entries that are in memory at once, unless a single source has more."""


def transpose_chunks(rows: ChunkedRows, sources: int, piece_bytes: int = PIECE_BYTES) -> InRows:
    """The entries by source, in arrays from the allocator of `rows`; see `kernels.programs.transpose_rows`.

    Reads all chunks once for each piece, which is a range of sources with about `piece_bytes` of entries.
    """
    from ..cpu.programs.transpose import place_sources  # loads Numba

    everything = [chunk.number for chunk in rows.feed.chunks]
    counts = np.zeros(sources, np.int64)
    for _, part in rows.visit(everything):
        counts += np.bincount(part.source, minlength=sources)
    offsets = np.zeros(sources + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    row_of = rows.allocator.allocate(len(rows), np.int32)
    weight_of = None if rows.weight is None else rows.allocator.allocate(len(rows), np.float64)
    for piece in cut_chunks(offsets, max(1, piece_bytes // rows.entry_bytes)):
        own = np.empty(len(piece), np.int32)
        weights = np.empty(0 if weight_of is None else len(piece))
        after = offsets[piece.first : piece.last] - piece.begin
        # Rows must ascend, whichever direction visits go through the chunks.
        for chunk in everything:
            for at, part in rows.visit([chunk]):
                place_sources(part.offsets, part.source, part.weights, at.first, piece.first, after, own, weights)
        row_of[piece.begin : piece.end] = own
        if weight_of is not None:
            weight_of[piece.begin : piece.end] = weights
    return InRows(offsets, row_of, weight_of)
