"""Searches from many sources at once, selected by array type: each source is a bit in the words of a vertex.

A row's result is bitwise determined by that row, its order and its values; it does not depend on how rows are
distributed. `at` and `seen` have a word, or some words, for each source position and for each row. Bits that no search
uses must be set in `seen`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .cpu import searches as cpu
from .graph import IntArray, LongArray
from .in_rows import InRows

Masks = NDArray[np.uint64]


def _twin(array: object) -> ModuleType:
    if isinstance(array, np.ndarray):
        return cpu
    raise TypeError(f"searches have kernels for NumPy's arrays, not for those of {type(array).__module__}")


def search_level(rows: InRows, selected: IntArray, at: Masks, seen: Masks) -> Masks:
    """One level of a breadth-first search: for each selected row the bits of its sources that are new there, uint64
    [selected, words].

    `at` [sources, words] are the bits of the vertices of the last level, `seen` [rows, words] those of all levels
    before. Reads a row until all its bits are seen: 4 + 8 × words bytes an entry (Then et al., "The more the merrier:
    efficient multi-source graph traversal", PVLDB 8(4), 2014).
    """
    return _twin(at).search_level(rows, selected, at, seen)


def reached_rows(
    transposed: InRows, changed: IntArray, at: Masks, closed: Masks, marked: NDArray[np.bool_], found: IntArray
) -> IntArray:
    """The rows, int32, ascending, with a `changed` source that has a bit of `at` [sources, words] which is not in
    `closed` [rows, words].

    `transposed` is from `transpose_rows`. `marked` [rows], which must be false and is left so, and `found` [rows] are
    scratch. Reads the entries of the changed sources in one thread.
    """
    return _twin(at).reached_rows(transposed, changed, at, closed, marked, found)


def path_counts(
    rows: InRows, selected: IntArray, own: IntArray, at: Masks, seen: Masks, counts: NDArray[np.float64]
) -> Masks:
    """One level of the forward phase of Brandes's algorithm: as `search_level` with words `at` [sources] and `seen`
    [rows], uint64 [selected].

    The number of shortest paths to a row, for each of its new bits, is the sum of the `counts` [sources, columns] of
    its sources with that bit, added in the order of the row. It is written to `counts` at `own` [rows], the position
    of the row among the sources. Reads 12 bytes an entry, and 8 bytes for each path edge and bit.
    """
    return _twin(at).path_counts(rows, selected, own, at, seen, counts)


def path_dependencies(
    rows: InRows,
    selected: IntArray,
    masks: Masks,
    reads: NDArray[np.bool_],
    own: IntArray,
    at: Masks,
    values: NDArray[np.float64],
    score: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """One level of the backward phase of Brandes's algorithm ("A faster algorithm for betweenness centrality", Journal
    of Mathematical Sociology 25(2), 2001).

    Here a row has the ends of the edges that leave its vertex. `masks` [selected] are the bits whose level the row has,
    `at` [sources] those of the next level. With σ paths to a vertex and the dependency δ on it, `values` [sources,
    columns] has σ in the row's level and (1 + δ) / σ in the next; the sum of these over the row's entries times σ is
    the row's δ. It is added to `score` [rows], its square to `squares` [rows], and (1 + δ) / σ replaces σ at `own`
    [rows]. Rows without `reads` [selected] have no end in the next level and are not read. Reads as `path_counts`.
    """
    _twin(at).path_dependencies(rows, selected, masks, reads, own, at, values, score, squares)


class BlockPaths(Protocol):
    """Searches of `block_paths`."""

    score: NDArray[np.float64]
    """[rows] sums of dependencies of all runs."""
    squares: NDArray[np.float64]
    """[rows] sums of their squares."""
    entries: int
    """Entries read in all runs."""

    def run(self, sources: LongArray) -> tuple[int, bool]:
        """Search from these rows, which are distinct and at most `columns`. Returns the number of levels, and whether
        the sums of all rows that the search reached are finite.
        """


def block_paths(into: InRows, by_source: InRows, columns: int) -> BlockPaths:
    """All of Brandes's algorithm for up to `columns` sources at once, at most 64, in a block that has all vertices:
    what `path_counts` and `path_dependencies` of all levels give, with the same bits.

    `into` has the sources of each vertex, and `by_source` its targets; they are the same for mutual edges. Memory of
    the searches: 8 bytes for each row and column, 57 for each row, and 12 for each row in each of its levels, up to
    twice that.
    """
    paths: BlockPaths = _twin(into.source).BlockPaths(into, by_source, columns)
    return paths


def column_counts(masks: Masks) -> LongArray:
    """The number of rows with each bit of `masks` [rows, words], int64 [64 × words]. Reads each word once."""
    return _twin(masks).column_counts(masks)
