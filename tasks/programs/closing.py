"""How many edges there are between the sources of each row: every edge is shown to every block.

As in the rows of shards: with the edge (x, y), a block counts it for those of its vertices that have x and y in their
rows. An edge comes from the block whose row has the end of higher degree. A block that is alone has the whole graph,
and finds each triangle once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import programs as gathers
from .. import order
from ..shards.carrier import Letter, Words
from .block import Block
from .gathering import Gatherer, IntArray
from .mail import NOTHING, pack, unpack
from .mirrors import Mirrors
from .program import Array, Program, Vertices

SHOWN = 2**20
"""Edges that a block shows in one exchange."""


class OfClosed(Gatherer):
    """For `closed`. Raises ValueError unless each source is in a row once."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors, shown: int = SHOWN) -> None:
        super().__init__(program, block, mirrors)
        if block.view != "either":
            raise ValueError(f"{type(program).__name__}.combine is 'closed', which is for view 'either'")
        self.shown = shown
        self.turn()

    def letters(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] degrees of own vertices: what is emitted is not looked at."""
        return self.mirrors.letters(np.diff(self.block.rows.offsets), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, letters: list[Letter]
    ) -> tuple[IntArray | None, Any]:
        """See `Gatherer.gather`; meets the others once for each `shown` edges that one of them has."""
        block, rows = self.block, self.block.rows
        degree = np.empty(len(block.sources), np.int64)
        degree[self.mirrors.own] = np.diff(rows.offsets)
        self.mirrors.take_all(letters, degree)
        of_row = kernels.row_numbers(rows.offsets)
        one, other = self.mirrors.own[of_row], rows.source
        higher = (degree[one] > degree[other]) | ((degree[one] == degree[other]) & (one > other))
        edges = np.flatnonzero(higher)
        self.entries += len(rows)
        if len(self.mirrors.heard) == 1:
            offsets = order.offsets(np.bincount(of_row[edges], minlength=rows.rows))
            times = np.full(len(edges), 2, np.uint8) if block.times is None else block.times[edges]
            return None, gathers.count_closing_whole(offsets, other[edges], times)
        found = np.zeros(rows.rows, np.int64)
        counts = self.mirrors.exchange(np.array([len(edges)], np.uint32), [NOTHING] * len(self.mirrors.heard))
        most = max(int(letter.common[0]) for letter in counts)
        for first in range(0, most, self.shown):
            part = edges[first : first + self.shown]
            self._show(one[part], other[part], None if block.times is None else block.times[part], found)
        return None, found

    def _show(self, one: IntArray, other: IntArray, times: NDArray[np.uint8] | None, found: Array) -> None:
        """Show edges to all groups, and count those that all groups show."""
        block, turned = self.block, self.turn()
        own_times = np.full(len(one), 2, np.uint8) if times is None else times
        gathers.count_closing(turned, len(found), one, other, own_times, found)
        ends = [block.sources[end].astype(np.int64) for end in (one, other)]
        words = pack(*ends, own_times.astype(np.int32))
        letters = self.mirrors.exchange(words, [NOTHING] * len(self.mirrors.heard))
        sources = block.sources.astype(np.int64, copy=False)
        for g, letter in enumerate(letters):
            if g == block.group:
                continue
            *numbers, counts = unpack(letter.common, [np.int64, np.int64, np.int32])
            place = [kernels.lookup(sources, end) for end in numbers]
            here = (place[0] >= 0) & (place[1] >= 0)
            gathers.count_closing(
                turned, len(found), place[0][here], place[1][here], counts[here].astype(np.uint8), found
            )
