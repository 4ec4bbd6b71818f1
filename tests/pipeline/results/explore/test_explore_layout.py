"""The layout of the explorer's drawings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.pipeline.explorer.drawing import forces, ring
from examples import examples


def ends(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@settings(max_examples=examples(40))
@given(st.integers(0, 40), st.data())
def test_positions_are_in_the_unit_disc_and_reproducible(vertices: int, data: st.DataObject) -> None:
    number = st.integers(0, max(vertices - 1, 0))
    pairs = data.draw(st.lists(st.tuples(number, number).filter(lambda p: p[0] != p[1]))) if vertices > 1 else []
    positions = forces(vertices, *ends(pairs))
    assert positions.shape == (vertices, 2)
    assert np.isfinite(positions).all()
    assert (np.hypot(*positions.T) <= 1 + 1e-9).all()
    assert (positions == forces(vertices, *ends(pairs))).all()
    assert len(np.unique(positions, axis=0)) == vertices


def test_cliques_joined_by_one_edge_are_apart() -> None:
    first, second = list(combinations(range(20), 2)), list(combinations(range(20, 40), 2))
    positions = forces(40, *ends([*first, *second, (0, 20)]))
    centres = positions[:20].mean(axis=0), positions[20:].mean(axis=0)
    spread = max(np.hypot(*(positions[:20] - centres[0]).T).mean(), np.hypot(*(positions[20:] - centres[1]).T).mean())
    assert np.hypot(*(centres[0] - centres[1])) > 2 * spread


@pytest.mark.parametrize("count", [0, 1, 5, 100, 101, 200])
def test_positions_on_rings_are_distinct(count: int) -> None:
    anchors = np.random.default_rng(1).standard_normal((count, 2))
    positions = ring(anchors)
    assert positions.shape == (count, 2)
    assert (np.hypot(*positions.T) > 1.1).all()
    apart = np.hypot(*(positions[:, None] - positions[None, :]).transpose(2, 0, 1)) + np.eye(count) * 9
    assert apart.min(initial=9) > 0.05
    directions = np.argsort(np.arctan2(*anchors.T[::-1])), np.argsort(np.arctan2(*positions.T[::-1]), kind="stable")
    assert (directions[0] == directions[1]).all()
