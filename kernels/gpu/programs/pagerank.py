"""PageRank's arithmetic over all vertices in one pass, and supersteps with uniform restarts; see `kernels.pagerank`."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...graph import InRows, RankState
from ..runtime import source
from .classes import BLOCK
from .reductions import row_sums


class Supersteps:
    """The twin on the GPU; see `kernels.pagerank.Supersteps`."""

    def __init__(self, rows: InRows, degree: Any) -> None:
        self._rows, count = rows, rows.rows
        self._divisor = cupy.maximum(degree, 1).astype(np.uint32)
        self.rank, self.earlier = cupy.full(count, 1 / count), cupy.empty(count)
        self._shares = self.rank / self._divisor

    def advance(self, damping: float, restarts: float, keep: bool) -> Any:
        """Run a superstep. Returns the total change of the ranks, rounded; see `kernels.pagerank.Supersteps`."""
        got, count = row_sums(self._rows, self._shares, ""), self._rows.rows
        after, moved = self.earlier if keep else self.rank, cupy.zeros(1)
        source.kernel("programs/ranks:next_ranks")(
            (source.grid(count, BLOCK, 16),),
            (BLOCK,),
            (
                got,
                np.int64(count),
                np.float64(damping),
                np.float64(restarts),
                self._divisor,
                self.rank,
                after,
                self._shares,
                moved,
            ),
        )
        if keep:
            self.rank, self.earlier = after, self.rank
        return moved[0]


def rank_shares(ranks: RankState) -> None:
    """The twin on the GPU; see `kernels.programs`."""
    cupy.divide(ranks.rank, ranks.degree, out=ranks.shares)


def next_ranks(got: Any, damping: float, restarts: float, ranks: RankState) -> None:
    """The twin on the GPU; see `kernels.programs`."""
    vertices = len(ranks.rank)
    written = ranks.degree, ranks.rank, ranks.moved, ranks.shares
    source.kernel("programs/ranks:replace_ranks")(
        (source.grid(vertices, BLOCK, 16),),
        (BLOCK,),
        (got, np.int64(vertices), np.float64(damping), np.float64(restarts), *written),
    )
