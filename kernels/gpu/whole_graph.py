"""Peeling of a whole graph on one GPU: in compact rows while plain rows do not fit the device, then in plain rows.

Compact rows (`compact_rows`) take a third of the memory of plain rows (`peel`) and twice the time. They peel the lowest
levels, at which most edges and few triangles are removed. The edges that are left are then peeled in plain rows. If
compact rows do not fit either, a part of their keys is in host memory until enough edges are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import cupy
import numpy as np

from ..graph import FROM_THE_START, GONE, MAX_LOCAL_EDGES, PeelingStart, Topology
from . import compact_rows
from .arrays.indexing import total
from .arrays.transfer import wait_for
from .compact_rows import CompactRows
from .peel import Peeling
from .runtime import source
from .runtime.memory import empty, in_host_memory, near, room

PLAIN_BYTES = 88
"""Bytes of an edge that is peeled in plain rows, at the peak: 12 of its ends and count, and 68 to 71 as measured."""
PLAIN_VERTEX_BYTES = 48
"""Bytes of a vertex in plain rows, while they are built."""
SHRINK_AT = 0.5
"""Compact rows are rebuilt when at most this share of their edges is left."""
SHRINK_APART_AT = 0.7
"""As `SHRINK_AT`, while keys are in host memory."""
_LIST_BYTES = 2.5
"""Bytes an edge of the lists that belong to compact rows."""
_SMALL_BYTES = 2**24
"""Bytes of the lists of compact rows whose size does not depend on the number of edges."""
MOST_ROUNDS = 1000
"""Rounds of one launch. After each launch limits are checked and progress is reported."""
WARPS = 16
"""Warps of a block; equal to remove.cuh."""
_SHARED = WARPS * (8 * (16 + 16 + 4 + 4 + 4) + 192 * (8 + 8 + 4 + 1))
"""Bytes of shared memory of a block: `Work` of remove.cuh for each warp."""
_HEAVY = 2**18
"""Capacity of a round's list of parts of heavy edges; equal to remove.cuh."""
_LEAST_ROOM = 2**16
"""Least capacity of a list, in edges."""
_LEFT, _LEVEL, _LAST, _ROUND, _LEVELS = 0, 2, 3, 4, 5
"""Indices of fields of `State` in state.cuh, in words; `left` has two words."""
_STATE = 20
"""Number of words of `State` in state.cuh."""
_PART = 2**24
"""Edges of the graph that are processed together between launches."""


class WholePeeling:
    """The state of a whole graph's peeling; as `kernels.peeling`, for a CSR instead of a topology."""

    def __init__(
        self,
        offsets: Any,
        high: Any,
        count: Any,
        start: PeelingStart = FROM_THE_START,
        most_plain: int | None = None,
    ) -> None:
        """`offsets` int64 [vertices + 1] and `high` int32 [edges] are the graph; `count` and `start` are as in
        `kernels.peeling`. Plain rows get `most_plain` edges at most, or as many as fit.

        An edge without triangles has λ 0 and is not counted by `left`.
        """
        self._offsets, self._high = offsets, high
        self.left = sum(total(near(count[part]) > 0) for part in _parts(len(count)))
        low: Any = start.low
        self.level, self.levels = start.level, start.levels
        self._compact: _CompactPhase | None = None
        self._plain: Peeling | None = None
        self._most_plain = MAX_LOCAL_EDGES if most_plain is None else most_plain
        fits = self._fits()  # before more memory is taken, since the pool returns only whole blocks to the device
        # λ of removed edges; for each other edge -1 times its triangles when its count was stored last.
        self._known = empty(len(count), np.int32, compact_bytes(len(offsets) - 1, self.left))
        for part in _parts(len(count)):
            values = near(count[part])
            self._known[part] = -values if low is None else cupy.where(values > 0, -values, near(low[part]))
        if fits:
            self._go_on_in_plain_rows()
        else:
            self._go_on_in_compact_rows()

    @property
    def low(self) -> Any:
        """[edges] λ of the removed edges, 0 for the others."""
        if self._compact is not None:
            self._compact.settle(self._known)
        low = self._values(lambda part: cupy.maximum(part, 0)) if self.left else self._known
        if self._plain is not None:
            self._scatter(self._plain.low, low)
            if not self.left:
                self._plain = None
        return low

    @property
    def count(self) -> Any:
        """[edges] remaining triangles; GONE for removed edges."""
        if self._compact is not None:
            self._compact.settle(self._known, counts=True)
            return self._values(lambda part: cupy.where(part < 0, -part, np.int32(GONE)))
        count = empty(len(self._known), np.int32, 0)
        count.fill(GONE)
        if self._plain is not None and self.left:
            self._scatter(self._plain.count, count)
        return count

    def advance(self) -> None:
        """Remove the edges of many levels."""
        if self._plain is not None:
            self._plain.advance()
            self.left, self.level, self.levels = self._plain.left, self._plain.level, self._plain.levels
        if self._compact is None:
            return
        before = self._compact.levels
        self._compact.advance(min(self.left - 1, self._fitting()))
        self.left, self.level = self._compact.left, self._compact.level
        self.levels += self._compact.levels - before
        if self._fits():
            self._compact.settle(self._known, counts=True)
            self._compact = None
            cupy.get_default_memory_pool().free_all_blocks()  # else plain rows might get parts of the slots' memory
            self._go_on_in_plain_rows()
        elif self.left <= self._compact.shrink_at:
            self._compact.settle(self._known, counts=self._compact.apart)
            if self._compact.apart:
                self._compact = None
                self._go_on_in_compact_rows()
            else:
                self._compact.shrink()

    def _fits(self) -> bool:
        return self.left <= self._fitting()

    def _fitting(self) -> int:
        freed = 0 if self._compact is None else self._compact.nbytes
        return min(self._most_plain, fitting_edges(len(self._offsets) - 1, self.left, freed))

    def _values(self, of: Callable[[Any], Any]) -> Any:
        """int32 [edges] the function `of` applied to `known`, part by part."""
        values = empty(len(self._known), np.int32, 0)
        for part in _parts(len(values)):
            values[part] = of(near(self._known[part]))
        return values

    def _not_known(self) -> Iterator[tuple[slice, Any, Any]]:
        """Yield for each part of the graph its edges, their `known`, and the ascending positions of edges without λ."""
        for part in _parts(len(self._known)):
            known = near(self._known[part])
            yield part, known, cupy.flatnonzero(known < 0)

    def _scatter(self, values: Any, to: Any) -> None:
        """Store the values of the edges in plain rows at the positions of these edges in `to` [edges]."""
        begun = 0
        for part, _, stay in self._not_known():
            here = to[part]
            changed = near(here)
            changed[stay] = values[begun : begun + len(stay)]
            if changed is not here:
                here[...] = changed
            begun += len(stay)

    def _go_on_in_compact_rows(self) -> None:
        vertices = len(self._offsets) - 1
        spare = None if compact_rows_fit(vertices, self.left) else int(_LIST_BYTES * self.left) + _SMALL_BYTES
        rows = CompactRows(self._offsets, self._high, self._known, spare)
        self._compact = _CompactPhase(rows, self.left, self.level)

    def _go_on_in_plain_rows(self) -> None:
        if not self.left:
            return
        low, high, count = (cupy.empty(self.left, np.int32) for _ in range(3))
        begun = 0
        for part, known, stay in self._not_known():
            there = slice(begun, begun + len(stay))
            begun += len(stay)
            high[there] = near(self._high[part])[stay]
            count[there] = -known[stay]
            stay += part.start
            low[there] = cupy.searchsorted(self._offsets, stay, side="right") - 1
        topology = Topology(low, high, len(self._offsets) - 1)
        self._plain = Peeling(topology, count, PeelingStart(None, self.level, self.levels))


class _CompactPhase:
    """The levels that are peeled in compact rows."""

    def __init__(self, rows: CompactRows, left: int, level: int) -> None:
        self._rows = rows
        self.left = self.in_rows = left
        self.level, self.levels = level, 0
        self._state = cupy.zeros(_STATE, np.uint32)
        self._state.view(np.int32)[_LEVEL], self._state.view(np.int32)[_LAST] = level, level - 1
        self._state.view(np.uint64)[_LEFT] = left
        self._starts = cupy.empty((isqrt(2 * left) + 2, 2), np.uint32)
        room = 1 << max(_LEAST_ROOM, left // 8).bit_length() - 1
        self._lists = [cupy.empty((size, 2), np.uint32) for size in (room, room // 2, room)]
        self._heavy = cupy.empty((_HEAVY, 4), np.uint32)

    @property
    def shrink_at(self) -> int:
        """Rows are rebuilt when at most this many edges are left."""
        return int((SHRINK_APART_AT if self.apart else SHRINK_AT) * self.in_rows)

    @property
    def apart(self) -> bool:
        """Whether keys are in host memory. Such rows cannot be rebuilt in place."""
        return bool(self._rows.apart)

    @property
    def nbytes(self) -> int:
        """Bytes of the device that the end of this phase frees."""
        return self._rows.nbytes + sum(int(one.nbytes) for one in self._lists)

    def advance(self, enough: int) -> None:
        """Peel levels until at most `enough` or `shrink_at` edges are left, or for MOST_ROUNDS rounds."""
        kernel = source.kernel("compact/peel:peel", cooperative=True, APART=self._rows.apart)
        block = 32 * WARPS
        rows = self._rows
        lists = [word for one in self._lists for word in (one, np.uint32(len(one)))]
        blocks = source.resident(kernel, block, _SHARED)
        stop_at = max(enough, self.shrink_at)
        arguments = (
            *(rows.row, *rows.slots.arguments, rows.filters, rows.row_at, np.int64(4 * rows.buckets)),
            *(self._state, cupy.zeros(8, np.uint32), *lists, self._heavy, self._starts),
            *(np.uint64(stop_at), np.uint32(MOST_ROUNDS)),
        )
        kernel((blocks,), (block,), arguments, shared_mem=_SHARED)
        state = wait_for(self._state)
        self.left = int(state.view(np.uint64)[_LEFT])
        self.level, self.levels = int(state[_LEVEL]), int(state[_LEVELS])

    def shrink(self) -> None:
        """Rebuild the rows from the remaining edges. `settle` must have stored λ of the removed edges before."""
        self._rows.shrink()
        self.in_rows = self.left
        self._state.view(np.int32)[_LAST] = self.level - 1  # the noted slots are no longer valid

    def settle(self, known: Any, counts: bool = False) -> None:
        """Store λ of the edges removed since the last call in `known`; with `counts` also -1 times the triangles of
        each other edge of these rows.
        """
        self._rows.settle(self._starts, self.levels, known, counts)


def _parts(edges: int) -> Iterator[slice]:
    return (slice(first, min(first + _PART, edges)) for first in range(0, edges, _PART))


def fitting_edges(vertices: int, wanted: int = 0, freed: int = 0) -> int:
    """The number of edges whose plain rows fit the free memory of the device plus `freed` bytes. `wanted` is the number
    of edges that are left: if their rows fit easily, the memory pool is not emptied to find out.
    """
    taken = vertices * PLAIN_VERTEX_BYTES
    free = room(wanted * PLAIN_BYTES + taken, freed)
    return max(0, min((free - taken) // PLAIN_BYTES, MAX_LOCAL_EDGES))


def compact_bytes(vertices: int, edges: int) -> int:
    """Bytes of the device that compact rows and their lists take."""
    return int((compact_rows.EDGE_BYTES + _LIST_BYTES) * edges) + compact_rows.VERTEX_BYTES * vertices


def beside_peeling(vertices: int, edges: int, high: Any, support: Any) -> tuple[Any, Any]:
    """Place the ends and the triangles of a graph for the peeling of its `edges` edges with triangles. Returns both.

    If compact rows and λ would not fit the device otherwise, the triangles are moved to mapped host memory. If that is
    not enough, the ends are moved too. Triangles go first, as peeling reads the ends more often.
    """
    wanted = compact_bytes(vertices, edges) + int(support.nbytes)
    free = room(wanted)
    if wanted > free:
        support = in_host_memory(support)
    if wanted > free + int(support.nbytes):
        high = in_host_memory(high)
    return high, support


def compact_rows_fit(vertices: int, edges: int) -> bool:
    """Whether compact rows of a graph of this size fit the free memory of the device."""
    wanted = compact_bytes(vertices, edges)
    return wanted <= room(wanted)
