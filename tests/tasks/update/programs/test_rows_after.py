"""Rows with directions and weights after a batch, against sets of Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.graph import Topology
from edgemill.tasks.ids.identity import Ids
from edgemill.tasks.ingest.directions import DOWN, UP
from edgemill.tasks.update.arcs import EdgeArcs, EdgeRows, rows_after
from edgemill.tasks.update.merging import NumberedGraph
from examples import examples

Drawn = dict[tuple[int, int], float]
ROWS = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] != ends[1]),
    st.integers(0, 9).map(float),
    max_size=14,
)


def ids_of(numbers: list[int], text: bool) -> Ids:
    return pa.array([f"v{number}" for number in numbers], pa.large_string()) if text else np.array(numbers, np.int64)


def graph_of(rows: Drawn, more: set[int], directed: bool, text: bool) -> tuple[NumberedGraph, EdgeArcs]:
    """The graph of rows, with the vertices `more`, and the directions and weights of its edges."""
    numbers = sorted({end for ends in rows for end in ends} | more)
    edges = sorted({(min(ends), max(ends)) for ends in rows})
    place = {number: at for at, number in enumerate(numbers)}
    low, high = (np.array([place[edge[end]] for edge in edges], np.int32) for end in (0, 1))
    ways = [UP * (edge in rows) + DOWN * (edge[::-1] in rows) for edge in edges]
    weight = [rows[one] for edge in edges for one in (edge, edge[::-1]) if one in rows]
    arcs = EdgeArcs(np.array(ways, np.uint8) if directed else None, np.array(weight, np.float64))
    return NumberedGraph(ids_of(numbers, text), Topology(low, high, len(numbers))), arcs


def drawn_from(rows: EdgeRows) -> tuple[list[object], dict[tuple[object, object], float]]:
    ids = rows.ids.to_pylist() if isinstance(rows.ids, pa.Array) else rows.ids.tolist()
    assert rows.weight is not None
    pairs = zip(rows.source.tolist(), rows.target.tolist(), rows.weight.tolist(), strict=True)
    found = {(ids[u], ids[v]): weight for u, v, weight in pairs}
    assert len(found) == len(rows.source)
    return ids, found


@pytest.mark.parametrize("text", [False, True], ids=["integers", "strings"])
@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@settings(max_examples=examples(100))
@given(ROWS, ROWS, ROWS, st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_rows_after(
    directed: bool, text: bool, before: Drawn, plus: Drawn, minus: Drawn, alone: set[int], named: set[int]
) -> None:
    """Deletions come first. What is inserted has the weight of the batch. Ids that the batch names come or go."""
    if not directed:
        before, plus, minus = (
            {ends: w for ends, w in own.items() if ends[0] < ends[1]} for own in (before, plus, minus)
        )
    parts = [EdgeRows.of(*graph_of(*own, directed, text)) for own in ((before, alone), (plus, set()), (minus, named))]
    made, counts = rows_after(*parts)
    after = {ends: weight for ends, weight in before.items() if ends not in minus} | plus
    used = {end for ends in after for end in ends}
    there = {end for ends in before for end in ends} | alone
    gone = {end for ends in minus for end in ends} | named
    vertices, rows = drawn_from(made)
    name = (lambda number: f"v{number}") if text else int
    assert vertices == [name(number) for number in sorted((there - gone) | used)]
    assert rows == {(name(u), name(v)): weight for (u, v), weight in after.items()}
    assert set(made.alone.tolist()) == {at for at, one in enumerate(vertices) if one not in map(name, used)}
    assert counts.present == len([ends for ends in plus if ends in before and ends not in minus])
    assert counts.absent == len(minus.keys() - before.keys()) and counts.in_both == len(minus.keys() & plus.keys())
