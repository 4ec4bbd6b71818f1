"""The driver's ledger of open bands: it records which filters have ended, and chooses where to cut their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tasks.bound.band import BandReport, Order


@dataclass
class _Band:
    """An open band [lo, hi). Its filter runs."""

    hi: int
    threshold: int
    step: int
    edges: NDArray[np.int64]
    """[partitions] owned edges in the band."""
    fallen: NDArray[np.int64]
    """[partitions] edges that the filter has moved below its threshold."""
    silent: bool = False


class Ledger:
    """Open bands by their lower ends. Its memory is proportional to partitions times open bands."""

    def __init__(self, highest: int, edges: Sequence[int]) -> None:
        self._open: dict[int, _Band] = {}
        self._partitions = len(edges)
        self.highest = highest
        self.unsettled = 0
        """Edges in open bands."""
        self.steps = 0
        """The largest number of cuts that led to a band."""
        self._first = np.array(edges, np.int64)

    @classmethod
    def resumed(cls, kept: Mapping[str, Any]) -> Ledger:
        """The ledger that `as_json` described."""
        ledger = cls(kept["highest"], kept["first"])
        ledger.unsettled, ledger.steps = kept["unsettled"], kept["steps"]
        for lo, band in kept["open"]:
            edges, fallen = (np.array(band[name], np.int64) for name in ("edges", "fallen"))
            ledger._open[lo] = _Band(band["hi"], band["threshold"], band["step"], edges, fallen, band["silent"])
        return ledger

    def as_json(self) -> dict[str, Any]:
        """The ledger as JSON values."""
        bands = [
            [lo, vars(band) | {"edges": band.edges.tolist(), "fallen": band.fallen.tolist()}]
            for lo, band in self._open.items()
        ]
        return {
            "highest": self.highest,
            "first": self._first.tolist(),
            "unsettled": self.unsettled,
            "steps": self.steps,
            "open": bands,
        }

    def start(self) -> list[Order]:
        """The order that opens the first band, [0, highest]."""
        return [Order(0, 0, self._open_band(0, self.highest + 1, 1, self._first), 0)]

    def record(self, reports: Mapping[int, BandReport]) -> None:
        """Record an exchange. A band is silent when none of its changes had to be sent to another partition."""
        mailed = {lo for report in reports.values() for lo in report.mailed}
        for p, report in reports.items():
            for lo, count in report.fallen.items():
                self._open[lo].fallen[p] += count
        for lo, band in self._open.items():
            band.silent = lo not in mailed

    def split(self) -> list[Order]:
        """Close every silent band and open its halves. Returns the orders for the partitions."""
        orders = []
        for lo in sorted(lo for lo, band in self._open.items() if band.silent):
            band = self._open.pop(lo)
            self.unsettled -= int(band.edges.sum())
            lower = self._open_band(lo, band.threshold, band.step + 1, band.fallen)
            upper = self._open_band(band.threshold, band.hi, band.step + 1, band.edges - band.fallen)
            orders.append(Order(lo, band.threshold, lower, upper))
        return orders

    def concerned(self, orders: Sequence[Order]) -> set[int]:
        """Partitions with owned edges in a band in which an order starts a filter."""
        found: set[int] = set()
        for order in orders:
            for lo, threshold in ((order.band, order.lower), (order.commit, order.upper)):
                if threshold:
                    found.update(np.flatnonzero(self._open[lo].edges).tolist())
        return found

    @property
    def open_bands(self) -> int:
        """Number of open bands."""
        return len(self._open)

    @property
    def floor(self) -> int:
        """Lower end of the lowest open band; above `highest` if no band is open."""
        return min(self._open, default=self.highest + 1)

    def upper_ends(self) -> dict[int, int]:
        """The largest value in each open band, by its lower end."""
        return {lo: band.hi - 1 for lo, band in self._open.items()}

    def _open_band(self, lo: int, hi: int, step: int, edges: NDArray[np.int64]) -> int:
        """Open [lo, hi) if it holds edges and more than one value. Returns its threshold, or 0 if it is not opened.

        The cut is low, at lo + √(hi - lo), because only edges below the cut cost work. Compared with the geometric mean
        it needs a fifth fewer evaluations and as many exchanges (ego-Twitter, cnr-2000 and R-MAT 16 with 4 partitions).
        A cut at lo + 1, which is peeling, needs less than half of these evaluations and five times the exchanges.
        """
        if hi - lo < 2 or not edges.any():
            return 0
        threshold = lo + isqrt(hi - lo)
        self._open[lo] = _Band(hi, threshold, step, edges, np.zeros(self._partitions, np.int64))
        self.unsettled += int(edges.sum())
        self.steps = max(self.steps, step)
        return threshold
