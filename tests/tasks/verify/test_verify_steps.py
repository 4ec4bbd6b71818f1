"""The steps of verification are counted: they are proportional to the result for any shape of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from edgemill.tasks.generate import Grid, RMat
from edgemill.tasks.verify import groups as verify_forest
from edgemill.tasks.verify import groups as verify_groups
from edgemill.tasks.verify import input as verify_input
from edgemill.tasks.verify import reading as verify_reading
from edgemill.tasks.verify.groups import _components, find_roots, join
from edgemill.tasks.verify.input import check_input
from edgemill.tasks.verify.reading import Flaw, Int
from edgemill.tasks.verify.tables import EdgeTable, VertexTable
from strategies import EdgeList, edge_lists

Shape = tuple[Int, Int, Int]
"""Ends of edges, and made-up λ: components are defined for any values."""


def path(size: int) -> Shape:
    at = np.arange(size)
    return at, at + 1, np.zeros(size, np.int64)


def shuffled_path(size: int) -> Shape:
    at = np.random.default_rng(1).permutation(size + 1)
    return at[:-1], at[1:], np.zeros(size, np.int64)


def cycle(size: int) -> Shape:
    at = np.arange(size)
    return at, (at + 1) % size, np.zeros(size, np.int64)


def star(size: int) -> Shape:
    return np.full(size, size), np.arange(size), np.zeros(size, np.int64)


def grid(size: int) -> Shape:
    kind = Grid(width=int((size / 3) ** 0.5), height=int((size / 3) ** 0.5))
    source, target = kind.draw(0, kind.rows, 1)
    return source, target, np.ones(source.size, np.int64)


def rmat(size: int) -> Shape:
    source, target = RMat(scale=size.bit_length() - 4, edge_factor=8).draw(0, size, 1)
    return source, target, np.minimum(source, target) % 17


def triangles_by_their_tips(size: int) -> Shape:
    first = np.arange(0, size // 3 * 2, 2)
    return np.r_[first, first, first + 1], np.r_[first + 1, first + 2, first + 2], np.ones(3 * first.size, np.int64)


def nested_star(size: int) -> Shape:
    """Each level has one edge, whose new leaf is the smallest vertex so far."""
    return np.arange(size), np.full(size, size), np.arange(size)


def nested_path(size: int) -> Shape:
    at = np.arange(size)
    return at, at + 1, at


def edge_table(shape: Shape) -> tuple[EdgeTable, int]:
    source, target, level = shape
    low = level.astype(np.int32)
    return EdgeTable(source, target, low, low, low), int(max(source.max(), target.max())) + 1


class Counted(np.ndarray[Any, Any]):
    """An array that counts the elements read from it."""

    read = 0

    def __getitem__(self, key: Any) -> Any:
        Counted.read += np.size(key)
        return np.asarray(super().__getitem__(key))


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Number of elements of the forest that are read."""

    def reading(up: Int, vertices: Int) -> Int:
        return find_roots(up.view(Counted), vertices)

    with monkeypatch.context() as patch:
        for module in (verify_forest, verify_groups):
            patch.setattr(module, "find_roots", reading)
        Counted.read = 0
        yield lambda: Counted.read


SHAPES = [path, shuffled_path, cycle, star, grid, rmat, triangles_by_their_tips, nested_star, nested_path]


@pytest.mark.parametrize("shape", SHAPES)
def test_roots_are_found_in_steps_nearly_linear_in_the_edges(
    shape: Callable[[int], Shape], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 0.0
    for size in (256, 4096):
        edges, vertices = edge_table(shape(size))
        with counted(monkeypatch) as steps:
            _components(edges, vertices)
            assert steps() > 0
            per_edge = steps() / edges.low.size
        limit = limit or 2 * per_edge
        assert per_edge < limit  # the logarithm grows by half


@given(edge_lists(40))
def test_joined_trees_are_connected_components(rows: EdgeList) -> None:
    up = np.arange(40)
    source, target = (np.array(ends, np.int64) for ends in zip(*rows, strict=True)) if rows else (up[:0], up[:0])
    join(up, source, target)
    graph = nx.Graph(rows)
    graph.add_nodes_from(range(40))
    right = {vertex: min(group) for group in nx.connected_components(graph) for vertex in group}
    assert find_roots(up, np.arange(40)).tolist() == [right[vertex] for vertex in range(40)]


def input_of(rows: int, folder: Path, kind: pa.DataType, change: tuple[int, int] | None = None) -> Path:
    """A path, two rows in each row group; with `change`, another target in one row."""
    target = np.arange(1, rows + 1)
    if change is not None:
        target[change[0]] = change[1]
    table = pa.table({"src": pa.array(np.arange(rows)).cast(kind), "dst": pa.array(target).cast(kind)})
    pq.write_table(table, folder / "in.parquet", row_group_size=2)
    return folder / "in.parquet"


def result_of(rows: int, kind: pa.DataType) -> tuple[dict[str, Any], EdgeTable, VertexTable]:
    edges, vertices = edge_table(path(rows))
    manifest = {
        "input": {"source_column": "src", "target_column": "dst"},
        "counts": {"rows": rows, "self_loops": 0, "nulls_dropped": 0, "duplicates": 0},
    }
    ids = verify_reading.id_array(pa.array(np.arange(vertices)).cast(kind))
    nothing = np.zeros(vertices, np.int64)
    low = nothing.astype(np.int32)
    return manifest, edges, VertexTable(ids, kind, nothing, nothing, low, low, None)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_lookups_are_batched_over_row_groups(
    kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counting(column: Any, ids: Any) -> Int:
        nonlocal read
        read += len(column) + len(ids)
        return positions(column, ids)

    positions = verify_reading.positions
    monkeypatch.setattr(verify_input, "positions", counting)
    check_input(str(input_of(600, tmp_path, kind)), *result_of(600, kind))
    assert 0 < read < 5 * 600


def test_a_row_is_reported_with_its_row_group(tmp_path: Path) -> None:
    manifest, edges, vertices = result_of(600, pa.int64())
    given_path = input_of(600, tmp_path, pa.int64(), change=(301, 9000))
    with pytest.raises(Flaw, match=r"in\.parquet.*150.*9000"):
        check_input(str(given_path), manifest, edges, vertices)
    given_path = input_of(600, tmp_path, pa.int64(), change=(301, 17))
    with pytest.raises(Flaw, match=r"in\.parquet.*150.*\(17.*301\)"):
        check_input(str(given_path), manifest, edges, vertices)


def test_integer_and_string_row_groups_are_looked_up_separately(tmp_path: Path) -> None:
    manifest, edges, vertices = result_of(600, pa.int64())
    folder = tmp_path / "in"
    folder.mkdir()
    at = pa.array(np.arange(600))
    pq.write_table(pa.table({"src": at[:9], "dst": at[1:10]}), folder / "a.parquet")
    pq.write_table(
        pa.table({"src": at[9:20].cast(pa.string()), "dst": at[10:21].cast(pa.string())}), folder / "b.parquet"
    )
    with pytest.raises(Flaw, match=r"b\.parquet.*0.*'9'"):
        check_input(str(folder), manifest, edges, vertices)
