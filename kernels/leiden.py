"""Communities by the Leiden algorithm, with the same bits for any number of threads, on CPUs and on a GPU.

Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific Reports 9,
2019. The quality of a partition is the sum over communities C of

    w(C) - resolution * S(C)² / 2

where w(C) is the weight of the edges inside, and S(C) the sum of the sizes of the vertices. For modularity (Reichardt,
Bornholdt, 2006) a size is the weight of a vertex's edges, and the resolution is divided by the weight of all edges
times two; for the constant Potts model (Traag, Van Dooren, Nesterov, 2011) a size is 1. For directed modularity
(Leicht, Newman, "Community structure in directed networks", Physical Review Letters 100, 2008) a vertex has two sizes,
the weights of its out-edges and of its in-edges, and in place of S(C)² / 2 is the product of their sums. The resolution
is divided by the weight of all edges then.

Vertices move in rounds. A hash puts each vertex into one of a few classes. The vertices of a class choose where to
move at the same time, from the same state, and then all move. The vertices of a group are merged to its parts in the
same way; where the paper merges a vertex at random, each takes the best merger. Weights are integers, so that sums do
not depend on the order. Vertices of the last level of an iteration move until no move of a single one, to the group of
a neighbour or to be alone, makes the groups better.

The arrays of a graph select the twin of the loops: `cpu.leiden` or `gpu.leiden`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import row_numbers
from .graph import InRows, IntArray, LongArray, Parts, Weighted
from .runtime.device import module_of

MOST_ROUNDS = 200
"""Most rounds in which vertices of one level move."""
MOST_MERGING = 4
"""Most rounds in which vertices are merged whose choice was merged to another part at the same time."""
EXACT_BITS = 52
"""Bits of the sum of all weights as integers."""


def digest(graph: Weighted) -> str:
    """A hash of the vertices and edges, in whatever order rows have their entries."""
    return "".join(f"{word:016x}" for word in _level_of(graph).digest())


class Level(Protocol):
    """The loops over a graph, whose vertices are those of one level."""

    graph: Weighted

    def __init__(self, graph: Weighted) -> None:
        """With tables for the neighbours of a vertex."""

    def digest(self) -> tuple[int, int]:
        """Two sums of hashes of all entries and sizes, as 64-bit words."""

    def by_class(self, vertices: IntArray, number: int) -> list[IntArray]:
        """The vertices of each class that has some, in their order. Classes depend on the round `number`."""

    def move(
        self,
        group: IntArray,
        total: LongArray,
        count: LongArray,
        chosen: IntArray,
        resolution: float,
        active: NDArray[np.bool_],
    ) -> Any:
        """Move each chosen vertex to the group of the largest gain, of several the one of smallest number.

        Groups have numbers below twice that of vertices, `total` sizes and `count` vertices. A vertex to be alone moves
        to the group of its own number, or that and the number of vertices, of which one must have no vertex. Marks the
        vertices as not `active`, and the neighbours of those that moved, outside of their new groups, as active.
        Returns the number of those that moved, which may be on the device.
        """

    def merge(self, group: IntArray, total: LongArray, parts: Parts, chosen: IntArray, resolution: float) -> IntArray:
        """Merge each chosen vertex that is a part by itself to the part of its group with the largest gain.

        As in the paper, only vertices and parts that are well connected to the rest of their group are merged. All
        choose from the same state. Returns the vertices whose choice is merged to another part at the same time; they
        are not merged, except the one of larger number of two that chose each other.
        """

    def sizes(self, group: IntArray, groups: int) -> LongArray:
        """The sizes of groups, [groups], or of a directed graph [2 * groups]."""

    def within(self, group: IntArray) -> LongArray:
        """[vertices] the weight of the edges of each vertex within its group."""

    def numbered(self, part: IntArray) -> tuple[IntArray, int]:
        """The number of each vertex's part, in the order of their first vertices, and of parts.

        `part` has values below twice the number of vertices.
        """

    def joined(self, part: IntArray, parts: int) -> Weighted:
        """The graph whose vertices are the parts, without edges inside of parts."""

    def connected(self, group: IntArray) -> IntArray:
        """The connected parts of each group: the smallest vertex of the part of each vertex."""

    def cut(self, group: IntArray) -> int:
        """The weight of the edges between groups, times two."""


def _level_of(graph: Weighted) -> Level:
    twin: type[Level]
    if module_of(graph.offsets) is np:
        from .cpu.leiden import Level as twin  # loads Numba
    else:
        from .gpu.leiden import Level as twin  # CuPy is an extra
    return twin(graph)


def _move_all(level: Level, group: IntArray, resolution: float) -> None:
    """Move vertices between groups, which changes `group`, until none gains whose neighbours moved."""
    arrays, vertices = module_of(group), len(level.graph)
    total = level.sizes(group, 2 * vertices)
    count = arrays.bincount(group, minlength=2 * vertices)
    active = arrays.ones(vertices, np.bool_)
    for number in range(MOST_ROUNDS):
        moved = 0
        for chosen in level.by_class(arrays.flatnonzero(active).astype(np.int32), number):
            moved += level.move(group, total, count, chosen, resolution, active)
        if not int(moved):
            break


def _settled(level: Level, group: IntArray, resolution: float) -> tuple[IntArray, bool]:
    """Connected groups that no move of a single vertex makes better, and whether it took at most MOST_ROUNDS."""
    found = level.connected(group)
    for _ in range(MOST_ROUNDS):
        moved = found.copy()
        _move_all(level, moved, resolution)
        if bool((moved == found).all()):
            return found, True
        found = level.connected(moved)
    return found, False


def _parted(level: Level, group: IntArray, resolution: float) -> tuple[IntArray, int]:
    """The part of each vertex within its group, and the number of parts."""
    arrays, graph = module_of(group), level.graph
    group, groups = level.numbered(group)
    total = level.sizes(group, groups)
    every = arrays.arange(len(graph), dtype=np.int32)
    parts = Parts(
        every.copy(), arrays.zeros(len(graph), np.bool_), graph.size.copy(), level.within(group), every.copy()
    )
    left = every
    for number in range(MOST_MERGING):
        again = [
            level.merge(group, total, parts, chosen, resolution)
            for chosen in level.by_class(left, MOST_ROUNDS + number)
        ]
        left = arrays.sort(arrays.concatenate(again)) if again else left[:0]
        if not len(left):
            break
    return level.numbered(parts.part)


def quality(graph: Weighted, group: IntArray, resolution: float) -> float:
    """The quality of groups; for modularity times the weight of all edges."""
    return graph.total - _lost(_level_of(graph), group, resolution)


def _lost(level: Level, group: IntArray, resolution: float) -> float:
    """What groups have less of quality than the weight of all edges."""
    vertices = len(level.graph)
    sizes = level.sizes(group, vertices)
    host: LongArray = sizes if isinstance(sizes, np.ndarray) else sizes.get()
    # By cumulated sums, in order, so that no library chooses the order.
    products = host[:vertices].astype(np.float64) * host[-vertices:] if vertices else np.zeros(0)
    pairs = float(np.cumsum(products)[-1]) if vertices else 0.0
    if not level.graph.directed:
        pairs /= 2
    return level.cut(group) / 2 + resolution * pairs


class Partition(NamedTuple):
    """Groups of the vertices of a graph, and how they were merged."""

    group: IntArray
    """[vertices] groups, numbered by their first vertices. Each is connected."""
    parts: tuple[IntArray, ...]
    """[levels, vertices] the parts of each level, the largest first: those of the first level are parts of groups, and
    those of each next level are parts of them. Each is connected. The first are the vertices of the last level.
    """
    is_settled: bool
    """Whether no move of a single one of these to the group of a neighbour, or to be alone, makes the groups better."""

    @property
    def levels(self) -> tuple[IntArray, ...]:
        """The groups, and the parts of each level."""
        return self.group, *self.parts


def _iterate(
    graph: Weighted, group: IntArray, resolution: float, each: bool, moves: bool = True
) -> Iterator[tuple[Partition, float]]:
    """One iteration of the algorithm from `group`: the groups after its last level, or after `each` level.

    Groups are connected. With what they have less of quality than the weight of all edges. Without `moves` they are
    those of `group`, which must be connected.
    """
    arrays, first_level = module_of(group), _level_of(graph)
    level, of_vertex = first_level, arrays.arange(len(graph), dtype=np.int32)
    before: tuple[IntArray, ...] = ()
    while True:
        vertices = len(level.graph)
        if moves:
            _move_all(level, group, resolution)
        part, parts = _parted(level, group, resolution)
        is_last = parts == vertices
        if each or is_last:
            settled = False
            if is_last and moves:
                group, settled = _settled(level, group, resolution)
            found = level.connected(group)
            numbered = first_level.numbered(found[of_vertex])[0]
            yield Partition(numbered, before, settled), _lost(level, found, resolution)
        if is_last:
            return
        group = level.numbered(group)[0]
        of_part = arrays.empty(parts, np.int32)
        of_part[part] = group  # the same for all vertices of a part
        level, group = _level_of(level.joined(part, parts)), of_part
        of_vertex = part[of_vertex]
        before = of_vertex, *before


def leiden(graph: Weighted, resolution: float, iterations: int | None = None, each: bool = False) -> Iterator[IntArray]:
    """The groups of `partitions`, from single vertices."""
    return (found.group for found in partitions(graph, resolution, iterations, each=each))


def partitions(
    graph: Weighted,
    resolution: float,
    iterations: int | None = None,
    start: IntArray | None = None,
    each: bool = False,
) -> Iterator[Partition]:
    """Better and better groups: of each vertex, int32, numbered by their first vertices, and connected.

    One for each iteration, or with `each` for each level of an iteration, in which vertices move once. Ends after
    `iterations`, or after one that finds nothing better. Nothing, if each vertex by itself is best.

    With `start` [vertices], int32 from 0 to their number, these groups without what is not connected are the first, and
    the iterations begin with them. All arrays are of one type.
    """
    if not len(graph):
        return
    best = module_of(graph.offsets).arange(len(graph), dtype=np.int32)
    if start is not None:
        best = _level_of(graph).connected(start)
    least = _lost(_level_of(graph), best, resolution)
    is_better, done = True, 0
    if start is not None:
        ((first, _),) = _iterate(graph, best.copy(), resolution, False, moves=False)
        yield first
    while is_better and (iterations is None or done < iterations):
        is_better, done = False, done + 1
        for found, lost in _iterate(graph, best.copy(), resolution, each):
            if lost < least:
                best, least, is_better = found.group, lost, True
                yield found
            elif start is not None and bool((found.group == first.group).all()):
                yield found  # which tells whether they are settled


def whole_weights(weight: NDArray[np.float64]) -> tuple[LongArray, float]:
    """Weights as integers, so that their sum has at most EXACT_BITS bits, and what a weight of 1 is among them: a power
    of two.

    Exact if the weights are multiples of its inverse; others are rounded.
    """
    arrays, total = module_of(weight), float(weight.sum())
    if total == 0 or (total < 2**EXACT_BITS and not bool((weight % 1).any())):
        return weight.astype(np.int64), 1.0
    exponent = EXACT_BITS - int(np.frexp(total)[1])
    return arrays.rint(arrays.ldexp(weight, exponent)).astype(np.int64), float(np.ldexp(1.0, exponent))


def graph_of_rows(rows: InRows, potts: bool) -> tuple[Weighted, float]:
    """The graph of rows that have each edge at both ends, and the resolution that stands for 1.

    Sizes are those of modularity, or 1 with `potts`. Edges of weight 0 are left out.
    """
    arrays, offsets = module_of(rows.offsets), rows.offsets
    whole, one = (arrays.ones(len(rows), np.int64), 1.0) if rows.weight is None else whole_weights(rows.weight)
    size = arrays.ones(len(offsets) - 1, np.int64) if potts else _row_sums(offsets, whole)
    graph = _without_zeros(offsets, rows.source, whole, size)
    return graph, one if potts else 1 / max(1, int(size.sum()))


def directed_graph_of_rows(rows: InRows, transposed: Callable[[InRows], InRows]) -> tuple[Weighted, float]:
    """The graph of rows that have the in-edges of each vertex, and the resolution that stands for 1 in directed
    modularity. `transposed` gives rows that have the out-edges. Edges of weight 0 are left out.
    """
    arrays = module_of(rows.offsets)
    whole = arrays.ones(len(rows), np.int64) if rows.weight is None else whole_weights(rows.weight)[0]
    into = replace(rows, weight=whole.astype(np.float64))  # exact: of at most EXACT_BITS bits
    out = transposed(into)
    offsets = out.offsets + into.offsets
    entries = len(out) + len(into)
    neighbour, weight = arrays.empty(entries, np.int32), arrays.empty(entries, np.int64)
    sizes = []
    for own, first in ((out, offsets[:-1]), (into, offsets[:-1] + arrays.diff(out.offsets))):
        at = arrays.arange(len(own)) + (first - own.offsets[:-1])[row_numbers(own.offsets)]
        integers = own.weights.astype(np.int64)
        neighbour[at], weight[at] = own.source, integers
        sizes.append(_row_sums(own.offsets, integers))
    graph = _without_zeros(offsets, neighbour, weight, arrays.concatenate(sizes))
    return graph, 1 / max(1, int(sizes[0].sum()))


def _row_sums(offsets: LongArray, values: LongArray) -> LongArray:
    """[rows] the sum of the values of each row."""
    arrays = module_of(offsets)
    summed = arrays.zeros(len(values) + 1, np.int64)
    arrays.cumsum(values, out=summed[1:])
    found: LongArray = arrays.diff(summed[offsets])
    return found


def _without_zeros(offsets: LongArray, neighbour: IntArray, weight: LongArray, size: LongArray) -> Weighted:
    arrays, kept = module_of(offsets), weight > 0
    if not bool(kept.all()):
        before = arrays.zeros(len(weight) + 1, np.int64)
        arrays.cumsum(kept, out=before[1:])
        neighbour, weight, offsets = neighbour[kept], weight[kept], before[offsets]
    return Weighted(offsets, neighbour, weight, size)


def graph_for_modularity(
    source: IntArray, target: IntArray, weight: NDArray[np.float64] | None, vertices: int
) -> tuple[Weighted, float]:
    """The graph of some edges, and the resolution for the modularity that has resolution 1.

    `source` and `target` are the ends of each edge, once, in any order; loops and parallel edges are allowed. NumPy's
    arrays.
    """
    whole = np.ones(len(source), np.int64) if weight is None else whole_weights(weight)[0]
    ends, others, both = np.append(source, target), np.append(target, source), np.append(whole, whole)
    size = np.zeros(vertices, np.int64)
    np.add.at(size, ends, both)
    kept = (ends != others) & (both > 0)
    ends, others, both = ends[kept], others[kept], both[kept]
    order = np.lexsort((others, ends))
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=vertices), out=offsets[1:])
    graph = Weighted(offsets, others[order].astype(np.int32), both[order], size)
    return graph, 1 / max(1, int(size.sum()))
