"""The report's bounded queries of large tables, against the same queries with all rows in memory."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.pipeline.report import hierarchy
from edgemill.pipeline.report.charts import curves, marks
from edgemill.pipeline.report.distributions import MOST_RANGES, groups, members, range_starts
from edgemill.pipeline.report.hierarchy import blocks, branches, upper


@dataclass(frozen=True)
class Row:
    component: int
    k: int
    parent: int | None
    vertices: int
    edges: int


@st.composite
def forests(draw: st.DrawFn) -> list[Row]:
    """Hierarchies: children have fewer edges than their parent and a larger k, and share no edge."""
    seed = draw(st.integers(0, 2**32 - 1))
    random_ = random.Random(seed)
    numbers = random_.sample(range(10_000), 2000)
    rows: list[Row] = []

    def grow(parent: Row | None, edges: int, k: int) -> None:
        row = Row(numbers.pop(), k, parent.component if parent else None, edges // 2 + 2, edges)
        rows.append(row)
        left = edges - 1
        while left > 0 and random_.random() < 0.7 and len(rows) < 300:
            part = random_.randint(1, left)
            left -= part
            grow(row, part, k + random_.randint(1, 3))

    for _ in range(draw(st.integers(0, 5))):
        grow(None, random_.randint(1, 190), random_.randint(0, 2))
    return sorted(rows, key=lambda row: row.component)


class Rows(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow has no types
    """A table in memory that is read like one of a result."""

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()


def table(rows: list[Row], batch: int = 7) -> Any:
    kinds = {
        "component": pa.int64(),
        "k": pa.int32(),
        "parent": pa.int64(),
        "vertices": pa.int64(),
        "edges": pa.int64(),
    }
    whole = pa.table({name: pa.array([getattr(row, name) for row in rows], kind) for name, kind in kinds.items()})
    return Rows(whole.to_batches(max_chunksize=batch) or whole)


def expected_branches(rows: list[Row]) -> list[tuple[int, int, int, int, int, int]]:
    """Branches by definition: from each root and each child that is not the largest, through largest children."""
    inside = defaultdict(list)
    for row in rows:
        inside[row.parent].append(row)
    of = {row.component: row for row in rows}

    def size(row: Row) -> tuple[int, int]:
        return -row.edges, row.component

    def heirs(row: Row) -> list[Row]:
        return sorted(inside[row.component], key=size)

    starts = inside[None] + [part for row in rows for part in heirs(row)[1:]]
    found = []
    for start in sorted(starts, key=size):
        first, end = 0 if start.parent is None else of[start.parent].k + 1, start
        while parts := heirs(end):
            end = parts[0]
        found.append((start.component, first, start.vertices, start.edges, end.k, end.component))
    return found


@given(forests(), st.integers(1, 400))
def test_branches(rows: list[Row], most: int) -> None:
    part, wanted = upper(table(rows), most), expected_branches(rows)
    ranked = sorted(rows, key=lambda row: (-row.edges, row.component))[:most]
    assert part.component.tolist() == [row.component for row in ranked]
    parents = [None if at < 0 else ranked[at].component for at in part.parent.tolist()]
    assert parents == [row.parent for row in ranked]
    assert part.whole == (len(rows) <= most)
    found = branches(part, 10)
    assert len(found) <= 10
    for branch, right in zip(found, wanted, strict=False):
        assert (branch.component, branch.first, branch.vertices, branch.edges) == right[:4]
        if part.whole:
            assert (branch.top, branch.end) == right[4:]
        else:
            assert branch.end is None
            assert branch.top <= right[4]
    assert len(found) == min(10, len(wanted)) or not part.whole


@given(forests())
def test_the_picture_has_each_edge_at_each_level(rows: list[Row]) -> None:
    """Blocks at one level do not overlap, lie within their parents, and are as wide as their edges."""
    drawn = blocks(upper(table(rows)))
    of = {row.component: row for row in rows}
    firsts = {row.component: 0 if row.parent is None else of[row.parent].k + 1 for row in rows}
    top = max((row.k for row in rows), default=0)
    for level in range(0, top + 1, -(-(top + 1) // hierarchy.MOST_ROWS_OF_BLOCKS)):
        there = sorted((b.left, b.right, b.component) for b in drawn if b.bottom <= level < b.top)
        assert {component for *_, component in there} == {
            row.component for row in rows if firsts[row.component] <= level <= row.k
        }
        assert all(right - left == of[component].edges for left, right, component in there)
        assert all(before[1] <= after[0] for before, after in pairwise(there))
        for left, right, component in there:
            if (parent := of[component].parent) is not None:
                [below] = {(b.left, b.right) for b in drawn if b.component == parent} or [(left, right)]
                assert below[0] <= left <= right <= below[1]


def test_a_high_hierarchy_is_a_small_picture() -> None:
    """One branch of 5,000 levels, with 3,000 small components beside it."""
    high = [Row(k, k, k - 1 if k else None, 2 * (6000 - k), 6000 - k) for k in range(5000)]
    low = [Row(10_000 + at, 2, 1, 3, 1) for at in range(3000)]
    part = upper(table(high + low, batch=1000), most=4000)
    assert not part.whole
    drawn = blocks(part)
    assert len(drawn) <= hierarchy.MOST_ROWS_OF_BLOCKS + 1
    levels = sorted((b.bottom, b.top) for b in drawn)
    assert levels[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(levels))
    [trunk] = branches(part, 1)
    assert (trunk.first, trunk.edges, trunk.top, trunk.end) == (0, 6000, 3999, None)


def test_the_picture_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of blocks is bounded, and narrow ones are left out."""
    wide, narrow = [Row(at, 1, 0, 9, 2000) for at in (1, 2, 3)], [Row(at, 1, 0, 9, 9) for at in range(4, 50)]
    part = upper(table([Row(0, 0, None, 99, 10_000), *wide, *narrow]))
    assert [block.component for block in blocks(part)] == [0, 1, 2, 3]
    monkeypatch.setattr(hierarchy, "MOST_BLOCKS", 2)
    assert [block.component for block in blocks(part)] == [0, 1]


def test_no_components() -> None:
    part = upper(table([]))
    assert (branches(part, 5), blocks(part), part.whole) == ([], [], True)


@pytest.mark.parametrize("top", [0, 1, 39, 40, 95, 999, 1000, 12_345, 10**6, 2**31 - 1])
def test_ranges(top: int) -> None:
    starts = range_starts(top)
    assert starts[0] == 0
    assert starts[-1] <= top
    assert (np.diff(starts) > 0).all()
    assert starts.size <= MOST_RANGES


@given(st.integers(0, 2**32 - 1), st.integers(0, 200))
def test_groups(seed: int, many: int) -> None:
    random_ = np.random.default_rng(seed)
    columns = {
        "id": random_.permutation(1000)[:many],
        "lambda": random_.integers(1, 30, many).astype(np.int32),
        "vertices": random_.integers(3, 100, many),
        "edges": random_.integers(3, 1000, many),
        "density": random_.random(many),
        "triangles": random_.integers(1, 1000, many),
        "parent": np.zeros(many, np.int64),
    }
    whole = pa.table(columns)
    found = groups(Rows(whole.to_batches(max_chunksize=7) or whole), top=30, most=5)
    rows = whole.to_pylist()
    by_lambda = sorted(rows, key=lambda row: (-row["lambda"], -row["vertices"], -row["edges"], row["id"]))[:5]
    by_vertices = sorted(rows, key=lambda row: (-row["vertices"], -row["lambda"], -row["edges"], row["id"]))[:5]
    assert [(g.id, g.lam, g.density) for g in found.by_lambda] == [
        (row["id"], row["lambda"], row["density"]) for row in by_lambda
    ]
    assert [(g.id, g.edges, g.triangles) for g in found.by_vertices] == [
        (row["id"], row["edges"], row["triangles"]) for row in by_vertices
    ]
    assert sum(cell.count for cell in found.cells) == many
    assert {lam for cell in found.cells for lam in (cell.lowest, cell.highest)} <= {row["lambda"] for row in rows}
    assert max((cell.vertices for cell in found.cells), default=0) == max(whole["vertices"].to_pylist(), default=0)


def test_members_lie_in_several_files() -> None:
    parts = [{"dn_graph": [1, 1, 2], "vertex": ["b", "d", "x"]}, {"dn_graph": [1, 1, 3], "vertex": ["a", "c", "y"]}]
    table = Rows([pa.RecordBatch.from_pydict(part) for part in parts])
    assert members(table, [1, 3], 3) == {1: ["a", "b", "c"], 3: ["y"]}


def marked(lams: list[int], top: int) -> dict[str, Any]:
    """The marks of the chart for DN-graphs of one size, with ranges of λ up to `top`."""
    many = len(lams)
    row = {"id": 7, "vertices": 139, "edges": 8987, "density": 0.9, "triangles": 5, "parent": 1}
    columns = {name: pa.array([value] * many) for name, value in row.items()} | {"lambda": pa.array(lams, pa.int32())}
    table = pa.table({name: columns[name] for name in ("id", "lambda", *list(row)[1:])})
    item: Any = marks("t", "d", groups(Rows(table), top=top, most=3).cells).item
    (found,) = re.findall(r'"data": ({"type": "map", "entries": \[\["lam".*?\]\]})', json.dumps(item))
    return dict(json.loads(found)["entries"])


def test_a_mark_is_at_the_lambda_of_its_dn_graphs() -> None:
    """Not at the ends of the range: here ranges have two values, 0 and 1, …, 40 and 41."""
    found = marked([1, 41, 41], top=41)
    assert (found["lam"], found["span"], found["count"]) == ([1.0, 41.0], ["1", "41"], [1, 2])


def test_a_mark_of_several_lambda_is_in_their_middle() -> None:
    found = marked([93, 94, 94], top=95)  # the last range is 93 to 95
    assert (found["lam"], found["span"], found["vertices"]) == ([93.5], ["93 to 94"], [139])


def test_zeros_are_left_out_on_a_logarithmic_axis() -> None:
    for logarithmic, drawn in ((True, [5, 2]), (False, [5, 0, 2])):
        chart = curves("t", "d", [0, 1, 2], {"a": [5, 0, 2]}, ("x", "y"), logarithmic=logarithmic)
        assert f'["y", {drawn}]' in json.dumps(chart.item)
