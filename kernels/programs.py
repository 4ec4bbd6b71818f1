"""Gathers of vertex programs over rows of in-edges. The array type selects `cpu.programs` or `gpu.programs`.

Unless stated otherwise, functions do not change their inputs. The bits of a row's result depend only on that row and
its values, not on how rows are distributed. Rows may be `ChunkedRows`; then `selected` rows must ascend.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunked import ChunkedRows, ChunkGathers, source_counts_of_chunks
from .chunked.mapped import transpose_chunks
from .cpu import programs as cpu
from .cpu.programs import breadth_first
from .graph import Extreme, InRows, IntArray, LongArray, RankState, Received


def _twin(array: object) -> ModuleType:
    if isinstance(array, np.ndarray):
        return cpu
    if type(array).__module__.partition(".")[0] == "cupy":
        from .gpu import programs as gpu  # CuPy is an extra, and its import is slow

        return gpu
    raise TypeError(f"vertex programs have kernels for NumPy's and CuPy's arrays, not {type(array).__module__}'s")


def _gathers(array: object, rows: InRows) -> Any:
    """The backend for the array; for `ChunkedRows`, its loops over chunks."""
    twin = _twin(array)
    return ChunkGathers(twin) if isinstance(rows, ChunkedRows) else twin


def count_selected(rows: InRows, selected: IntArray) -> int:
    """The number of entries of the `selected` rows, int32 positions of rows."""
    return _twin(selected).count_selected(rows, selected)


def row_sums(rows: InRows, values: NDArray[np.float64], along: str = "") -> NDArray[np.float64]:
    """The sum of the values over the entries of each row, float64 [rows]; 0 for a row without entries.

    `values` [sources] are float64. `along` is "", "add" or "multiply": how the weight of an entry changes its value.
    The length of the row determines the order of additions: on the CPU sums of segments of 4,096 entries, added in
    order; on the GPU a sum for each lane (`cuda/programs/classes.cuh`). Reads each entry's source, weight and value.
    """
    return _gathers(values, rows).row_sums(rows, values, along)


def row_extremes(
    rows: InRows, selected: IntArray | None, values: NDArray[Any], extreme: Extreme
) -> tuple[NDArray[Any], IntArray]:
    """The best value over the entries of each `selected` row, or of all rows, and its first source.

    `values` [sources] are int32, int64 or float64; float64 if weights change them. Sources with the worst value of the
    type are ignored. A row without other sources gets the worst value and source -1. Sources are int32 positions.
    """
    return _gathers(values, rows).row_extremes(rows, selected, values, extreme)


def first_active_sources(
    rows: InRows, receiving: NDArray[np.bool_] | None, active: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, int]:
    """The rows with an active source, ascending, the first active source of each, both int32, and the number of entries
    of all rows that are considered.

    `receiving` [rows] is a mask of the rows to consider, None for all. `active` [sources] is a mask. Reads a row up to
    its first active source.
    """
    return _gathers(active, rows).first_active_sources(rows, receiving, active)


def search(rows: InRows, out: InRows, start: int) -> tuple[IntArray, LongArray, int, int]:
    """(levels, parents, supersteps, entries read) of a breadth-first search of a whole graph from the vertex `start`.

    `rows` [vertices] have the sources of each vertex, ascending, and `out` its targets; both are the same for a
    symmetric graph. Levels are int32 and parents int64 [vertices], both -1 for vertices that the search does not reach.
    The parent of a vertex is its smallest source in the level before; the parent of `start` is `start`.
    """
    if _twin(rows.offsets) is cpu:
        return breadth_first.search(rows, out, start)
    from .gpu.programs.breadth_first import search as on_gpu  # CuPy is an extra

    return on_gpu(rows, out, start)


def count_entries(rows: InRows, receiving: NDArray[np.bool_] | None) -> int:
    """The number of entries of the rows in the mask `receiving` [rows], or of all rows."""
    return _twin(rows.offsets).count_entries(rows, receiving)


def connected_sources(rows: InRows, own: IntArray, sources: int, symmetric: bool) -> IntArray:
    """For each of `sources` sources, the smallest source of its connected component, int32 [sources].

    `own` [rows] has the position of each row among the sources. `symmetric` says that each entry exists in both
    directions, so that rows of the largest component need not be read. Afforest (Sutton, Ben-Nun and Barak, "Optimizing
    parallel graph connectivity computation via subgraph sampling", IPDPS 2018): trees are linked with compare and swap.
    The smaller root becomes the parent of the larger root, so the result does not depend on threads.
    """
    return _twin(own).connected_sources(rows, own, sources, symmetric)


def lower_values(
    root: IntArray, position: IntArray, values: NDArray[Any], least: NDArray[Any], lowered: NDArray[np.bool_]
) -> None:
    """Lower `least` [sources], in place, at the root of each `position` to the value of the position, if it is smaller.

    `root` [sources] is from `connected_sources`; `values` [positions] and `least` are of one integer type. Sets
    `lowered` [sources] to True at the roots whose `least` has changed.
    """
    _twin(root).lower_values(root, position, values, least, lowered)


def lowered_rows(
    root: IntArray, own: IntArray, least: NDArray[Any], lowered: NDArray[np.bool_]
) -> tuple[IntArray, NDArray[Any]]:
    """The rows, int32, ascending, whose root is `lowered`, and the value `least` of that root; see `lower_values`."""
    return _twin(root).lowered_rows(root, own, least, lowered)


def push(transposed: InRows, changed: IntArray, values: NDArray[Any], extreme: Extreme, received: Received) -> IntArray:
    """Push the `values` [changed] of the `changed` sources, ascending, to the rows that contain them.

    Returns the rows that received a value, in any order. `transposed` is from `transpose_rows`. For each returned row,
    `received` gets the result of `row_extremes` with all other sources ignored. With a bound, only rows whose value is
    better than the bound are returned. On entry no row may have received a value; rows that are not returned stay so.
    Reads only the entries of the changed sources. The result does not depend on the order in which threads run. The CPU
    writes -0.0 as 0.0.
    """
    return _twin(values).push(transposed, changed, values, extreme, received)


def row_modes(rows: InRows, selected: IntArray | None, values: NDArray[Any], none: int = -1) -> NDArray[Any]:
    """The most frequent of the integer `values` [sources] in each `selected` row, or in all rows; the smallest of ties.

    A row without entries gets `none`. Counts each row's values in a hash table.
    """
    return _gathers(values, rows).row_modes(rows, selected, values, none)


def row_h_indices(rows: InRows, selected: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """For each `selected` row, or all rows, the largest k such that k entries have integer `values` [sources] ≥ k."""
    return _gathers(values, rows).row_h_indices(rows, selected, values)


def source_counts(rows: InRows, sources: int) -> LongArray:
    """The number of entries of each of `sources` sources, int64 [sources]."""
    if isinstance(rows, ChunkedRows):
        return source_counts_of_chunks(rows, sources)
    counts: LongArray = np.bincount(rows.source, minlength=sources)
    return counts


def stream_rows(rows: InRows, topology_bytes: int) -> ChunkedRows:
    """Rows on the host whose entries are copied from pinned memory to the GPU of this process, chunk by chunk.

    About `topology_bytes` of the GPU's memory hold entries: of chunks that stay, and of three chunks that are read or
    copied now. A chunk has whole rows, so at least three times the longest row is needed. Copies all entries to pinned
    memory, which takes 0.3 s a GiB, once in the lifetime of `rows`.
    """
    from .gpu.streaming import stream_rows as stream  # CuPy is an extra

    return stream(rows, topology_bytes)


def transpose_rows(rows: InRows, sources: int) -> InRows:
    """The entries by source: row s has the rows that contain source s, ascending.

    A counting sort in one thread on the CPU, a sort of 64-bit keys on the GPU.
    """
    if isinstance(rows, ChunkedRows) and isinstance(rows.source, np.ndarray):
        return transpose_chunks(rows, sources)
    return _twin(rows.source).transpose_rows(rows, sources)


def both_ways(low: IntArray, high: IntArray, weight: NDArray[np.float64] | None, vertices: int) -> InRows:
    """The rows of undirected edges: row v has the other ends of the edges of vertex v, ascending.

    Edges are distinct, sorted by (low, high), with low < high.
    """
    return _twin(low).both_ways(low, high, weight, vertices)


def touched_rows(transposed: InRows, changed: IntArray, rows: int) -> IntArray:
    """The rows, int32, ascending, that contain a `changed` source. `transposed` is from `transpose_rows`."""
    return _twin(changed).touched_rows(transposed, changed, rows)


def count_links(transposed: InRows, one: IntArray, other: IntArray, times: NDArray[np.uint8], links: LongArray) -> None:
    """Add to `links` [rows], in place, the `times` [edges] of each edge (one, other) whose two ends are in the row.

    `transposed` is from `transpose_rows`, of rows without repeated entries. Edges with equal `one` [edges] must be
    adjacent. Marks the rows of `one` and reads those of `other`, which should be fewer (Schank and Wagner, WEA 2005;
    Latapy, "Main-memory triangle computations for very large (sparse (power-law)) graphs", TCS 407, 2008).
    """
    _twin(one).count_links(transposed, one, other, times, links)


def count_all_links(offsets: LongArray, lower: IntArray, times: NDArray[np.uint8]) -> LongArray:
    """For each vertex of a whole graph, the sum of `times` over the edges between its neighbours, int64 [vertices].

    `offsets` [vertices + 1] and `lower` [edges] have, for each vertex, the neighbours that precede it in some order of
    the vertices, ascending, each once. `times` [edges] are at least 1. The forward algorithm (Schank and Wagner, WEA
    2005): each triangle is found once, at its last vertex. In degree order the rows read have O(E^1.5) entries.
    """
    return _twin(lower).count_all_links(offsets, lower, times)


def exact_sums(arrays: Sequence[NDArray[Any]]) -> list[tuple[int, int]]:
    """For each of one or more arrays, its sum without rounding, and the number of values that are not finite.

    Sums of float64 values are in units of 2^-1074. Each value is added to 32-bit digits that cover all exponents
    (Kulisch, "Advanced arithmetic for the digital computer", 2002), so the sum does not depend on order or
    partitioning. Sums of integers and booleans must be below 2^63. On the GPU one transfer brings all sums to the host.
    """
    return _twin(arrays[0]).exact_sums(arrays)


def rank_shares(ranks: RankState) -> None:
    """Set `shares` to the ranks divided by the degrees."""
    _twin(ranks.rank).rank_shares(ranks)


def next_ranks(got: NDArray[np.float64], damping: float, restarts: float, ranks: RankState) -> None:
    """Replace each rank by `damping` × `got` + `restarts`, and set `moved` and `shares`; `got` is float64 [vertices].

    The CPU and the GPU give the same bits: products are rounded before they are added.
    """
    _twin(ranks.rank).next_ranks(got, damping, restarts, ranks)
