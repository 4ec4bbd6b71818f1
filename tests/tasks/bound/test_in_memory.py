"""Triangles and λ in one process, against the oracles."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import oracles
import strategies
from edgemill.tasks.bound.peel import find_lambda, find_triangles


@given(rows=strategies.edge_lists(12))
@settings(max_examples=30)
def test_against_the_oracles(rows: list[tuple[int, int]]) -> None:
    edges = sorted(oracles.simple_edges(rows))
    low, high = (np.array([edge[end] for edge in edges], np.int32) for end in (0, 1))
    given_first = low.copy(), high.copy()
    owned, subgraph = find_triangles(high, low, 12)  # the order of the two ends does not matter
    support = dict(zip((edges[row] for row in owned.row), subgraph.support.tolist(), strict=True))
    lam = dict(zip((edges[row] for row in owned.row), find_lambda(subgraph).tolist(), strict=True))
    assert support == oracles.brute_force_support(rows)
    assert lam == oracles.brute_force_lambda(rows)
    assert (low == given_first[0]).all() and (high == given_first[1]).all()
