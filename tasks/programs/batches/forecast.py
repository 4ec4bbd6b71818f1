"""The time of a run over batches of sources: predicted from its first batches, and limited."""

from __future__ import annotations

import time

import numpy as np

from ...shards.carriers.carrier import Carrier
from ..words import NO_WORDS

TIMED = 3
"""The fewest batches that predict the time."""
SHARE = 20
"""One batch in SHARE improves the prediction, if that are more than TIMED."""


class Forecast:
    """The prediction for a run over `sources`, of which each batch has `width`."""

    def __init__(self, sources: int, width: int) -> None:
        self.batches = -(-sources // width)
        last = sources - (self.batches - 1) * width
        self.last = (1 + last / width) / 2
        """The time of the last batch over that of a full one: half of the time of a batch does not depend on its size.
        Measured: 0.6 to 0.9 with a fourth of the sources.
        """
        self.timed = max(TIMED, self.batches // SHARE)
        """Batches that predict the time."""
        self.seconds: float | None = None
        """Predicted seconds from start to end; None before TIMED batches are done, and if there are no more."""
        self._spent: list[float] = []

    def add(self, spent: float) -> None:
        """Take the seconds from the start to the end of the next batch.

        The first batch also allocates memory and touches it for the first time, so it does not count for the others.
        """
        self._spent.append(spent)
        done = len(self._spent)
        if TIMED <= done <= self.timed and done < self.batches:
            each = (spent - self._spent[0]) / (done - 1)
            self.seconds = spent + each * (self.batches - done - 1 + self.last)


def is_late(carrier: Carrier, seconds: float | None, start: float) -> bool:
    """Whether `seconds` have passed since `start`, on the monotonic clock, at any group. All groups must call this."""
    if seconds is None:
        return False
    late = np.array([time.monotonic() - start >= seconds], np.uint32)
    packets = carrier.exchange(late, [NO_WORDS] * carrier.groups)
    return any(int(packet.common[0]) for packet in packets)
