"""Breadth-first search in both directions on the GPU, with the results of its twin in `kernels.cpu.programs`."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...graph import InRows
from ..runtime import source
from .classes import BLOCK
from .push_pull import Pushed, count_selected

ALPHA = 15
"""The search switches from pushes to reading rows when the vertices that were reached last have more than one in ALPHA
of the entries that no vertex has pushed.
"""
BETA = 18
"""The search switches back to pushes when a superstep reaches fewer than one vertex in BETA, and fewer vertices than
the superstep before.
"""


class _Search:
    """The arrays of a search."""

    def __init__(self, rows: InRows, out: InRows, start: int) -> None:
        self.rows, self.out, self.count = rows, out, rows.rows
        self.level, self.parent = cupy.full((2, self.count), -1, np.int32)
        self.level[start], self.parent[start] = 0, start
        words = -(-self.count // 32)
        self.active, self.fresh = cupy.empty((2, words), np.uint32)
        self.rest = cupy.empty(self.count, np.int32)
        """A list that kernels fill: rows to be read to their end, or in supersteps that push the reached vertices."""
        self.sums, self.size = cupy.zeros(3, np.uint64), cupy.zeros(1, np.uint32)

    def mark(self, step: int) -> None:
        """Make the vertices of level `step` active."""
        shape = (source.grid(self.count, BLOCK, 16),), (BLOCK,)
        source.kernel("programs/search:mark_level")(
            *shape, (self.level, np.int64(self.count), np.int32(step), self.active)
        )

    def pull(self, step: int) -> tuple[int, int, int]:
        """Reach the vertices with an active source. Returns their number, and the number of entries in their rows of
        sources and in their rows of targets.
        """
        offsets, out, count = self.rows.offsets, self.out.offsets, np.int64(self.count)
        self.sums.fill(0)
        self.size.fill(0)
        own = self.rows.source, self.active, np.int32(step), self.level, self.parent, self.fresh
        listed = self.rest, self.size, self.sums
        shape = (source.grid(self.count, BLOCK, 16),), (BLOCK,)
        source.kernel("programs/search:pull")(*shape, (offsets, out, count, *own, *listed))
        shape = (source.grid(32 * self.count, BLOCK),), (BLOCK,)
        source.kernel("programs/search:pull_rest")(*shape, (offsets, out, *own, *listed))
        self.active, self.fresh = self.fresh, self.active
        reached, entries, further = self.sums.tolist()
        return reached, entries, further

    def push(self, pushed: Pushed, step: int) -> Any:
        """Reach the targets of the pushing vertices. Returns the reached vertices, in any order."""
        self.size.fill(0)
        own = np.int32(step), self.level, self.parent.view(np.uint32), self.rest, self.size
        pushed.launch("reach_rows", *own, VALUE=0, ALONG=0, LARGEST=0)
        return self.rest[: int(self.size[0])].copy()


def search(rows: InRows, out: InRows, start: int) -> tuple[Any, Any, int, int]:
    """(levels, parents, supersteps, entries of the rows that were read in whole or in part); see `kernels.programs`."""
    run, listed = _Search(rows, out, start), cupy.array([start], np.int32)
    pushed = Pushed(out, listed)
    ahead, left, unread = pushed.entries, len(out), len(rows) - count_selected(rows, listed)
    size, before, by_rows, steps, read = 1, 0, False, 0, 0
    while size:
        step = steps + 1
        if not by_rows and ALPHA * ahead > left:
            by_rows, before = True, 0
            run.mark(steps)
        elif by_rows and BETA * size < run.count and size < before:
            by_rows = False
            pushed = Pushed(out, cupy.flatnonzero(run.level == steps).astype(np.int32))
        if by_rows:
            before, read = size, read + unread
            size, entries, ahead = run.pull(step)
            unread -= entries
        else:
            read, left = read + ahead, left - ahead
            listed = run.push(pushed, step)
            size, pushed = len(listed), Pushed(out, listed)
            ahead = pushed.entries
            unread -= ahead if out is rows else count_selected(rows, listed)
        steps += 1
    return run.level, run.parent.astype(np.int64), steps, read
