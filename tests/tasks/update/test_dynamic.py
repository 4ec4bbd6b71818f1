"""Rows that take batches, against a set of pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from edgemill.tasks.update.dynamic import DynamicRows
from examples import examples

VERTICES = 9
ENDS = st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1))
CLIQUE = list(combinations(range(VERTICES), 2))
BATCHES = st.lists(st.tuples(st.booleans(), st.one_of(st.lists(ENDS, max_size=20), st.just(CLIQUE))), max_size=12)


@given(batches=BATCHES, supports=st.booleans())
@settings(max_examples=examples(150))
def test_batches(batches: list[tuple[bool, list[tuple[int, int]]]], supports: bool) -> None:
    """With loops, repeated pairs, edges that are there and pairs that are no edges."""
    rows, known = DynamicRows(VERTICES, supports), set[tuple[int, int]]()
    for insert, batch in batches:
        ends = np.array(batch, np.int32).reshape(-1, 2).T
        before, pairs = len(known), oracles.simple_edges(batch)
        known = known | pairs if insert else known - pairs
        changed = rows.insert(*ends) if insert else rows.delete(*ends)
        assert changed == abs(len(known) - before) and rows.edges == len(known)
        low, high = rows.pairs()
        assert list(zip(low.tolist(), high.tolist(), strict=True)) == sorted(known)
        if supports:
            expected = oracles.brute_force_support(known)
            assert rows.supports_of(low, high).tolist() == [expected[pair] for pair in sorted(known)]


def test_large_batches_in_two_threads() -> None:
    """Supports after batches of random edges are those counted from nothing."""
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 300, (2, 20_000)).astype(np.int32)
    rows = DynamicRows(300)
    for start in range(0, 20_000, 5_000):
        rows.insert(*ends[:, start : start + 5_000])
    rows.delete(*ends[:, 2_500:7_500])
    whole = DynamicRows(300)
    whole.insert(*rows.pairs())
    adjacent = np.zeros((300, 300), np.int32)
    low, high = rows.pairs()
    adjacent[low, high] = adjacent[high, low] = 1
    expected = (adjacent @ adjacent)[low, high]
    assert (rows.supports_of(low, high) == expected).all() and (whole.supports_of(low, high) == expected).all()
