"""Peeling of a whole graph on one GPU: in compact rows while the others do not fit, and then in those.

Compact rows take a third of the memory and twice the time. They peel the lowest levels, at which most edges and few
triangles are removed. What is left continues in the rows of `peel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

import cupy
import numpy as np

from ..graph import GONE, MAX_LOCAL_EDGES, Topology
from .compact_rows import CompactRows
from .peel import Peeling
from .runtime import source

PLAIN_BYTES = 88
"""Bytes of an edge that is peeled in plain rows, at the peak: its ends and its count (12), and 68 to 71 measured."""
PLAIN_VERTEX_BYTES = 48
"""Bytes of a vertex in plain rows, while they are built."""
SHRINK_AT = 0.5
"""Compact rows are rebuilt when this share of their edges is left."""
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
"""Number of words of `State` in state.cuh."""
_STATE = 20
_PART = 2**26
"""Edges of the graph that are selected at once when they move to plain rows."""


class WholePeeling:
    """The state of a whole graph's peeling; as `kernels.peeling`, for a CSR instead of a topology."""

    def __init__(
        self,
        offsets: Any,
        high: Any,
        count: Any,
        low: Any = None,
        level: int = 0,
        levels: int = 0,
        most_plain: int | None = None,
    ) -> None:
        """`offsets` int64 [vertices + 1] and `high` int32 [edges] are the graph; `count` to `levels` are as in
        `kernels.peeling`. Plain rows get `most_plain` edges at most, or as many as fit.

        An edge without triangles has λ 0 and is not counted by `left`.
        """
        self._offsets, self._high = offsets, high
        self.left = int(cupy.count_nonzero(count > 0))
        self.level = level
        self._levels_before = self.levels = levels
        self._compact: _CompactPhase | None = None
        self._plain: Peeling | None = None
        self._most_plain = MAX_LOCAL_EDGES if most_plain is None else most_plain
        fits = self._fits()  # before more memory is taken: what the pool returns for it are whole blocks
        # λ of removed edges; the triangles of the others, times -1, as of the last time that they were asked for.
        self._known = -count if low is None else cupy.where(count > 0, -count, low)
        if fits:
            self._go_on_in_plain_rows()
        else:
            self._compact = _CompactPhase(CompactRows(offsets, high, self._known), self.left, level)

    @property
    def low(self) -> Any:
        """[edges] λ of the removed edges, 0 for the others."""
        if self._compact is not None:
            self._compact.settle(self._known)
        known = self._known
        if self._plain is not None:
            known = known if not self.left else known.copy()
            self._scatter(self._plain.low, known)
            if not self.left:
                self._plain = None
        return cupy.maximum(known, 0) if self.left else known

    @property
    def count(self) -> Any:
        """[edges] remaining triangles; GONE for removed edges."""
        if self._compact is not None:
            self._compact.settle(self._known, counts=True)
            return cupy.where(self._known < 0, -self._known, np.int32(GONE))
        count = cupy.full(len(self._high), GONE, np.int32)
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
        self._compact.advance(min(self.left - 1, self._fitting()))
        self.left, self.level = self._compact.left, self._compact.level
        self.levels = self._levels_before + self._compact.levels
        if self._fits():
            self._compact.settle(self._known, counts=True)
            self._compact = None
            self._go_on_in_plain_rows()
        elif self.left <= SHRINK_AT * self._compact.in_rows:
            self._compact.settle(self._known)
            self._compact.shrink()

    def _fits(self) -> bool:
        return self.left <= self._fitting()

    def _fitting(self) -> int:
        freed = 0 if self._compact is None else self._compact.nbytes
        return min(self._most_plain, fitting_edges(len(self._offsets) - 1, self.left, freed))

    def _not_known(self) -> Iterator[tuple[int, Any]]:
        """The edges without λ, ascending: the first edge of a part of the graph, and their positions in it."""
        for first in range(0, len(self._known), _PART):
            yield first, cupy.flatnonzero(self._known[first : first + _PART] < 0)

    def _scatter(self, values: Any, to: Any) -> None:
        """Store the values of the edges in plain rows to their positions in `to` [edges]."""
        begun = 0
        for first, stay in self._not_known():
            to[first : first + _PART][stay] = values[begun : begun + len(stay)]
            begun += len(stay)

    def _go_on_in_plain_rows(self) -> None:
        if not self.left:
            return
        low, high, count = (cupy.empty(self.left, np.int32) for _ in range(3))
        begun = 0
        for first, stay in self._not_known():
            part = slice(begun, begun + len(stay))
            begun += len(stay)
            high[part] = self._high[first : first + _PART][stay]
            cupy.negative(self._known[first : first + _PART][stay], out=count[part])
            stay += first
            low[part] = cupy.searchsorted(self._offsets, stay, side="right") - 1
        topology = Topology(low, high, len(self._offsets) - 1)
        self._plain = Peeling(topology, count, None, self.level, self.levels)


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
    def nbytes(self) -> int:
        """Bytes that are free after this phase."""
        return self._rows.nbytes + sum(int(one.nbytes) for one in self._lists)

    def advance(self, enough: int) -> None:
        """Peel levels until at most `enough` edges are left, or so few that a rebuild of the rows pays off."""
        kernel = source.kernel("compact/peel:peel", cooperative=True)
        block = 32 * WARPS
        rows = self._rows
        lists = [word for one in self._lists for word in (one, np.uint32(len(one)))]
        blocks = source.resident(kernel, block, _SHARED)
        stop_at = max(enough, int(SHRINK_AT * self.in_rows))
        arguments = (
            *(rows.row, rows.slots, rows.filters, rows.row_at, np.int64(4 * rows.buckets)),
            *(self._state, cupy.zeros(8, np.uint32), *lists, self._heavy, self._starts),
            *(np.uint64(stop_at), np.uint32(MOST_ROUNDS)),
        )
        kernel((blocks,), (block,), arguments, shared_mem=_SHARED)
        state = self._state.get()
        self.left = int(state.view(np.uint64)[_LEFT])
        self.level, self.levels = int(state[_LEVEL]), int(state[_LEVELS])

    def shrink(self) -> None:
        """Rebuild the rows from the remaining edges. λ of the others must be settled before."""
        self._rows.shrink()
        self.in_rows = self.left
        self._state.view(np.int32)[_LAST] = self.level - 1  # the noted slots are no longer valid

    def settle(self, known: Any, counts: bool = False) -> None:
        """Store λ of edges removed since the last call in `known`, and with `counts` the triangles of the others."""
        self._rows.settle(self._starts, self.levels, known, counts)


def fitting_edges(vertices: int, wanted: int = 0, freed: int = 0) -> int:
    """The number of edges whose plain rows fit the free memory of the device and `freed` bytes.

    If `wanted` edges fit hardly or not, the unused memory of CuPy's pool is returned to the device, and what cannot be
    returned does not count.
    """
    pool = cupy.get_default_memory_pool()

    def fitting(free: int) -> int:
        return max(0, min((free + freed - vertices * PLAIN_VERTEX_BYTES) // PLAIN_BYTES, MAX_LOCAL_EDGES))

    most = fitting(_room(pool) + pool.free_bytes())
    if most > 2 * wanted:
        return most
    pool.free_all_blocks()
    return fitting(_room(pool))


def _room(pool: Any) -> int:
    """Bytes that the pool can request from the device."""
    free = int(cupy.cuda.runtime.memGetInfo()[0])
    return min(free, pool.get_limit() - pool.total_bytes()) if pool.get_limit() else free
