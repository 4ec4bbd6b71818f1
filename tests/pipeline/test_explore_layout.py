"""Where the explorer puts vertices."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.pipeline.explore.layout import forces, ring


def ends(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@settings(max_examples=40)
@given(st.integers(0, 40), st.data())
def test_all_lie_in_the_unit_disc_and_the_same_every_time(vertices: int, data: st.DataObject) -> None:
    number = st.integers(0, max(vertices - 1, 0))
    pairs = data.draw(st.lists(st.tuples(number, number).filter(lambda p: p[0] != p[1]))) if vertices > 1 else []
    places = forces(vertices, *ends(pairs))
    assert places.shape == (vertices, 2)
    assert np.isfinite(places).all()
    assert (np.hypot(*places.T) <= 1 + 1e-9).all()
    assert (places == forces(vertices, *ends(pairs))).all()
    assert len(np.unique(places, axis=0)) == vertices


def test_cliques_that_one_edge_joins_lie_apart() -> None:
    first, second = list(combinations(range(20), 2)), list(combinations(range(20, 40), 2))
    places = forces(40, *ends([*first, *second, (0, 20)]))
    centres = places[:20].mean(axis=0), places[20:].mean(axis=0)
    spread = max(np.hypot(*(places[:20] - centres[0]).T).mean(), np.hypot(*(places[20:] - centres[1]).T).mean())
    assert np.hypot(*(centres[0] - centres[1])) > 2 * spread


@pytest.mark.parametrize("count", [0, 1, 5, 100, 101, 200])
def test_rings_lie_around_the_disc_without_two_in_one_place(count: int) -> None:
    anchors = np.random.default_rng(1).standard_normal((count, 2))
    places = ring(anchors)
    assert places.shape == (count, 2)
    assert (np.hypot(*places.T) > 1.1).all()
    apart = np.hypot(*(places[:, None] - places[None, :]).transpose(2, 0, 1)) + np.eye(count) * 9
    assert apart.min(initial=9) > 0.05
    directions = np.argsort(np.arctan2(*anchors.T[::-1])), np.argsort(np.arctan2(*places.T[::-1]), kind="stable")
    assert (directions[0] == directions[1]).all()
