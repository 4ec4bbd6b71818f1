"""What changed between two graphs, against sets of Python."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.graph import Topology
from edgemill.tasks.errors import InputError
from edgemill.tasks.update.merging import Change, NumberedGraph, apply_batch, compare, graph_of
from examples import examples

Pairs = set[tuple[Any, Any]]

PAIRS = list(combinations(range(7), 2))
pairs = st.sets(st.sampled_from(PAIRS))
loops = st.sets(st.integers(0, 6), max_size=2)


def numbered(edges: Pairs, alone: set[Any], text: bool) -> NumberedGraph:
    names = sorted({end for edge in edges for end in edge} | alone)
    rows = sorted(edges)
    low, high = (np.array([names.index(row[end]) for row in rows], np.int32) for end in (0, 1))
    shown = pa.array([f"v{name}" for name in names], pa.large_string()) if text else np.array(names, np.int64)
    return NumberedGraph(shown, Topology(low, high, len(names)))


def plain(graph: NumberedGraph) -> tuple[list[Any], Pairs]:
    names = graph.ids.to_pylist() if isinstance(graph.ids, pa.Array) else graph.ids.tolist()
    ids = [int(str(name).removeprefix("v")) for name in names]
    edges = list(zip(graph.edges.low.tolist(), graph.edges.high.tolist(), strict=True))
    assert edges == sorted(edges)
    return ids, {(ids[low], ids[high]) for low, high in edges}


def check(change: Change, before: Pairs, ids: set[int], after: Pairs, vertices: set[int]) -> None:
    edges, origin = change.after()
    graph = change.final(edges)
    assert plain(graph) == (sorted(vertices), after)
    assert (change.lost, change.added.edges) == (len(before - after), len(after - before))
    assert (change.came, change.gone) == (len(vertices - ids), len(ids - vertices))
    assert change.is_empty == ((before, ids) == (after, vertices))
    old = sorted(before)
    assert [old[row] if row >= 0 else None for row in origin] == [e if e in before else None for e in sorted(after)]
    rows = list(range(len(old)))
    assert change.edges_before(edges, rows).tolist() == [sum(e < edge for e in after) for edge in old]
    firsts = change.vertices_before(range(len(ids))).tolist()
    assert firsts == [sum(v < own for v in vertices) for own in sorted(ids)]
    none = np.zeros(edges.edges, np.bool_)
    expected = {v for edge in before - after for v in edge} | (vertices - ids)
    touched = change.touched_vertices(edges, none)
    assert [v for v, hit in zip(sorted(vertices), touched, strict=True) if hit] == sorted(expected & vertices)


@settings(max_examples=examples(150))
@given(pairs, loops, pairs, loops, pairs, loops, st.booleans())
def test_a_batch(
    before: Pairs, alone: set[int], plus: Pairs, named: set[int], minus: Pairs, lost: set[int], text: bool
) -> None:
    old = numbered(before, alone, text)
    change = apply_batch(old, numbered(plus, named, text), numbered(minus, lost, text))
    after = (before - minus) | plus
    ends = {v for edge in after for v in edge}
    ids = {v for edge in before for v in edge} | alone
    new = {v for edge in plus for v in edge} | named
    out = {v for edge in minus for v in edge} | lost
    check(change, before, ids, after, (ids - out) | new | ends)
    counts = change.counts
    assert counts.in_both == len(plus & minus)
    assert counts.present == len(plus & before - minus)
    assert counts.absent == len(minus - before)


@settings(max_examples=examples(100))
@given(pairs, loops, pairs, loops, st.booleans())
def test_two_graphs(before: Pairs, alone: set[int], after: Pairs, named: set[int], text: bool) -> None:
    change = compare(numbered(before, alone, text), numbered(after, named, text))
    ids, vertices = ({v for e in edges for v in e} | more for edges, more in ((before, alone), (after, named)))
    check(change, before, ids, after, vertices)


def test_tables_that_are_no_graph() -> None:
    def ids(*values: int) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(values, pa.int64())])

    assert graph_of(ids(3, 5, 9), ids(3, 3), ids(5, 9)).edges.high.tolist() == [1, 2]
    for source, target in ((ids(3, 3), ids(9, 5)), (ids(3), ids(4)), (ids(5), ids(3))):
        with pytest.raises(InputError, match="damaged"):
            graph_of(ids(3, 5, 9), source, target)
