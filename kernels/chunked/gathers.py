"""Gathers over rows in chunks; `kernels.programs` has their contracts."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import IntArray, LongArray
from .rows import ChunkedRows, parts_of


def _results(rows: ChunkedRows, selected: IntArray | None, like: NDArray[Any], value: Any) -> NDArray[Any]:
    """An array for the results of the `selected` rows, or of all; `value` is that of rows without entries."""
    found: NDArray[Any] = np.full_like(like, value, shape=(rows.rows if selected is None else len(selected),))
    return found


class ChunkGathers:
    """The gathers of a `twin`, which has the kernels for rows in memory, over rows in chunks."""

    def __init__(self, twin: ModuleType) -> None:
        self._twin = twin

    def row_sums(self, rows: ChunkedRows, values: NDArray[np.float64], along: str) -> NDArray[np.float64]:
        """The sum of the values over the entries of each row."""
        out = _results(rows, None, values, 0.0)
        for part in parts_of(rows, None):
            out[part.place] = self._twin.row_sums(part.rows, values, along)
        return out

    def row_extremes(
        self,
        rows: ChunkedRows,
        selected: IntArray | None,
        values: NDArray[Any],
        neutral: Any,
        along: str,
        largest: bool,
    ) -> tuple[NDArray[Any], IntArray]:
        """The smallest or largest value over the entries of each row, and its first source. Chunks with neutral sources
        only are skipped.
        """
        out = _results(rows, selected, values, values.dtype.type(neutral))
        best = np.full_like(out, -1, np.int32)
        wanted = rows.segments.wanted(values != values.dtype.type(neutral))
        for part in parts_of(rows, selected, wanted):
            if part.chunk is not None:
                rows.segments.note(part.chunk.number, part.rows.source, len(values))
            out[part.place], best[part.place] = self._twin.row_extremes(
                part.rows, part.selected, values, neutral, along, largest
            )
        return out, best

    def first_active_sources(
        self, rows: ChunkedRows, receiving: NDArray[np.bool_] | None, active: NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, int]:
        """The receiving rows with an active source, the first of each, and the entries of all receiving rows. Chunks
        without both are skipped.
        """
        best = np.full_like(active, -1, np.int32, shape=(rows.rows,))
        selected = None if receiving is None else np.flatnonzero(receiving).astype(np.int32)
        for part in parts_of(rows, selected, rows.segments.wanted(active)):
            mask = None
            if part.chunk is not None:
                rows.segments.note(part.chunk.number, part.rows.source, len(active))
                mask = None if receiving is None else receiving[part.chunk.first : part.chunk.last]
            elif part.selected is not None:
                mask = np.full_like(active, False, shape=(rows.rows,))
                mask[part.selected] = True
            found, first, _ = self._twin.first_active_sources(part.rows, mask, active)
            best[found + np.int32(part.first)] = first
        came = np.flatnonzero(best >= 0).astype(np.int32)
        return came, best[came], self._twin.count_entries(rows, receiving)

    def row_modes(self, rows: ChunkedRows, selected: IntArray | None, values: NDArray[Any], none: int) -> NDArray[Any]:
        """The smallest most frequent value of each row."""
        out = _results(rows, selected, values, none)
        for part in parts_of(rows, selected):
            out[part.place] = self._twin.row_modes(part.rows, part.selected, values, none)
        return out

    def row_h_indices(self, rows: ChunkedRows, selected: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
        """The largest k such that k entries of the row have values of at least k."""
        out = _results(rows, selected, values, 0)
        for part in parts_of(rows, selected):
            out[part.place] = self._twin.row_h_indices(part.rows, part.selected, values)
        return out


def source_counts_of_chunks(rows: ChunkedRows, sources: int) -> LongArray:
    """The number of entries of each of `sources` sources."""
    counts = np.zeros_like(rows.offsets, shape=(sources,))
    for part in parts_of(rows, None):
        counts += np.bincount(part.rows.source, minlength=sources)
    return counts
