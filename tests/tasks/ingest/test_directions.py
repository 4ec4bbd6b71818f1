"""Edges with direction bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import BACKENDS, Backend
from edgemill.tasks.ingest.directions import DOWN, UP, distinct_edges


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), st.sampled_from([UP, DOWN, UP | DOWN])), max_size=30)
)
@settings(max_examples=60)
def test_each_pair_occurs_once_with_all_its_directions(backend: Backend, rows: list[tuple[int, int, int]]) -> None:
    columns = [[row[at] for row in rows] for at in range(3)]
    low, high = (backend.put(column) for column in columns[:2])
    found = distinct_edges(low, high, backend.put(columns[2], np.uint8), 6, 7)
    wanted: dict[tuple[int, int], int] = {}
    for u, v, way in rows:
        wanted[u, v] = wanted.get((u, v), 0) | way
    got = [backend.get(column).tolist() for column in found]
    assert list(zip(got[0], got[1], strict=True)) == sorted(wanted)
    assert got[2] == [wanted[pair] for pair in sorted(wanted)]
    assert [found[0].dtype, found[1].dtype, found[2].dtype] == [np.int32, np.int32, np.uint8]
