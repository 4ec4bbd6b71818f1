"""The k largest values of each row, with their sources."""

from __future__ import annotations

import numpy as np

from ....kernels.graph import IntArray, LongArray
from ..program import Array, Top


def top_of_rows(offsets: LongArray, row: IntArray, value: Array, source: Array, k: int, least: object) -> Top:
    """The `k` largest values of each row; of equal ones those that come first.

    `offsets` is int64 [rows + 1]; `row`, `value` and `source` are [entries], in the order of their rows. `least` fills
    the places of rows with fewer values, with source -1. Two stable sorts of all entries.
    """
    # The reverse of a stable order of the reversed values has equal values in their order.
    descending = len(value) - 1 - np.argsort(value[::-1], kind="stable")[::-1]
    order = descending[np.argsort(row[descending], kind="stable")]
    rank = np.arange(len(value), like=value) - offsets[row]
    kept = rank < k
    order, place = order[kept], row[kept].astype(np.int64) * k + rank[kept]
    rows = len(offsets) - 1
    best = np.full_like(value, least, shape=(rows * k,))
    best_source = np.full_like(source, -1, shape=(rows * k,))
    best[place], best_source[place] = value[order], source[order]
    return Top(best.reshape(rows, k), best_source.reshape(rows, k))
