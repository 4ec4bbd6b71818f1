"""Transpose rows in mapped files: the entries by source, written in sequence."""

from __future__ import annotations

import numpy as np

from ..cpu.programs.transpose import place_sources
from ..in_rows import InRows
from .rows import ChunkedRows, cut_chunks

PIECE_BYTES = 2**28
"""Bytes of entries that are in memory at once, unless a single source has more."""


def transpose_chunks(rows: ChunkedRows, sources: int, piece_bytes: int = PIECE_BYTES) -> InRows:
    """The entries by source, in arrays from the allocator of `rows`; see `kernels.programs.transpose_rows`.

    Reads all chunks once for each piece, which is a range of sources with about `piece_bytes` of entries.
    """
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
