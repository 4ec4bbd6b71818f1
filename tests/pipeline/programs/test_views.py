"""What results show of the columns of programs: in the terminal, the report, a notebook, and to queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import runs
from edgemill.pipeline import Result, UsageError, find_vertex, mine, top
from edgemill.pipeline.notebook.page import page as notebook_page
from edgemill.pipeline.queries.group_tables import distribution, top_of_column
from edgemill.pipeline.queries.program_columns import ColumnSummary, Range, summaries, top_vertices
from edgemill.pipeline.report import graph_sections
from in_process import call

GRAPH = nx.disjoint_union(nx.karate_club_graph(), nx.star_graph(9))
PROGRAMS = ("pagerank", "components", "coreness")


@pytest.fixture(scope="module", params=[PROGRAMS, ("lambda", *PROGRAMS)], ids=["alone", "beside λ"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("views")
    rows = runs.write_rows(folder / "rows.parquet", list(GRAPH.edges))
    return mine(rows, folder / "out", programs=request.param, device="cpu")


def test_columns_are_summarised(result: Result) -> None:
    ranks = nx.pagerank(GRAPH, tol=1e-13, weight=None, max_iter=1000)
    pagerank, component, coreness = summaries(result, 4)
    assert [id for id, _ in pagerank.top] == sorted(ranks, key=lambda v: (-ranks[v], v))[:4]
    assert pagerank.groups is None and 2 <= len(pagerank.ranges) <= 12
    assert sum(own.vertices for own in pagerank.ranges) == len(GRAPH)
    assert pagerank.ranges[0].first == pytest.approx(min(ranks.values()), abs=1e-8)
    assert (component.groups, component.top) == (2, [(0, 34), (34, 10)])
    cores = list(nx.core_number(GRAPH).values())
    assert [(own.first, own.last, own.vertices) for own in coreness.ranges] == [
        (k, k, cores.count(k)) for k in range(1, max(cores) + 1)
    ]
    assert (pagerank.others, component.others, coreness.others) == (0, 0, 0)


def test_top_vertices(result: Result) -> None:
    cores = nx.core_number(GRAPH)
    rows = top(result, "coreness", 5).to_pylist()
    assert [row["id"] for row in rows] == sorted(cores, key=lambda v: (-cores[v], v))[:5]
    told = call("top", result.place.url, "--by", "pagerank", "-n", "1", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["id"] == top_vertices(result, "pagerank", 1)["id"][0].as_py()
    shown = call("top", result.place.url, "--by", "coreness")
    assert shown.exit_code == 0 and "vertex" in shown.output and "coreness" in shown.output
    with pytest.raises(UsageError, match=r"weak_component.*'rank'"):
        top(result, "rank")


def test_pages_show_them(result: Result) -> None:
    shown = call("show", result.place.url, "--detail")
    assert shown.exit_code == 0, shown.output
    for text in ("vertices of highest pagerank", "weak_component: 2 groups", "distribution of coreness"):
        assert text in shown.output
    report = (result.path / "report.html").read_text(encoding="utf-8")
    for text in ("Program pagerank", "Largest of 2 groups by weak_component", "Distribution of coreness"):
        assert text in report
    assert "weak_component, 2" in notebook_page(result)


def test_a_vertex_has_its_values(result: Result) -> None:
    vertex = find_vertex(result, 36)
    assert (vertex.degree, vertex.values["weak_component"], vertex.values["coreness"]) == (1, 34, 1)
    told = call("of", result.place.url, "36")
    assert told.exit_code == 0 and "weak_component 34, coreness 1" in told.output


def test_columns_without_values(tmp_path: Path) -> None:
    how: dict[str, Any] = {"device": "cpu", "programs": ("components", "coreness")}
    result = mine(runs.write_rows(tmp_path / "rows.parquet", []), tmp_path / "out", **how)
    component, coreness = summaries(result, 3)
    assert (component.groups, component.top, component.ranges) == (0, [], [])
    assert (coreness.top, coreness.ranges, coreness.others) == ([], [], 0)
    assert "Program coreness" in (result.path / "report.html").read_text(encoding="utf-8")


def test_vertices_without_a_group_are_not_counted_as_groups() -> None:
    parents = ColumnSummary("bfs", "parent", "", 2, [(7, 5), (9, 1)], [Range(1, 1, 1), Range(5, 5, 1)], 3)
    largest, sizes = graph_sections._first(parents), graph_sections._spread(parents, 9)
    assert (largest.header, largest.rows[-1]) == (("parent", "vertices>"), ("none", "3"))
    assert (sizes.header[0], [row[0] for row in sizes.rows]) == ("vertices of a group>", ["1", "5"])
    assert list(top_of_column(parents).columns[0].cells)[-1] == "none"
    assert "none" not in list(distribution(parents).columns[0].cells)
    levels = ColumnSummary("bfs", "level", "", None, [(7, 1)], [Range(1, 1, 6)], 3)
    assert graph_sections._spread(levels, 9).rows[-1] == ("none", "3", "33.3%")
    assert list(distribution(levels).columns[1].cells)[-1] == "3"
