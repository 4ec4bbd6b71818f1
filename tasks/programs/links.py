"""Count the edges between the sources of each row: every edge is sent to every block.

A block counts the edge (x, y) for each of its vertices with x and y in its row. The edge is sent by the block of its
end of higher degree. A single block has the whole graph and finds each triangle once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import programs as gathers
from ...kernels.graph import IntArray
from ..ids import order
from ..shards.carriers.carrier import Packet, Words
from .block import Block
from .gathering import Gatherer
from .mirrors import Mirrors
from .orders.calls import Calls
from .program import Array, Vertices
from .words import NO_WORDS, pack, unpack

EDGES_PER_EXCHANGE = 2**20
"""The most edges that a block sends in one exchange."""


class GatherLinks(Gatherer):
    """Gathers for `combine` "links", for view "either": each source must be in a row once."""

    def __init__(
        self, calls: Calls, block: Block, mirrors: Mirrors, edges_per_exchange: int = EDGES_PER_EXCHANGE
    ) -> None:
        super().__init__(calls, block, mirrors)
        self.edges_per_exchange = edges_per_exchange
        self.transpose()

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] degrees of own vertices. Emitted values are ignored."""
        return self.mirrors.packets(np.diff(self.block.rows.offsets), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
    ) -> tuple[IntArray | None, Any]:
        """See `Gatherer.gather`. Exchanges once for each `edges_per_exchange` edges of the group with most edges."""
        block, rows = self.block, self.block.rows
        degree = self.mirrors.all_values(np.diff(rows.offsets), packets or [])
        of_row = kernels.row_numbers(rows.offsets)
        one, other = self.mirrors.own[of_row], rows.source
        higher = (degree[one] > degree[other]) | ((degree[one] == degree[other]) & (one > other))
        edges = np.flatnonzero(higher)
        self.entries += len(rows)
        if self.mirrors.carrier.groups == 1:
            offsets = order.offsets(np.bincount(of_row[edges], minlength=rows.rows))
            times = np.full_like(edges, 2, np.uint8) if block.times is None else block.times[edges]
            return None, gathers.count_all_links(offsets, other[edges], times)
        found = np.zeros_like(block.number, np.int64)
        counts = self.mirrors.exchange(np.array([len(edges)], np.uint32), [NO_WORDS] * self.mirrors.carrier.groups)
        most = max(int(packet.common[0]) for packet in counts)
        for first in range(0, most, self.edges_per_exchange):
            part = edges[first : first + self.edges_per_exchange]
            self._count_sent(one[part], other[part], None if block.times is None else block.times[part], found)
        return None, found

    def _count_sent(self, one: IntArray, other: IntArray, times: NDArray[np.uint8] | None, found: Array) -> None:
        """Send edges to all groups, and count the edges of all groups."""
        block, transposed = self.block, self.transpose()
        own_times = np.full_like(one, 2, np.uint8) if times is None else times
        gathers.count_links(transposed, len(found), one, other, own_times, found)
        ends = [block.sources[end].astype(np.int64) for end in (one, other)]
        words = pack(*ends, own_times.astype(np.int32))
        packets = self.mirrors.exchange(words, [NO_WORDS] * self.mirrors.carrier.groups)
        sources = block.sources.astype(np.int64, copy=False)
        for g, packet in enumerate(packets):
            if g == block.group:
                continue
            *numbers, counts = unpack(packet.common, [np.int64, np.int64, np.int32], found)
            position = [kernels.lookup(sources, end) for end in numbers]
            here = (position[0] >= 0) & (position[1] >= 0)
            gathers.count_links(
                transposed, len(found), position[0][here], position[1][here], counts[here].astype(np.uint8), found
            )
