"""The edges of a group on a GPU, merged from those that each bucket sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .... import kernels

if TYPE_CHECKING:
    from ..edges import SupportedEdges

AT_ONCE = 2**26
"""Edges that are merged at once, or somewhat more."""


class MergedEdges(NamedTuple):
    """Edges sorted by (low, high), of which some are owned."""

    low: NDArray[np.uint32]
    """[edges]"""
    high: NDArray[np.uint32]
    """[edges]"""
    support: NDArray[np.int32]
    """[edges]"""
    bucket: NDArray[np.int16]
    """[owned edges]"""
    row: NDArray[np.int32]
    """[owned edges] as in SupportedEdges."""
    entries: int
    """Ends in the group."""


def merge_edges(
    parts: Sequence[SupportedEdges], senders: Sequence[int], is_own: Callable[[NDArray[np.uint32]], NDArray[np.bool_]]
) -> MergedEdges:
    """Merge at least one part; `senders` [parts] are their buckets. `is_own` tells which vertices are the group's.

    Takes about 100 bytes for each edge that is merged at once, beside the arguments and the result.
    """
    from ....kernels.gpu.shards.triangles import low_ranges, order_of  # imports CuPy

    edges, owned = sum(map(len, parts)), sum(len(part.row) for part in parts)
    first = parts[0]
    low, high = (np.empty_like(end, shape=(edges,)) for end in (first.low, first.high))
    support = np.empty_like(first.support, shape=(edges,))
    row = np.empty_like(first.row, shape=(owned,))
    bucket = np.empty_like(row, np.int16)
    at = own_at = entries = 0
    taken = [0] * len(parts)  # owned edges of each part so far
    for cuts in low_ranges([part.low for part in parts], AT_ONCE):
        lows, highs, supports = (
            np.concatenate([getattr(part, name)[cut] for part, cut in zip(parts, cuts, strict=True)])
            for name in ("low", "high", "support")
        )
        mine = is_own(highs)
        entries += kernels.total(mine) + kernels.total(is_own(lows))
        rows, of_part, start = [], [], 0
        for p, (part, cut) in enumerate(zip(parts, cuts, strict=True)):
            length = cut.stop - cut.start
            count = kernels.total(mine[start : start + length])
            rows.append(part.row[taken[p] : taken[p] + count])
            of_part.append(np.full_like(bucket, senders[p], shape=(count,)))
            taken[p] += count
            start += length
        by = order_of(lows, highs)
        stop = at + len(by)
        low[at:stop], high[at:stop], support[at:stop] = lows[by], highs[by], supports[by]
        number = np.cumsum(mine, dtype=np.int32) - np.int32(1)  # of each owned edge among those of the range
        kept = number[by][mine[by]]
        row[own_at : own_at + len(kept)] = np.concatenate(rows)[kept]
        bucket[own_at : own_at + len(kept)] = np.concatenate(of_part)[kept]
        at, own_at = stop, own_at + len(kept)
    return MergedEdges(low, high, support, bucket, row, entries)
