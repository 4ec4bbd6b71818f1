"""Words of values gathered, scattered and copied, positions by group and lookups, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.indexing import SERIAL, copy_words, gather_words, scatter_words
from edgemill.kernels.runtime.threads import kernel_threads

everywhere = pytest.mark.parametrize("backend", BACKENDS)
RANDOM = np.random.default_rng(5)
sizes = pytest.mark.parametrize("count", [0, 1, 7, 3 * SERIAL + 5], ids=["none", "one", "few", "many"])
"""Too few for several threads, and enough."""


@sizes
@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_words_of_values(count: int, kind: Any) -> None:
    values, index = RANDOM.integers(0, 2**31, 2 * count + 1).astype(kind), RANDOM.permutation(2 * count + 1)[:count]
    at = index.astype(np.int32)
    with kernel_threads(2):
        words = np.full(1 + count * values.itemsize // 4, 3, np.uint32)
        gather_words(values, at, words[1:])  # not aligned to eight bytes
        assert words[0] == 3
        assert words[1:].copy().view(kind).tolist() == values[index].tolist()
        found = np.zeros_like(values)
        scatter_words(words[1:], at, found)
        known = np.zeros_like(values)
        known[index] = values[index]
        assert np.array_equal(found, known)
        again = np.zeros_like(words)
        copy_words(words, again)
    assert np.array_equal(again, words)


@sizes
@everywhere
@pytest.mark.parametrize("threads", [1, 2])
def test_positions_by_group(count: int, backend: Backend, threads: int) -> None:
    """Group 2 of 5 is empty."""
    group = RANDOM.choice(np.array([0, 1, 3, 4], np.int16), count)
    with kernel_threads(threads):
        found = kernels.positions_by_group(backend.put(group, np.int16), 5)
    assert [backend.get(one).tolist() for one in found] == [np.flatnonzero(group == g).tolist() for g in range(5)]
    assert all(one.dtype == np.int32 for one in found)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_lookup_of_dense_keys(kind: Any) -> None:
    """By a table: some of the values are between keys, and some beyond the first and the last one."""
    keys = np.flatnonzero(RANDOM.random(4000) < 0.5).astype(kind) - kind(50)
    values = RANDOM.integers(-300, 4300, 5000).astype(kind)
    with kernel_threads(2):
        found = kernels.lookup(keys, values)
    at = {int(key): i for i, key in enumerate(keys)}
    assert found.tolist() == [at.get(int(value), -1) for value in values]
