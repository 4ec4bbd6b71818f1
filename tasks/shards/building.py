"""Builds the shards of one group, and meets the other groups about the edges that both have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import MEMORY, Room, ShardGroup, build_rows, give_sides, take_sides
from ..errors import InternalError
from .carrier import Carrier
from .edges import ShardEdges
from .groups import first_shards

BLOCK = 2**20
"""Edges of each two groups that meet in one exchange: 4 MiB a group."""


def build_group(edges: ShardEdges, carrier: Carrier, room: Room = MEMORY, block: int = BLOCK) -> ShardGroup:
    """Build the shards of this group, and link the halves of its edges with those of the others."""
    firsts = first_shards(edges.groups, edges.cut.shards)
    first, stop = firsts[edges.group], firsts[edges.group + 1]
    low, high = (np.require(ends, np.uint32, ["C", "W", "A"]) for ends in (edges.low, edges.high))
    support = np.require(edges.support, np.int32, ["C", "W", "A"])
    rows, sides = build_rows(low, high, edges.cut, first, stop - first, room)
    swap_sides(low, high, edges, sides, carrier, block)
    return ShardGroup(rows, sides, low, high, support, firsts, room)


def swap_sides(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    edges: ShardEdges,
    sides: NDArray[np.uint32],
    carrier: Carrier,
    block: int = BLOCK,
) -> int:
    """Fill in what `sides` [2, edges] lacks: the words of edges' ends in other groups, which these groups give.

    All groups call it. Gives the number of exchanges. Raises InternalError where two groups do not have the same edges
    between them.
    """
    groups = edges.groups
    if groups == 1:
        return 0
    firsts = first_shards(groups, edges.cut.shards)
    group_of = np.repeat(np.arange(groups), np.diff(firsts))
    fixed = (low, high, np.uint32(edges.cut.vertices), np.uint32(edges.cut.shards), group_of, edges.group)
    block = max(1, min(block, len(low)))
    given, count = np.empty((groups, block), np.uint32), np.zeros(groups, np.int64)
    giving, taking = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    exchanges = 0
    while True:
        give_sides(*fixed, *sides, giving, given, count)
        more = np.array([bool((giving < len(low)).any())], np.uint32)
        letters = carrier.exchange(more, [words[:n] for words, n in zip(given, count.tolist(), strict=True)])
        exchanges += 1
        own = [letter.own for letter in letters]
        start = np.append(0, np.cumsum([len(words) for words in own]))
        _check_lengths(own, count, edges.group)
        words = np.concatenate(own)
        if take_sides(*fixed, words, start, taking, *sides).any():
            raise InternalError("two groups of shards do not have the same edges between them")
        if not any(letter.common[0] for letter in letters):
            return exchanges


def _check_lengths(own: Sequence[NDArray[np.uint32]], count: NDArray[np.int64], rank: int) -> None:
    for g, (words, expected) in enumerate(zip(own, count.tolist(), strict=True)):
        if len(words) != expected:
            raise InternalError(
                f"group {g} of shards has {len(words)} edges in common with group {rank}, which has {expected}"
            )
