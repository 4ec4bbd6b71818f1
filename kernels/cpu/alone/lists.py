"""Lists that several threads append to: each keeps some elements, and adds them when it has many."""

from __future__ import annotations

from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add

KEPT = 1024
"""Elements that a thread keeps before it adds them to the list."""


@cached_njit
def add_kept(kept, held, counters, counter, listed):
    """Add the first `held` of the `kept` elements to a list, whose length is one of the counters."""
    at = fetch_add(counters, counter, held)
    for i in range(held):
        listed[at + i] = kept[i]
