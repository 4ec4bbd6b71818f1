"""The row groups that a query reads, and damage in them."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import (
    Group,
    InputError,
    Result,
    UsageError,
    edges_of,
    find_dn_graph,
    groups_of,
    member_ids,
    mine,
    top,
)
from edgemill.pipeline.results import lookup
from in_process import call
from known_graphs import FACEBOOK
from made import Edge, made


def sets_of_edges(result: Result, group: Group) -> frozenset[Edge]:
    rows = edges_of(result, group).read_all()
    ends = list(zip(rows[0].to_pylist(), rows[1].to_pylist(), strict=True))
    assert ends == sorted(ends)
    return frozenset(ends)


Keeps = Callable[[str, dict[str, tuple[Any, Any]]], bool]
"""Whether a row group stays readable, by its table and the bounds of its columns."""


def damaged(result: Result, folder: Path, keeps: Keeps) -> tuple[Result, dict[str, tuple[int, int]]]:
    """A copy with unreadable pages in most row groups. Returns the readable and all row groups by table."""
    shutil.copytree(result.path, folder)
    counts: dict[str, tuple[int, int]] = {}
    for output in result.manifest.outputs:
        table = Path(output.path).parent.name
        whole, every = counts.get(table, (0, 0))
        content = bytearray((folder / output.path).read_bytes())
        footer = pq.read_metadata(folder / output.path)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            columns = [group.column(number) for number in range(group.num_columns)]
            bounds = {
                column.path_in_schema: (column.statistics.min, column.statistics.max)
                for column in columns
                if column.statistics.has_min_max
            }
            stays = keeps(table, bounds)
            whole, every = whole + stays, every + 1
            for column in columns if not stays else ():
                start = column.dictionary_page_offset or column.data_page_offset
                content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
        (folder / output.path).write_bytes(content)
        counts[table] = whole, every
    return Result(folder), counts


def within(value: Any, bounds: tuple[Any, Any]) -> bool:
    return bool(bounds[0] <= value <= bounds[1])


@pytest.mark.parametrize("kind", ["integers", pytest.param("strings", marks=pytest.mark.slow)])
def test_a_vertex_is_looked_up(facebook: Result, tmp_path: Path, kind: str) -> None:
    """Only pages that can hold the vertex, its groups or its DN-graph are readable."""
    if kind == "strings":
        rows = pq.read_table(FACEBOOK)
        names = [pa.array([f"user {vertex}" for vertex in column.to_pylist()]) for column in rows.columns]
        pq.write_table(pa.table(names, names=["src", "dst"]), tmp_path / "rows.parquet")
        facebook = mine(tmp_path / "rows.parquet", tmp_path / "whole", client=None, row_group_rows=400)
    vertex: Any = "user 1912" if kind == "strings" else 1912
    known = groups_of(facebook, vertex)
    ids = [group.component for group in known]

    def needed(table: str, bounds: dict[str, tuple[Any, Any]]) -> bool:
        if table == "vertices":
            return within(vertex, bounds["id"])
        if table == "hierarchy":
            return any(within(component, bounds["component"]) for component in ids)
        return table == "dn_graphs" and within(ids[0], bounds["id"])

    result, counts = damaged(facebook, tmp_path / "damaged", needed)
    assert groups_of(result, vertex) == known
    assert groups_of(result, vertex, 1) == known[:1]
    assert counts["vertices"][0] == 1 < counts["vertices"][1]
    assert counts["edges"][0] == 0 < counts["edges"][1]
    for table in (result.edges, result.vertices):
        with pytest.raises(OSError, match="page"):
            table.to_table()


def test_row_groups_are_cached(many: Result, tmp_path: Path) -> None:
    shutil.copytree(many.path, tmp_path / "out")
    result = Result(tmp_path / "out")
    known = groups_of(result, 30)
    for output in result.manifest.outputs:
        (result.path / output.path).unlink()
    assert groups_of(result, 30) == known == groups_of(many, 30)


def test_several_threads_read_footers_once(many: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    result, read, together = Result(many.path), lookup._row_groups, Barrier(8)
    made: list[Any] = []

    def counted(table: Any) -> list[lookup.RowGroup]:
        made.append(table)
        return read(table)

    def asked(vertex: int) -> list[Group]:
        together.wait()
        return groups_of(result, vertex)

    vertices = [*range(0, 400, 10), *range(0, 400, 10)]
    known = [groups_of(many, vertex) for vertex in vertices]
    monkeypatch.setattr(lookup, "_row_groups", counted)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(asked, vertices)) == known
    assert sorted(map(id, made)) == sorted(map(id, (result.vertices, result.hierarchy, result.dn_graphs)))


def test_a_subgraph_is_looked_up(facebook: Result, tmp_path: Path) -> None:
    """Only pages that can hold its members or edges are readable."""
    group = find_dn_graph(facebook, top(facebook, count=2).to_pylist()[1]["id"])
    members = member_ids(facebook, group).to_pylist()
    known = edges_of(facebook, group).read_all()

    def needed(table: str, bounds: dict[str, tuple[Any, Any]]) -> bool:
        if table == "edges":
            return bounds["lambda"][1] >= group.k and any(within(member, bounds["src"]) for member in members)
        if table == "dn_graph_members":
            return within(group.component, bounds["dn_graph"])
        return table == "dn_graphs" and within(group.component, bounds["id"])

    result, counts = damaged(facebook, tmp_path / "damaged", needed)
    found = find_dn_graph(result, group.component)
    assert found == group
    assert edges_of(result, found).read_all() == known
    assert 0 < counts["edges"][0] < counts["edges"][1] / 2
    assert counts["vertices"][0] == counts["hierarchy"][0] == 0


@pytest.mark.parametrize("letter", ["x", "λ"])
def test_ids_too_long_for_statistics(tmp_path: Path, letter: str) -> None:
    """Arrow leaves such ids out of the footer."""
    names = [letter * 5000 + str(number) for number in range(8)]
    levels = dict.fromkeys(itertools.combinations(names[:4], 2), 2) | {(names[4], names[5]): 0}
    result = made(tmp_path / "out", levels, id_type=pa.string(), alone=names[6:], rows_per_group=3)
    footer = pq.read_metadata(next((result.path / "vertices").iterdir()))
    assert not footer.row_group(0).column(0).statistics.has_min_max
    assert [group.dn_graph for group in groups_of(result, names[2])] == [True]
    assert [group.k for group in groups_of(result, names[4])] == [0]
    assert groups_of(result, names[7]) == []
    assert sets_of_edges(result, groups_of(result, names[2])[0]) == set(itertools.combinations(names[:4], 2))
    with pytest.raises(UsageError, match="there is no vertex"):
        groups_of(result, letter * 5000)


def test_damage_is_reported(many: Result, tmp_path: Path) -> None:
    group = find_dn_graph(many, top(many, count=1).to_pylist()[0]["id"])
    damaged(many, tmp_path / "out", lambda table, bounds: False)
    for arguments in (["top", "OUT"], ["of", "OUT", "30"], ["subgraph", "OUT", "--component", str(group.component)]):
        ended = call(*(str(tmp_path / "out") if word == "OUT" else word for word in arguments))
        assert ended.exit_code == 3
        assert "damaged" in ended.stderr and str(tmp_path / "out") in ended.stderr
    only_edges, _ = damaged(many, tmp_path / "only edges", lambda table, bounds: table != "edges")
    with pytest.raises(InputError, match="damaged"):
        edges_of(only_edges, group).read_all()
    file = tmp_path / "group.csv"
    ended = call("subgraph", str(only_edges.path), "--component", str(group.component), "--output", str(file))
    assert ended.exit_code == 3
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["only edges", "out"]


@pytest.mark.parametrize("wrong", [{"vertices": 9}, {"edges": 9}])
def test_counts_that_do_not_agree(many: Result, wrong: dict[str, Any]) -> None:
    """The rows of a group are compared with the counts in its row."""
    group = find_dn_graph(many, top(many, count=1).to_pylist()[0]["id"])
    with pytest.raises(InputError, match=rf"{group.component}.*9"):
        edges_of(many, replace(group, **wrong)).read_all()
