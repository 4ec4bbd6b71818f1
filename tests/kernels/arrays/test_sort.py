"""The order of pairs, against Python's sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels import order_pairs


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_pairs_are_ordered(pairs: list[tuple[int, int]]) -> None:
    low, high = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    order = order_pairs(low, high, 10, 12)
    assert order.tolist() == sorted(range(len(pairs)), key=lambda i: (pairs[i], i))
