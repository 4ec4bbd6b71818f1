"""Components from those of an earlier graph are those that are found from nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill import kernels
from edgemill.kernels.cpu.nest import mark_forest
from edgemill.kernels.graph import Nested, Topology
from edgemill.tasks.dense.regrouping import ChangedEdges, EarlierGroups, GroupTables, Regrouped, earlier_groups, regroup
from edgemill.tasks.errors import InputError
from examples import examples

Levels = dict[tuple[int, int], int]
VERTICES = 14
LEAVES = 7
"""Triangles that the tables tell of each DN-graph, to see which are taken over."""

pairs = st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1)).map(sorted).map(tuple)
nights = st.lists(st.dictionaries(pairs.filter(lambda pair: pair[0] < pair[1]), st.integers(-1, 5)), max_size=5)
"""What changes in a night: edges and their new levels, -1 for edges that go."""


def arrays(levels: Levels) -> tuple[Topology, NDArray[np.int32]]:
    rows = sorted(levels)
    low, high = (np.array([row[end] for row in rows], np.int32) for end in (0, 1))
    return Topology(low, high, VERTICES), np.array([levels[row] for row in rows], np.int32)


def forest_of(levels: Levels) -> NDArray[np.int32]:
    edges, level = arrays(levels)
    return np.flatnonzero(mark_forest(edges.low, edges.high, level, VERTICES)).astype(np.int32)


def found(levels: Levels) -> Nested:
    edges, level = arrays(levels)
    return kernels.nest(edges.low, edges.high, level, VERTICES)


def leaves(nested: Nested) -> NDArray[np.bool_]:
    is_leaf = nested.level > 0
    is_leaf[nested.parent[nested.parent >= 0]] = False
    return is_leaf


def tables(nested: Nested) -> GroupTables:
    """The tables of a graph, whose ids are in no order."""
    ids = np.random.default_rng(0).permutation(len(nested) + 1) + 100
    ids[-1] = -1
    total = np.bincount(nested.edge, minlength=len(nested))
    for c in np.flatnonzero(nested.parent >= 0):
        total[nested.parent[c]] += total[c]
    graphs = np.flatnonzero(leaves(nested))
    mixed = np.random.default_rng(1).permutation(len(nested))
    return GroupTables(
        ids[:-1][mixed],
        nested.level[mixed],
        ids[nested.parent][mixed],
        total[mixed],
        ids[nested.vertex],
        ids[graphs],
        np.full(len(graphs), LEAVES),
    )


def change_of(before: Levels, after: Levels, forest: NDArray[np.int32]) -> ChangedEdges:
    rows = sorted(before)
    number = {row: i for i, row in enumerate(rows)}
    return ChangedEdges(
        *arrays(before),
        forest,
        np.array([row not in after for row in rows], np.bool_),
        *arrays(after),
        np.array([number.get(row, -1) for row in sorted(after)], np.int32),
        np.array([before.get(row) != after[row] for row in sorted(after)], np.bool_),
    )


def check(before: Levels, after: Levels, made: Regrouped) -> None:
    then, now = found(before), found(after)
    for name in ("vertex", "level", "least", "parent"):
        assert np.array_equal(getattr(made.nested, name), getattr(now, name)), name
    assert made.edges.tolist() == np.bincount(now.edge, minlength=len(now)).tolist()
    edges, level = arrays(after)
    for k in range(6):
        trees = np.count_nonzero(mark_forest(edges.low, edges.high, level, VERTICES) & (level >= k))
        chosen = made.forest[level[made.forest] >= k]
        kept = mark_forest(edges.low[chosen], edges.high[chosen], level[chosen], VERTICES)
        assert len(chosen) == trees == np.count_nonzero(kept)

    def dn_graphs(levels: Levels, nested: Nested) -> dict[frozenset[tuple[int, int]], int]:
        members: dict[int, set[tuple[int, int]]] = {c: set() for c in np.flatnonzero(leaves(nested)).tolist()}
        for row, c in zip(sorted(levels), nested.edge.tolist(), strict=True):
            members.get(c, set()).add(row)
        return {frozenset(own): levels[min(own)] * 1000 + c for c, own in members.items()}

    earlier = {own: at // 1000 for own, at in dn_graphs(before, then).items()}
    for own, at in dn_graphs(after, now).items():
        assert made.triangles[at % 1000] in ((LEAVES, -1) if earlier.get(own) == at // 1000 else (-1,))


@settings(max_examples=examples(200))
@given(nights)
def test_a_history(history: list[Levels]) -> None:
    """Groups merge, split, appear and vanish, at any levels, and each night starts from what the night before made."""
    levels: Levels = {}
    forest = np.zeros(0, np.int32)
    for night in history:
        after = {row: k for row, k in (levels | night).items() if k >= 0}
        made = regroup(change_of(levels, after, forest), earlier_groups(tables(found(levels))), len(after))
        assert made is not None and made.searched <= len(after)
        check(levels, after, made)
        levels, forest = after, made.forest


def cliques(count: int) -> Levels:
    return {(4 * c + u, 4 * c + v): 2 for c in range(count) for v in range(4) for u in range(v)}


def test_groups_that_did_not_change_are_taken_over() -> None:
    """Two cliques of three are joined at their level: one group of both; the third one is as it was."""
    before = cliques(3) | {(0, 4): 0, (4, 8): 0}
    earlier = earlier_groups(tables(found(before)))
    after = before | {(0, 4): 2}
    made = regroup(change_of(before, after, forest_of(before)), earlier, len(after))
    assert made is not None
    check(before, after, made)
    assert (made.searched, made.triangles.tolist()) == (1, [-1, LEAVES, -1])
    assert regroup(change_of(before, after, forest_of(before)), earlier, 0) is None


def test_nothing_changed() -> None:
    before = cliques(3)
    made = regroup(change_of(before, before, forest_of(before)), earlier_groups(tables(found(before))), 0)
    assert made is not None
    check(before, before, made)
    assert (made.searched, made.triangles.tolist()) == (0, [LEAVES] * 3)


@pytest.mark.parametrize("damage", ["parent", "level", "edges", "innermost", "missing"])
def test_damage_is_refused(damage: str) -> None:
    before = cliques(3) | {(0, 4): 0, (4, 8): 0}
    own = tables(found(before))
    changed = {
        "parent": {"parent": np.where(own.parent < 0, -1, 5)},
        "level": {"level": np.zeros_like(own.level)},
        "edges": {"edges": np.ones_like(own.edges)},
        "innermost": {"innermost": own.innermost + 1000},
        "missing": {"dn_graph": own.dn_graph + 1000},
    }[damage]
    with pytest.raises(InputError, match="the result is damaged: "):
        earlier_groups(replace(own, **changed))


@pytest.mark.parametrize("damage", ["level", "edges", "vertex"])
def test_groups_of_other_edges_are_refused(damage: str) -> None:
    before = cliques(3) | {(0, 4): 0, (4, 8): 0}
    own: EarlierGroups = earlier_groups(tables(found(before)))
    changed: dict[str, Any] = {"level": own.level + 1, "edges": own.edges - 6, "vertex": np.full_like(own.vertex, -1)}
    after = {row: k for row, k in before.items() if 7 not in row}
    change = change_of(before, after, forest_of(before))
    with pytest.raises(InputError, match=r"the result is damaged: .*table hierarchy .*its edges"):
        regroup(change, replace(own, **{damage: changed[damage]}), len(after))
