"""The loops of the Leiden algorithm on a GPU; see `kernels.leiden` and leiden.cu."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ..graph import LEIDEN_CLASSES, InRows, Parts, Weighted
from .adjacency import row_numbers
from .programs.components import connected_sources
from .runtime import source
from .runtime.constants import LEIDEN_FEW as FEW
from .runtime.constants import LEIDEN_MANY as MANY
from .runtime.constants import LEIDEN_WARPS as WARPS

LARGE_BLOCK = 1024
"""Threads of a block that sums a longer row."""
SCRATCH_BYTES = 2**31
"""Most bytes of the hash tables of all blocks for longer rows, unless those of LEAST_BLOCKS take more."""
LEAST_BLOCKS = 4
_SLOT_BYTES = 12
_SUMS = ("few", "many", "most")
"""How rows are summed, by their lengths."""


@dataclass(frozen=True)
class Chosen:
    """Vertices by the lengths of their rows."""

    vertices: Any
    """int32"""
    ends: tuple[int, ...]
    """The end of the rows of at most FEW entries, of those of at most MANY, and of all."""


def _start(name: str, items: int, *arguments: Any, warps: bool = False) -> None:
    """Start a kernel with a thread an item, or a warp."""
    if items:
        grid = source.grid(items, WARPS if warps else 32 * WARPS)
        source.kernel(f"leiden:{name}")((grid,), (32 * WARPS,), arguments)


class Level:
    """See `kernels.leiden.Level`."""

    def __init__(self, graph: Weighted) -> None:
        self.graph = graph
        self._directed = np.bool_(graph.directed)
        self._vertices = np.int64(len(graph))
        self._rows = graph.offsets, graph.neighbour, graph.weight

    @cached_property
    def _longest(self) -> int:
        return int(cupy.diff(self.graph.offsets).max()) if len(self.graph) else 0

    def digest(self) -> tuple[int, int]:
        """See `kernels.leiden.Level`."""
        found = cupy.zeros(2, np.int64)
        graph = self.graph
        rows = graph.offsets, self._vertices, graph.neighbour, graph.weight, graph.size, self._directed
        _start("hash", len(graph), *rows, found, warps=True)
        first, second = found.view(np.uint64).tolist()
        return first, second

    def _sorted(self, vertices: Any, number: int) -> tuple[Any, Any]:
        """Vertices by class, and by the lengths of their rows within; [classes * 3] their number."""
        found = cupy.empty(len(vertices), np.int8)
        count = np.int64(len(vertices))
        _start("find_classes", len(vertices), vertices, count, self.graph.offsets, np.int64(number), found)
        counts = cupy.bincount(found, minlength=LEIDEN_CLASSES * len(_SUMS)).get()
        return vertices[cupy.argsort(found)], counts

    def by_class(self, vertices: Any, number: int) -> list[Any]:
        """See `kernels.leiden.Level`."""
        if not len(vertices):
            return []
        placed, counts = self._sorted(vertices, number)
        ends = np.cumsum(counts).reshape(LEIDEN_CLASSES, -1)
        found, start = [], 0
        for own in ends.tolist():
            if own[-1] > start:
                found.append(Chosen(placed[start : own[-1]], tuple(end - start for end in own)))
            start = own[-1]
        return found

    def _sum_rows(
        self, name: str, chosen: Chosen, longest: int, keys: int, own: tuple[Any, ...], same: tuple[Any, ...]
    ) -> None:
        """Start the kernels `name` for the chosen rows. `own` arrays have an element for each.

        Rows have at most `longest` entries and `keys` keys.
        """
        start = 0
        for how, end in zip(_SUMS, chosen.ends, strict=True):
            items, block = end - start, 32 * WARPS
            tables: tuple[Any, ...] = ()
            if items:
                grid = source.grid(items, WARPS if how == "few" else 1, 8 if how == "few" else 16)
                if how == "most":
                    slots = max(LARGE_BLOCK, 1 << (2 * min(longest, keys) - 1).bit_length())
                    grid = min(grid, max(LEAST_BLOCKS, SCRATCH_BYTES // (_SLOT_BYTES * slots)))
                    held = cupy.empty(grid * slots, np.int32), cupy.empty(grid * slots, np.int64)
                    block, tables = LARGE_BLOCK, (*held, np.int64(slots))
                part = slice(start, end)
                arguments = np.int64(items), *tables, chosen.vertices[part], *(each[part] for each in own), *same
                source.kernel(f"leiden:{name}_{how}")((grid,), (block,), arguments)
            start = end

    def move(self, group: Any, total: Any, count: Any, chosen: Any, resolution: float, active: Any) -> Any:
        """See `kernels.leiden.Level`."""
        graph, vertices = self.graph, chosen.vertices
        items = np.int64(len(vertices))
        before, target = cupy.empty(len(vertices), np.int32), cupy.empty(len(vertices), np.int32)
        same = *self._rows, graph.size, self._vertices, self._directed, group, total, count, np.float64(resolution)
        self._sum_rows("choose", chosen, self._longest, len(graph), (before, target), same)
        moved = cupy.zeros((), np.int64)
        sizes = graph.size, self._vertices, self._directed
        _start("move", len(vertices), vertices, items, before, target, *sizes, group, total, count, active, moved)
        rows = graph.offsets, graph.neighbour
        _start("activate", len(vertices), vertices, items, before, target, *rows, group, active, warps=True)
        return moved

    def merge(self, group: Any, total: Any, parts: Parts, chosen: Any, resolution: float) -> Any:
        """See `kernels.leiden.Level`."""
        graph, vertices = self.graph, chosen.vertices
        count, groups = np.int64(len(vertices)), np.int64(len(total) // (1 + graph.directed))
        links, left = cupy.empty(len(vertices), np.int64), cupy.empty(len(vertices), np.bool_)
        now = parts.part, parts.is_joined, parts.size, parts.outside
        sizes = graph.size, self._vertices, self._directed
        same = *self._rows, *sizes, group, total, groups, np.float64(resolution), *now, parts.wanted
        self._sum_rows("choose_part", chosen, self._longest, len(graph), (links,), same)
        _start("merge", len(vertices), vertices, count, *sizes, links, parts.wanted, *now, left)
        merged = parts.part, left, parts.outside, parts.wanted
        _start("count_merged", len(vertices), vertices, count, *self._rows, *merged, warps=True)
        return vertices[left]

    def sizes(self, group: Any, groups: int) -> Any:
        """See `kernels.leiden.Level`."""
        ways = 1 + self.graph.directed
        found, size = cupy.zeros((ways, groups), np.int64), self.graph.size.reshape(ways, -1)
        for way in range(ways):
            _start("add_sizes", len(group), group, np.int64(len(group)), size[way], found[way])
        return found.reshape(-1)

    def within(self, group: Any) -> Any:
        """See `kernels.leiden.Level`."""
        found, graph = cupy.empty(len(group), np.int64), self.graph
        rows = graph.offsets, self._vertices, graph.neighbour, graph.weight
        _start("within", len(group), *rows, group, found, warps=True)
        return found

    def numbered(self, part: Any) -> tuple[Any, int]:
        """See `kernels.leiden.Level`."""
        count = len(part)
        first = cupy.full(2 * count, count, np.int32)
        _start("first_of", count, part, np.int64(count), first)
        first = first[part]
        before = cupy.cumsum(first == cupy.arange(count, dtype=np.int32), dtype=np.int32)
        return before[first] - np.int32(1), int(before[-1])

    def joined(self, part: Any, parts: int) -> Weighted:
        """See `kernels.leiden.Level`."""
        graph = self.graph
        order = cupy.argsort(part).astype(np.int32)
        starts = _cumulated(cupy.diff(graph.offsets)[order])
        neighbour, weight = cupy.empty(len(graph.neighbour), np.int32), cupy.empty(len(graph.neighbour), np.int64)
        rows = graph.offsets, graph.neighbour, graph.weight
        _start("copy_rows", len(part), order, self._vertices, *rows, part, starts, neighbour, weight, warps=True)
        offsets = starts[_cumulated(cupy.bincount(part, minlength=parts))]
        del order, starts
        lengths = cupy.diff(offsets)
        how = (lengths > FEW).astype(np.int8) + (lengths > MANY)
        ends = tuple(np.cumsum(cupy.bincount(how, minlength=len(_SUMS)).get()).tolist())
        chosen, longest = Chosen(cupy.argsort(how).astype(np.int32), ends), int(lengths.max())
        found, none = cupy.empty(parts, np.int64), np.uint64(0)
        same = offsets, neighbour, weight
        self._sum_rows("join", chosen, longest, parts, (), (*same, found, none, none, none, none))
        joined = _cumulated(found)
        entries = int(joined[-1])
        to, weights = cupy.empty(entries, np.int32), cupy.empty(entries, np.int64)
        used = cupy.zeros(parts, np.int32)
        self._sum_rows("join", chosen, longest, parts, (), (*same, none, joined, used, to, weights))
        return Weighted(joined, to, weights, self.sizes(part, parts))

    def connected(self, group: Any) -> Any:
        """See `kernels.leiden.Level`."""
        graph = self.graph
        kept = group[row_numbers(graph.offsets)] == group[graph.neighbour]
        rows = InRows(_cumulated(kept)[graph.offsets], graph.neighbour[kept])
        return connected_sources(rows, cupy.arange(len(graph), dtype=np.int32), len(graph), True)

    def cut(self, group: Any) -> int:
        """See `kernels.leiden.Level`."""
        return int(self.graph.weight.sum() - self.within(group).sum())


def _cumulated(values: Any) -> Any:
    """[len(values) + 1] the sum of the values before each, and of all."""
    found = cupy.zeros(len(values) + 1, np.int64)
    cupy.cumsum(values, dtype=np.int64, out=found[1:])
    return found
