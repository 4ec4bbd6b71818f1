"""Values of vertices from those before a change are those that are summed over all edges."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels.graph import Topology
from edgemill.tasks.errors import InternalError
from edgemill.tasks.publish.changed_vertices import EdgePart, changed_summary, changed_vertices
from edgemill.tasks.publish.lambda_columns import BucketSummary, BucketVertices, vertex_histograms
from examples import examples

VERTICES = 10
Edges = dict[tuple[int, int], tuple[int, int]]
"""Edge → support, λ."""

pairs = st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1)).filter(lambda pair: pair[0] < pair[1])
values = st.tuples(st.integers(0, 4).map(lambda half: 2 * half), st.integers(0, 4))
drawn_edges = st.dictionaries(pairs, values, max_size=25)


def part(edges: Edges) -> EdgePart:
    rows = sorted(edges)
    low, high, support, lam = (
        np.array(column, np.int32)
        for column in (
            [row[0] for row in rows],
            [row[1] for row in rows],
            [edges[row][0] for row in rows],
            [edges[row][1] for row in rows],
        )
    )
    return EdgePart(Topology(low, high, VERTICES), support, lam)


def vertices_of(edges: Edges) -> BucketVertices:
    around: list[list[tuple[int, int]]] = [[own for row, own in edges.items() if v in row] for v in range(VERTICES)]
    lam = np.array([max((own[1] for own in rows), default=0) for rows in around], np.int32)
    return BucketVertices(
        0,
        np.array([len(rows) for rows in around], np.int64),
        np.array([sum(own[0] for own in rows) // 2 for rows in around], np.int64),
        lam,
        lam,
    )


def summary_of(edges: Edges) -> BucketSummary:
    levels, counts = np.unique([own[1] for own in edges.values()], return_counts=True)
    histogram: NDArray[np.int64] = np.stack([levels, counts], axis=1).astype(np.int64)
    support = sum(own[0] for own in edges.values())
    return BucketSummary(len(edges), VERTICES, support, histogram, histogram, *vertex_histograms(vertices_of(edges)))


@settings(max_examples=examples(200))
@given(drawn_edges, drawn_edges, st.sets(pairs))
def test_a_change(before: Edges, other: Edges, removed: set[tuple[int, int]]) -> None:
    after = {row: own for row, own in (before | other).items() if row not in removed}
    gone = part({row: own for row, own in before.items() if after.get(row) != own})
    come = part({row: own for row, own in after.items() if before.get(row) != own})
    whole = part(after)
    found, wanted = changed_vertices(vertices_of(before), gone, come, whole.edges, whole.lam), vertices_of(after)
    for name in ("degree", "triangles", "low", "high"):
        column = getattr(found, name)
        assert column.tolist() == getattr(wanted, name).tolist(), name
        assert column.dtype == getattr(wanted, name).dtype, name
    earlier, known = summary_of(before), summary_of(after)
    totals = changed_summary(earlier.support, earlier.low, gone, come, len(after), found)
    assert (totals.edges, totals.vertices, totals.support) == (known.edges, known.vertices, known.support)
    assert totals.low.tolist() == totals.high.tolist() == known.low.tolist()
    ends = [max(own[1] for row, own in after.items() if v in row) for v in {v for row in after for v in row}]
    assert (
        totals.vertex_low.tolist()
        == totals.vertex_high.tolist()
        == [list(one) for one in sorted(Counter(ends).items())]
    )


def test_supports_that_no_triangles_make_are_refused() -> None:
    none, whole = part({}), part({(0, 1): (1, 0)})
    with pytest.raises(InternalError, match="odd number"):
        changed_vertices(vertices_of({}), none, whole, whole.edges, whole.lam)
