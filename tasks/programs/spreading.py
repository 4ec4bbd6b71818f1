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
from .words import NO_WORDS, json_to_words, words_to_json


class GatherSpread(Gatherer):
    """For programs that `spread`: a superstep takes values to all vertices that the block's edges connect."""

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        anchor = _common_hub(block, mirrors) if block.mutual and not block.symmetric else None
        self.root = gathers.connected_sources(block.rows, mirrors.own, len(block.sources), block.symmetric, anchor)
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


def _common_hub(block: Block, mirrors: Mirrors) -> int | None:
    """The position among the sources of a vertex with the most entries in the graph; None if it is not there. All
    groups must call this at the same time.

    In each block, the rows that are soon found in the hub's component need not be read to their ends: if neither end
    of an edge reads it, each end is known to be in this component by its own block.
    """
    degree = np.diff(block.rows.offsets)
    first = int(degree.argmax()) if len(degree) else 0
    best = [int(degree[first]), int(block.number[first])] if len(degree) else [-1, 0]
    packets = mirrors.exchange(json_to_words(best), [NO_WORDS] * mirrors.carrier.groups)
    _, hub = max(words_to_json(packet.common) for packet in packets)
    at = int(np.searchsorted(block.sources, np.array([hub], block.sources.dtype, like=block.sources))[0])
    return at if at < len(block.sources) and int(block.sources[at]) == hub else None
