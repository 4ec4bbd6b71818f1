"""Building the shards of a group, and exchanging the endpoint words of edges that two groups store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import (
    NUMPY_ALLOCATOR,
    Allocator,
    ShardGroup,
    build_rows,
    read_endpoint_words,
    write_endpoint_words,
)
from ..errors import InternalError
from .assignment import first_shards
from .carriers.carrier import Carrier
from .edges import ShardEdges

BLOCK = 2**20
"""Maximum edges of each pair of groups in one exchange: 4 MiB per group."""


def build_group(
    edges: ShardEdges, carrier: Carrier, allocator: Allocator = NUMPY_ALLOCATOR, block: int = BLOCK
) -> ShardGroup:
    """Build the shards of this group, and link the halves of its edges with those in other groups."""
    firsts = first_shards(edges.groups, edges.cut.shards)
    first, stop = firsts[edges.group], firsts[edges.group + 1]
    low, high = (np.require(ends, np.uint32, ["C", "W", "A"]) for ends in (edges.low, edges.high))
    support = np.require(edges.support, np.int32, ["C", "W", "A"])
    rows, words = build_rows(low, high, edges.cut, first, stop - first, allocator)
    exchange_endpoint_words(low, high, edges, words, carrier, block)
    return ShardGroup(rows, words, low, high, support, firsts, allocator)


def exchange_endpoint_words(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    edges: ShardEdges,
    words: NDArray[np.uint32],
    carrier: Carrier,
    block: int = BLOCK,
) -> int:
    """Complete `words` [2, edges] with the words of endpoints in other groups, which those groups send.

    All groups call it. Returns the number of exchanges. Raises InternalError if two groups differ in the edges between
    their classes.
    """
    groups = edges.groups
    if groups == 1:
        return 0
    firsts = first_shards(groups, edges.cut.shards)
    group_of = np.repeat(np.arange(groups), np.diff(firsts))
    fixed = (low, high, np.uint32(edges.cut.vertices), np.uint32(edges.cut.shards), group_of, edges.group)
    block = max(1, min(block, len(low)))
    sent, count = np.empty((groups, block), np.uint32), np.zeros(groups, np.int64)
    write_cursor, read_cursor = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    exchanges = 0
    while True:
        write_endpoint_words(*fixed, *words, write_cursor, sent, count)
        more = np.array([bool((write_cursor < len(low)).any())], np.uint32)
        packets = carrier.exchange(more, [part[:n] for part, n in zip(sent, count.tolist(), strict=True)])
        exchanges += 1
        own = [packet.own for packet in packets]
        start = np.append(0, np.cumsum([len(part) for part in own]))
        _check_lengths(own, count, edges.group)
        if read_endpoint_words(*fixed, np.concatenate(own), start, read_cursor, *words).any():
            raise InternalError("two groups of shards do not have the same edges between them")
        if not any(packet.common[0] for packet in packets):
            return exchanges


def _check_lengths(own: Sequence[NDArray[np.uint32]], count: NDArray[np.int64], rank: int) -> None:
    for g, (words, expected) in enumerate(zip(own, count.tolist(), strict=True)):
        if len(words) != expected:
            raise InternalError(
                f"group {g} of shards has {len(words)} edges in common with group {rank}, which has {expected}"
            )
