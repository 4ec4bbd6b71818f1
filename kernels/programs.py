"""Gathers of vertex programs: over rows of in-edges, by array type. They write to no input but where the text says so.

What a gather gives for a row depends on that row and its values alone, bit by bit: not on how rows are shared out.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cpu import programs as cpu
from .graph import IntArray, LongArray
from .in_rows import InRows

__all__ = [
    "count_closing",
    "count_closing_whole",
    "exact_sum",
    "first_speakers",
    "push",
    "row_extremes",
    "row_h_indices",
    "row_modes",
    "row_sums",
    "rows_of_sources",
    "touched_rows",
]


def _twin(array: object) -> ModuleType:
    if isinstance(array, np.ndarray):
        return cpu
    raise TypeError(f"vertex programs have kernels for NumPy's arrays, not for those of {type(array).__module__}")


def row_sums(rows: InRows, values: NDArray[np.float64], along: str = "") -> NDArray[np.float64]:
    """The sum of the values that come along the entries of each row, float64 [rows]; 0 of a row without entries.

    `values` [sources] are float64; `along` is "", "add" or "multiply" for what the weight of an entry does to them.
    Segments of 4,096 entries are added up in four partial sums each, and then one after the other. Reads an entry's
    source and weight, and a value for each entry.
    """
    return _twin(values).row_sums(rows, values, along)


def row_extremes(
    rows: InRows, wanted: IntArray | None, values: NDArray[Any], silent: Any, along: str = "", largest: bool = False
) -> tuple[NDArray[Any], IntArray]:
    """The least value that comes along the entries of each `wanted` row, or of all, and the first source it is of.

    With `largest` the largest. `values` [sources] are int32, int64 or float64, and float64 with `along` as for
    `row_sums`. Sources whose value is `silent`, which no other is worse than, are not heard: a row that hears nothing
    gets `silent` and source -1. Sources are positions, int32.
    """
    return _twin(values).row_extremes(rows, wanted, values, silent, along, largest)


def first_speakers(rows: InRows, wanted: IntArray | None, speaks: NDArray[np.bool_]) -> IntArray:
    """The first source, int32, of each `wanted` row, or of all, for which `speaks` [sources] is true; -1 for none.

    Reads a row up to that source.
    """
    return _twin(speaks).first_speakers(rows, wanted, speaks)


def push(
    turned: InRows,
    moved: IntArray,
    values: NDArray[Any],
    along: str,
    largest: bool,
    best: IntArray,
    out: NDArray[Any],
    touched: IntArray,
) -> IntArray:
    """Take the `values` [moved] of the `moved` sources, ascending, to the rows that they are in; gives these rows.

    `turned` are the `rows_of_sources`. Of the rows given, `out` has what `row_extremes` gives if no other source
    speaks, and `best` the source. Before, `best` [rows] has to be -1; `out` [rows] and `touched` [rows] are scratch.
    All three are changed. Reads the entries of the moved sources alone, by one thread.
    """
    return _twin(values).push(turned, moved, values, along, largest, best, out, touched)


def row_modes(rows: InRows, wanted: IntArray | None, values: NDArray[Any], none: int = -1) -> NDArray[Any]:
    """The most frequent of the integer `values` [sources] in each `wanted` row, or in all; of several the least.

    A row without entries gets `none`. One hash table a row; scratch of twice the longest row for each thread.
    """
    return _twin(values).row_modes(rows, wanted, values, none)


def row_h_indices(rows: InRows, wanted: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """The largest k for which k entries of the row have integer `values` [sources] of k or more, by counting."""
    return _twin(values).row_h_indices(rows, wanted, values)


def rows_of_sources(rows: InRows, sources: int) -> InRows:
    """The same entries by source: row s has the rows that source s is in, ascending. A counting sort by one thread."""
    return _twin(rows.source).rows_of_sources(rows, sources)


def touched_rows(turned: InRows, moved: IntArray, rows: int) -> IntArray:
    """The rows, int32, ascending, that one of the `moved` sources is in; `turned` are the `rows_of_sources`."""
    return _twin(moved).touched_rows(turned, moved, rows)


def count_closing(
    turned: InRows, rows: int, one: IntArray, other: IntArray, times: NDArray[np.uint8], found: LongArray
) -> None:
    """Add to `found` [rows], in place, `times` [edges] of each edge (one, other) whose ends are both in the row.

    `turned` are the `rows_of_sources`, without repeated entries; edges of equal `one` [edges] stand together. Marks the
    rows of `one`, and reads those of `other`: the smaller these are, the quicker (Schank and Wagner, WEA 2005; Latapy,
    "Main-memory triangle computations for very large (sparse (power-law)) graphs", TCS 407, 2008).
    """
    _twin(one).count_closing(turned, rows, one, other, times, found)


def count_closing_whole(offsets: LongArray, lower: IntArray, times: NDArray[np.uint8]) -> LongArray:
    """For each vertex of a whole graph `times` of the edges between its neighbours, int64 [vertices].

    `offsets` [vertices + 1] and `lower` [edges] have, for each vertex, the neighbours that come before it in an order
    of the vertices, each once; `times` [edges], 1 or more, are those of these edges. The forward algorithm (Schank and
    Wagner, WEA 2005): each triangle is found once, at its last vertex. In the order of degrees the rows that are read
    have at most E^1.5 entries.
    """
    return _twin(lower).count_closing_whole(offsets, lower, times)


def exact_sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum of float64 values in units of 2^-1074, without rounding, and how many values are no finite numbers.

    Each value is added to 32-bit digits that stand for all exponents (Kulisch, "Advanced arithmetic for the digital
    computer", 2002), so neither order nor cut changes the sum. Reads 8 bytes a value.
    """
    return _twin(values).exact_sum(values)
