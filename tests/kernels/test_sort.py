"""Sorting by counting, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels import order_pairs, sort_keys


@given(st.lists(st.integers(0, 2**62), max_size=40), st.sampled_from([0, 1, 11, 12, 36, 63]))
def test_keys_ascend(values: list[int], bits: int) -> None:
    keys = np.array([value % 2**bits for value in values], np.int64)
    np.testing.assert_array_equal(sort_keys(keys, bits), np.sort(keys))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_pairs_are_ordered(pairs: list[tuple[int, int]]) -> None:
    low, high = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    order = order_pairs(low, high, 10, 12)
    assert order.tolist() == sorted(range(len(pairs)), key=lambda i: (pairs[i], i))


def test_other_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="no kernels for arrays of type"):
        sort_keys([1], 1)  # type: ignore[arg-type]
