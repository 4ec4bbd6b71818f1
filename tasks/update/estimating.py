"""How much work an update would be, by samples of the changed edges that are replayed alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology
from .order import Order
from .updating import OverBudget, update_order

SHARES = (1 / 32, 1 / 8)
"""Shares of the changed edges in the two samples. The smaller one is part of the larger one."""
FEWEST = 32
"""Fewer changed edges are all replayed."""


@dataclass(frozen=True)
class Estimate:
    """What samples tell."""

    work: int
    """Work that the update is expected to take, as in `Updated`."""
    sampled: int
    """Changed edges of the largest sample that was replayed."""
    is_over: bool = False
    """Whether a sample alone was so much work that it was stopped. The update then takes more than `work`."""


def estimate_work(
    edges: Topology, order: Order, removed: NDArray[np.bool_], added: Topology, most_work: int
) -> Estimate:
    """Estimate the work of `update_order` with the same arguments.

    Work is taken to grow with a power of the number of changed edges, as between the two samples: it is 1 for
    edges that are far from each other, and 0 if a few of them disturb as much as all do, as when a large star goes. The
    power lies between these. Stops at half of `most_work` in the small sample, and at all of it in the large
    one, or where the first edges of a sample tell that it will be more. The same changes give the same estimate.
    """
    lost = np.flatnonzero(removed)
    drawn = np.random.default_rng(0).random(len(lost) + added.edges)
    found: list[tuple[int, int]] = []
    samples = [(1.0, most_work)]
    if len(drawn) > FEWEST:
        samples = [(SHARES[0], most_work // 2), (SHARES[1], most_work)]
    for share, most in samples:
        chosen = drawn < share
        size = int(np.count_nonzero(chosen))
        if not size:
            continue
        gone = np.zeros(edges.edges, np.bool_)
        gone[lost[chosen[: len(lost)]]] = True
        come = chosen[len(lost) :]
        own = Topology(added.low[come], added.high[come], added.vertices)
        try:
            found.append((size, update_order(edges, order, gone, own, most).work))
        except OverBudget as over:
            return Estimate(over.work, size, True)
    if not found:
        return Estimate(0, 0)
    (less, low), (more, high) = found[0], found[-1]
    power = min(max(log(max(high, 1) / max(low, 1)) / log(more / less), 0), 1) if more > less else 1
    return Estimate(round(high * (len(drawn) / more) ** power), more)
