"""The rows of edges that are left while a schedule is replayed.

Edges that have fallen stay in the rows, where a search for triangles meets them. They are taken out once that pays:
rows of R-MAT 22 have a tenth of their entries at the levels where most edges stand.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import Adjacency, LongArray
from ...runtime.cache import cached_njit
from ..adjacency import cuts_by_entries
from ..arrays.atomics import fetch_add

PARTS = 16
"""Parts of the rows for each thread."""


@cached_njit(parallel=True)
def _keep_later(begin, length, neighbour, edge, key, least, cuts, cursor, threads):
    for _ in prange(threads):
        while True:
            part = fetch_add(cursor, 0, np.int64(1))
            if part >= cuts.size - 1:
                break
            for v in range(cuts[part], cuts[part + 1]):
                start = np.uintp(begin[v])
                target = start
                for q in range(start, start + np.uintp(length[v])):
                    e = edge[q]
                    neighbour[target] = neighbour[q]
                    edge[target] = e
                    target += np.uintp(key[e] >= least)
                length[v] = target - start


def keep_later(rows: Adjacency, key: LongArray, least: int) -> int:
    """Take the edges out of the rows whose `key` is below `least`, in place. Gives the number of edges left."""
    threads = get_num_threads()
    cuts = cuts_by_entries(rows, PARTS * threads)
    entries = rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    _keep_later(*entries, key, least, cuts, np.zeros(1, np.int64), threads)
    return int(rows.length.sum(dtype=np.int64)) // 2
