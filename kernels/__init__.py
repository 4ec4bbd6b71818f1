"""All compiled code: functions over arrays. The only layer that imports Numba and CuPy. It imports no other layer.

Each operation runs on the backend of its array arguments, `cpu` for NumPy's arrays and `gpu` for CuPy's, and raises
TypeError for other arrays. Unless stated otherwise, all arrays of a call are of one type, and operations do not write
to their arguments. A backend is loaded at its first call, since Numba and CuPy take long to import. Start with
`backend`, which lists the operations; `cuda` has the CUDA sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .backend import Backend, Fixpoint, Mask, Peeling
from .filters import Changes, Filtering
from .graph import FROM_THE_START, Adjacency, IntArray, LongArray, Nested, PeelingStart, Topology
from .runtime import threads
from .runtime.device import device, finished_joined, finished_to_host, on_host, to_device, to_host, trim

if TYPE_CHECKING:
    from .cpu.shards.cut import Cut
    from .cpu.shards.triangles import MergedRows, ThirdVertexRows

threads.set_passive_waiting()

__all__ = [
    "adjacency",
    "changes",
    "compact",
    "count_by_third_vertex",
    "device",
    "filtering",
    "finished_joined",
    "finished_to_host",
    "fixpoint",
    "join",
    "lookup",
    "merge_rows",
    "nest",
    "nonzero",
    "number_marked",
    "on_host",
    "order_pairs",
    "peeling",
    "positions_by_group",
    "row_numbers",
    "scatter_max",
    "scatter_sum",
    "store",
    "supports",
    "take",
    "third_vertex_rows",
    "to_device",
    "to_host",
    "total",
    "trim",
]


def _backend(array: object) -> Backend:
    if isinstance(array, np.ndarray):
        from . import cpu

        return cpu
    if type(array).__module__.partition(".")[0] == "cupy":
        from . import gpu  # CuPy is an extra, and its import is slow

        return gpu
    raise TypeError(f"no kernels for arrays of type {type(array).__module__}.{type(array).__qualname__}")


def row_numbers(offsets: LongArray) -> IntArray:
    """The row of each entry of a CSR, int32 [entries]. `offsets` is int64 [rows + 1]."""
    return _backend(offsets).row_numbers(offsets)


def lookup(keys: IntArray | LongArray, values: IntArray | LongArray) -> IntArray:
    """The index of each value in `keys`, int32 [values]; -1 for a value that `keys` does not contain.

    `keys` is ascending, without repeats, and of the type of `values`. Uses binary search; on CPUs a table, if there are
    many values for the range of the keys.
    """
    return _backend(keys).lookup(keys, values)


def supports(offsets: LongArray, high: IntArray, share: int = 0, shares: int = 1) -> IntArray:
    """The number of triangles of each edge of a graph, int32 [edges]. Their sum is three times all triangles.

    `offsets` int64 [vertices + 1] and `high` int32 [edges] are its oriented CSR, ascending within a list. The forward
    algorithm (Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005) finds each
    triangle a < b < c once, by an intersection of the lists of a and b. If `shares` is above 1, only share `share` of
    `shares` disjoint shares of the triangles is counted.
    """
    return _backend(high).supports(offsets, high, share, shares)


def merge_rows(low: NDArray[np.uint32], high: NDArray[np.uint32], runs: LongArray, vertices: int) -> MergedRows:
    """Merge runs of edges, each sorted by (low, high), into rows in this order. No edge occurs twice.

    `low` and `high` [edges] are vertices < `vertices`. Run i is [runs[i], runs[i + 1]); `runs` is in host memory.
    The result has `high` in this order, and `origin`, the index of each edge in the input.
    """
    merged: MergedRows = _backend(high).merge_rows(low, high, runs, vertices)
    return merged


def third_vertex_rows(rows: MergedRows, cut: Cut, first: int, shards: int) -> ThirdVertexRows:
    """Index the edges of a group. All their high ends are in its `shards` classes from `first` on; see `Cut`."""
    built: ThirdVertexRows = _backend(rows.high).third_vertex_rows(rows, cut, first, shards)
    return built


def count_by_third_vertex(
    rows: ThirdVertexRows, starts: NDArray[np.uint32], low: NDArray[np.uint32], high: NDArray[np.uint32], sums: IntArray
) -> tuple[IntArray, int]:
    """Find the triangles a < b < c of the given edges (a, b) in which c belongs to the group's classes.

    List i of the given edges is low[i] → high[starts[i] : starts[i + 1]], ascending. Returns the number of triangles of
    each given edge, int32 [len(high)], and their total. Adds to `sums`, int32 [edges of the group], in place, the
    number for each edge (a, c) and (b, c). The forward algorithm, restricted to the third vertices of one group.
    """
    found: tuple[IntArray, int] = _backend(sums).count_by_third_vertex(rows, starts, low, high, sums)
    return found


def adjacency(topology: Topology) -> Adjacency:
    """The rows of a graph in both directions."""
    return _backend(topology.low).adjacency(topology)


def compact(rows: Adjacency, live: NDArray[np.bool_]) -> Adjacency:
    """The rows, packed, with only the edges that `live` [edges] marks. Edges and vertices keep their numbers."""
    return _backend(rows.edge).compact(rows, live)


def peeling(
    topology: Topology, count: IntArray, start: PeelingStart = FROM_THE_START, higher: Mask | None = None
) -> Peeling:
    """Peel a subgraph whose edges have `count` int32 [edges] triangles.

    Call `advance()` while `left`, the number of edges to remove, is not 0: it removes the edges of the next level, or
    of several levels. After each call `low` int32 [edges] is λ of the removed edges, `count` the remaining triangles of
    the others (negative for removed edges), `level` the next level and `levels` the number of levels that had edges.
    To continue this peeling in another one, pass its `count`, and the other three as `start`.

    `higher` [edges] marks the edges of higher bands: they remain, `left` does not include them, and their `count` is
    not read. The other edges are one band; their `count` is that at the first level of the band.
    """
    return _backend(topology.low).Peeling(topology, count, start, higher)


def filtering(topology: Topology, count: IntArray, rows: Any = None) -> Filtering:
    """Remove the edges of a graph with fewer triangles than thresholds, pass by pass, on one of several workers.

    `count` int32 [edges] is the number of triangles of each edge, before any is removed. `rows` is the result of
    `adjacency`, if it exists. Both are changed. In a pass each worker removes its share of the edges. The losses, added
    up over all workers, are then subtracted from `count`, which is the same on all workers. As PKT (Kabir and Madduri,
    HPEC 2017), but thresholds may skip levels.
    """
    return _backend(topology.low).Filtering(topology, count, rows)


def changes(count: IntArray, amounts: IntArray) -> Changes:
    """The `amounts` int32 [edges] by which one of several workers lowers counts.

    Their sums over all workers are subtracted from `count` int32 [edges], the same on all workers. Both may be changed.
    """
    return _backend(count).Changes(count, amounts)


def fixpoint(topology: Topology, rows: Adjacency, highest: int) -> Fixpoint:
    """Scratch memory for fixpoint iterations in a graph whose bounds are at most `highest`.

    `evaluate(bound, active, by_one)` lowers the `bound` int32 [edges] of each `active` edge once, in place. The value
    of a triangle is the lesser bound of its other two edges. The new bound is the h-index of these values, or with
    `by_one` one less than before, if it has too few of them. Returns the edges to evaluate again, int32, ascending.
    """
    return _backend(topology.low).Fixpoint(topology, rows, highest)


def nest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested:
    """The connected components of {edges of level ≥ k} for all k, and how they are nested.

    Edge e joins low[e] and high[e], both < `vertices`, at level[e] ≥ 0. The ends may be in any order; loops and
    repeated edges are allowed. Union-find from the highest level down, as in Kruskal's algorithm; for many edges on the
    CPU, over a maximum spanning forest only.
    """
    return _backend(low).nest(low, high, level, vertices)


def take(values: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """`values[index]`, by all threads. `index` is int32 or int64, and ≥ 0."""
    return _backend(values).take(values, index)


def nonzero(values: IntArray | NDArray[np.bool_]) -> IntArray:
    """The positions of the values that are not 0, int32, ascending, by all threads; at most 2^31 - 1 values."""
    return _backend(values).nonzero(values)


def number_marked(marked: NDArray[np.bool_]) -> IntArray:
    """The number of each marked value among the marked values, from 0, int32 [values]; undefined for other values.

    At most 2^31 - 1 values. On CPUs by one thread, without the GIL if there are many values.
    """
    return _backend(marked).number_marked(marked)


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts, at least one, one after the other; copied by all threads, without the GIL."""
    return _backend(parts[0]).join(parts)


def store(target: NDArray[Any], index: NDArray[Any], values: NDArray[Any]) -> None:
    """`target[index] = values`, by all threads: changes `target`. `index` is int32 or int64, and ≥ 0.

    Where an index repeats, its values must be equal.
    """
    _backend(target).store(target, index, values)


def total(values: IntArray | NDArray[np.bool_]) -> int:
    """The sum of an array of bool or int32. On a GPU it waits for the kernels that this thread has started."""
    if on_host(values):  # does not load Numba
        return int(np.count_nonzero(values)) if values.dtype == np.bool_ else int(values.sum(dtype=np.int64))
    _backend(values)
    from .gpu.arrays.indexing import total

    return total(values)


def bincount(index: IntArray | LongArray, size: int) -> LongArray:
    """How often each index occurs, int64 [size]; the indices are int32 or int64, from 0 to size - 1."""
    return _backend(index).bincount(index, size)


def scatter_sum(index: IntArray, values: IntArray, size: int) -> LongArray:
    """Add each value to the slot with its index. Returns the sums, int64 [size]; 0 for a slot without values."""
    return _backend(values).scatter_sum(index, values, size)


def scatter_max(index: IntArray, values: IntArray, size: int) -> IntArray:
    """The largest of the values ≥ 0 with each index, int32 [size]; 0 for a slot without values."""
    return _backend(values).scatter_max(index, values, size)


def order_pairs(low: IntArray, high: IntArray, lows: int, highs: int) -> IntArray | LongArray:
    """The permutation [pairs] that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs.

    Equal pairs keep their order. Int32 on the CPU; on the GPU int64, or int32 for many pairs.
    """
    return _backend(low).order_pairs(low, high, lows, highs)


def positions_by_group(group: NDArray[np.int16], groups: int) -> list[IntArray]:
    """[groups] the positions of each group's elements in `group`, int32, ascending, for 0 ≤ group < groups."""
    return _backend(group).positions_by_group(group, groups)
