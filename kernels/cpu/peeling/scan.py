"""Passes over all edges of a graph that find the first edges to remove."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...runtime.cache import cached_njit
from ..arrays.gather import join, numbers


@cached_njit(parallel=True)
def _below(live, first, stop, count, threshold, weak, found, least, start):
    """Each thread scans its own run of `live` and drops removed edges from it."""
    for thread in prange(first.size):
        to = first[thread]
        hits = first[thread]
        smallest = np.int32(2147483647)
        for i in range(first[thread], stop[thread]):
            e = live[i]
            c = count[e]
            if c >= 0:
                live[to] = e
                to += 1
                if start is not None:
                    start[e] = c
                if c < threshold:
                    weak[hits] = e
                    hits += 1
                elif c < smallest:
                    smallest = c
        stop[thread] = to
        found[thread] = hits
        least[thread] = smallest


class Live:
    """The remaining edges of one peeling, in one run for each thread. Mutable."""

    def __init__(self, edges: int, own: IntArray | None = None) -> None:
        """All edges, or the edges `own`."""
        self.live = numbers(edges) if own is None else own
        self._cut(len(self.live))
        self.weak = np.empty(len(self.live), np.int32)
        self.start: IntArray | None = None
        """[edges] if it is set, `below` stores the counts of the remaining edges in it."""

    def share_out(self) -> None:
        """Make the runs equally long. Edges of one run may go long before those of another."""
        self.live = join([self.live[a:b] for a, b in zip(self.first, self.stop, strict=True)])
        self._cut(len(self.live))

    def _cut(self, edges: int) -> None:
        cuts = np.linspace(0, edges, get_num_threads() + 1).astype(np.int64)
        self.first, self.stop = cuts[:-1].copy(), cuts[1:].copy()


@cached_njit(parallel=True)
def _not_removed(state, live):
    for e in prange(state.size):
        live[e] = state[e] >= 0


def not_removed(state: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether each edge remains, bool [edges]. `state` [edges] has the states of a cascade."""
    live = np.empty(len(state), np.bool_)
    _not_removed(state, live)
    return live


def below(live: Live, count: IntArray, threshold: int) -> tuple[IntArray, int]:
    """The edges with 0 ≤ count < threshold, ascending, and the least count of the others (2^31 - 1 without others)."""
    found = np.empty(len(live.first), np.int64)
    least = np.empty(len(live.first), np.int32)
    _below(live.live, live.first, live.stop, count, np.int32(threshold), live.weak, found, least, live.start)
    runs = [live.weak[a:b] for a, b in zip(live.first, found, strict=True)]
    return join(runs), int(least.min())
