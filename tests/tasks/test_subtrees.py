"""Sums and minima over subtrees of components: the loop in Python, and the kernels, which many components get."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels.cpu.nest import subtree_minima, subtree_sums
from edgemill.tasks.dense import tree


@given(st.data())
def test_loop_and_kernels_agree(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 40))
    above = [data.draw(st.sampled_from([-1, *range(x + 1, size)])) for x in range(size)]
    parent = np.array(above, np.int32)
    values = np.array(data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=size, max_size=size)), np.int64)
    before = values.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_are_few", lambda parent: True)
        sums, minima = tree.subtree_sums(parent, values), tree.subtree_minima(parent, values)
    assert sums.dtype == minima.dtype == np.int64
    assert np.array_equal(sums, subtree_sums(parent, values))
    assert np.array_equal(minima, subtree_minima(parent, values))
    assert np.array_equal(values, before)


def test_kernels_are_called_once_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, values = np.array([2, 2, -1], np.int32), np.array([1, 2, 4])
    assert not tree._are_few(parent)  # this process has kernels
    monkeypatch.setattr(tree, "numba_was_loaded", lambda: False)
    assert tree._are_few(parent)
    assert not tree._are_few(np.zeros(tree.FEW + 1, np.int32))
    assert tree.subtree_sums(parent, values).tolist() == [1, 2, 7]
    assert tree.subtree_minima(parent, values).tolist() == [1, 2, 1]
