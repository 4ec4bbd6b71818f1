"""A binary heap of numbers in an array: `heap[0]` is the number of entries, which follow it."""

from __future__ import annotations

from ...runtime.cache import cached_njit


@cached_njit(inline="always")
def push(heap, value):
    """Add a value."""
    heap[0] += 1
    i = heap[0]
    while i > 1 and heap[i >> 1] > value:
        heap[i] = heap[i >> 1]
        i >>= 1
    heap[i] = value


@cached_njit(inline="always")
def pop(heap):
    """Take the least value out."""
    least = heap[1]
    last = heap[heap[0]]
    heap[0] -= 1
    stop = heap[0]
    i = 1
    while 2 * i <= stop:
        child = 2 * i
        if child < stop and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return least
