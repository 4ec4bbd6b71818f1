"""Columns of values as 32-bit words in messages, which several threads gather from arrays and scatter to arrays.

Values have one word or two. Words need not be aligned to the size of a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...runtime.cache import cached_njit

Words = NDArray[np.uint32]
SERIAL = 2**14
"""Up to this number of values one thread is faster than several, which take time to start."""


@cached_njit(parallel=True)
def _gather(lanes, index, words, out):
    for lane in prange(lanes):
        first, end = lane * index.size // lanes, (lane + 1) * index.size // lanes
        if out.size == index.size:
            for i in range(first, end):
                out[i] = words[index[i]]
        else:
            for i in range(first, end):
                at = 2 * np.int64(index[i])
                out[2 * i], out[2 * i + 1] = words[at], words[at + 1]


@cached_njit(parallel=True)
def _scatter(lanes, index, words, out):
    for lane in prange(lanes):
        first, end = lane * index.size // lanes, (lane + 1) * index.size // lanes
        if words.size == index.size:
            for i in range(first, end):
                out[index[i]] = words[i]
        else:
            for i in range(first, end):
                at = 2 * np.int64(index[i])
                out[at], out[at + 1] = words[2 * i], words[2 * i + 1]


@cached_njit(parallel=True)
def _copy(lanes, words, out):
    for lane in prange(lanes):
        for i in range(lane * words.size // lanes, (lane + 1) * words.size // lanes):
            out[i] = words[i]


def _lanes(count: int) -> int:
    return get_num_threads() if count > SERIAL else 1


def gather_words(values: NDArray[Any], index: IntArray, out: Words) -> None:
    """Write the words of `values[index]` to `out`."""
    _gather(_lanes(len(index)), index, values.view(np.uint32), out)


def scatter_words(words: Words, index: IntArray, out: NDArray[Any]) -> None:
    """Write values, given as words, to `out[index]`. No index comes twice."""
    _scatter(_lanes(len(index)), index, words, out.view(np.uint32))


def copy_words(words: Words, out: Words) -> None:
    """Copy words to other memory of the same length."""
    if len(words) > SERIAL:
        _copy(get_num_threads(), words, out)
    else:
        out[:] = words
