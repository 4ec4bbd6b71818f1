"""The rows that some sources reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit

Masks = NDArray[np.uint64]


@cached_njit
def _reached(offsets, row_of, changed, at, closed, marked, found):
    count = 0
    for s in changed:
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            if not marked[row]:
                for w in range(at.shape[1]):
                    if at[s, w] & ~closed[row, w]:
                        marked[row] = True
                        found[count] = row
                        count += 1
                        break
    for i in range(count):
        marked[found[i]] = False
    return count


def reached_rows(
    transposed: InRows, changed: IntArray, at: Masks, closed: Masks, marked: NDArray[np.bool_], found: IntArray
) -> IntArray:
    """The rows with a changed source that has a bit which is not closed in the row, ascending."""
    count = _reached(transposed.offsets, transposed.source, changed, at, closed, marked, found)
    return np.sort(found[:count])
