"""Ranges of vertices by which sorted runs of edges are merged: a sort of all edges at once takes too much memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_SAMPLES = 2**12
"""Ends sampled for each range."""


def low_ranges(lows: Sequence[Any], most: int) -> list[list[slice]]:
    """Cut sorted runs into ranges of low ends, with about `most` edges of all runs in each.

    `lows` [runs] are the low ends of each run, ascending. Gives [ranges][runs] slices. The edges of one low end are in
    one range, whatever their number.
    """
    edges = sum(map(len, lows))
    count = -(-edges // most)
    if count <= 1:
        return [[slice(0, len(low)) for low in lows]] if edges else []
    stride = max(1, edges // (count * _SAMPLES))
    sample = np.sort(np.concatenate([low[stride // 2 :: stride] for low in lows]))
    first = sample[np.asarray(np.arange(1, count) * len(sample) // count, like=sample)]
    cuts = [[0, *np.searchsorted(low, first).tolist(), len(low)] for low in lows]
    return [[slice(cut[i], cut[i + 1]) for cut in cuts] for i in range(count)]


def order_of(low: Any, high: Any) -> Any:
    """The permutation that sorts edges by (low, high), uint32 ends. Takes about 40 bytes an edge."""
    key = low.astype(np.uint64)
    key <<= np.uint64(32)
    key |= high
    return np.argsort(key)
