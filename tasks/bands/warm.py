"""Compiles what peeling in bands calls between workers, or loads it from the cache, before a stage is timed."""

from __future__ import annotations

import numpy as np

from ...kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from ...kernels.runtime.cache import compiling


def warm_bands() -> None:
    """Call the kernels of packets between workers. One process of a machine compiles them, and the others load them.

    `kernels.runtime.warm` has the kernels that peel.
    """
    with compiling("packets of bands"):
        own = np.zeros(1, np.uint32)
        store_release(own, 0, 1)
        own.flags.writeable = False  # words of other workers are read-only
        spin_until_at_least(own, 0, load_acquire(own, 0), 1)
