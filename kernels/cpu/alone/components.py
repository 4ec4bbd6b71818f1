"""Connected components, each named by its smallest vertex."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import IntArray, LongArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..programs.connected import connected_sources, consecutive


@cached_njit(parallel=True)
def _name(lanes, root, number, component, lowered):
    for lane in prange(lanes):
        count = 0
        for v in range(lane * root.size // lanes, (lane + 1) * root.size // lanes):
            component[v] = number[root[v]]
            count += root[v] != v
        lowered[lane] = count


def components(rows: InRows, number: IntArray | LongArray, symmetric: bool) -> tuple[LongArray, int]:
    """([vertices] the smallest number in the component of each vertex, how many vertices have a smaller one than their
    own). `number` [vertices] ascends. See `kernels.programs.connected_sources`.
    """
    root = connected_sources(rows, consecutive(rows.rows), rows.rows, symmetric)
    component, lanes = np.empty(rows.rows, np.int64), get_num_threads()
    lowered = np.empty(lanes, np.int64)
    _name(lanes, root, number, component, lowered)
    return component, int(lowered.sum())
