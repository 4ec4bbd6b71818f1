"""Let values spread within a block at once: the smallest value of each of its connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import programs as gathers
from ...kernels.graph import IntArray
from ..shards.carriers.carrier import Packet, Words
from .block import Block
from .gathering import Gatherer, neutral_value, sendable
from .mirrors import Mirrors
from .orders.calls import Calls
from .program import Array, Vertices


class GatherSpread(Gatherer):
    """For programs that `spread`: a superstep takes values to all vertices that the block's edges connect."""

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        self.root = gathers.connected_sources(block.rows, mirrors.own, len(block.sources), block.symmetric)
        self.entries += len(block)
        self.least: Array | None = None

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
    ) -> tuple[IntArray | None, Any]:
        values = sendable(values)
        position, received = self.mirrors.take_moved(packets, moved, values, ascending=False)
        if self.least is None:
            if values.dtype.kind != "i":
                self.calls.refuse("emit", vertices, f"spreads {values.dtype}, not int32 or int64")
            self.least = np.full_like(self.root, neutral_value(values.dtype, False), values.dtype)
        lowered = np.zeros_like(self.root, np.bool_)
        gathers.lower_values(self.root, position, received, self.least, lowered)
        return gathers.lowered_rows(self.root, self.mirrors.own, self.least, lowered)
