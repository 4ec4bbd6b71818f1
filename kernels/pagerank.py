"""PageRank with uniform restarts over a whole graph. A superstep is one pass over its rows.

The arithmetic is that of supersteps of gathers, in the same order, so ranks have the same bits. The total change of
ranks is summed with rounding, except where the decision to stop depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .graph import InRows, LongArray

NEAR = 16
"""Earlier ranks are kept once the change is less than this many times the tolerance."""


class Supersteps(Protocol):
    """Ranks, equal at first, and the arrays of supersteps. In `cpu.programs.pagerank` and `gpu.programs.pagerank`.

    Made from the rows and `degree` [vertices], numbers of out-edges.
    """

    rank: NDArray[np.float64]
    """[vertices]"""
    earlier: NDArray[np.float64]
    """[vertices] the ranks before the last superstep, if it had `keep`."""

    def advance(self, damping: float, restarts: float, keep: bool) -> Any:
        """Make each rank `damping` times the sum of rank / degree over its sources, plus `restarts`; in place unless
        `keep`. Returns the total change, rounded; float() of it may wait for a GPU.
        """


def _twin(rows: InRows, degree: LongArray) -> Supersteps:
    offsets: object = rows.offsets
    if isinstance(offsets, np.ndarray):
        from .cpu.programs import pagerank as cpu

        return cpu.Supersteps(rows, degree)
    from .gpu.programs import pagerank as gpu  # CuPy is an extra

    return gpu.Supersteps(rows, degree)


def ranks(
    rows: InRows,
    degree: LongArray,
    damping: float,
    steps: int | None,
    tolerance: float,
    total: Callable[[NDArray[np.float64]], float],
    keep: bool = False,
) -> tuple[NDArray[np.float64], int, float]:
    """(ranks [vertices], number of supersteps, total change in the last one), from equal ranks.

    `rows` and `degree` [vertices] are the in-edges and the numbers of out-edges of all vertices, at least one. Stops
    after `steps` supersteps; if `steps` is None, once ranks change by less than `tolerance` in total. `total` sums
    without rounding. The exact change needs the ranks before the superstep too. They are kept with `keep`, or when the
    change is near the tolerance. If it falls below without having been near, all supersteps are repeated with `keep`.
    """
    count, run = rows.rows, _twin(rows, degree)
    ends = degree == 0
    alone = int(np.count_nonzero(ends & (np.diff(rows.offsets) == 0)))
    sinks = np.flatnonzero(ends) if alone < int(np.count_nonzero(ends)) else None
    rounding, rank_alone = count * 2.0**-52, 1 / count
    done, moved, kept = 0, float(count), False
    while done != steps:
        if steps is None and done and moved <= (1 + rounding) * tolerance:  # the rounded sum may be too large
            if not kept:
                return ranks(rows, degree, damping, steps, tolerance, total, True)
            moved = total(np.abs(run.rank - run.earlier))
            if moved < tolerance:
                break
        kept = keep or done + 1 == steps or (steps is None and moved < NEAR * tolerance)
        # All vertices without edges have the same rank, so the sum of their ranks is a product.
        dangling = float(alone * Fraction(rank_alone)) if sinks is None else total(run.rank[sinks])
        restarts = (1 - damping + damping * dangling) * (1 / count)
        change = run.advance(damping, restarts, kept)
        moved = float(change) if steps is None else moved
        done, rank_alone = done + 1, restarts
    return run.rank, done, total(np.abs(run.rank - run.earlier)) if done else moved
