"""What a plan says of a run against what the run takes: memory within a fifth, on graphs of different kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import memory
from benchmarks.common import graphs
from benchmarks.common.command import Layout

from edgemill.pipeline.plan import plan
from edgemill.pipeline.plan.choice import make_plan
from edgemill.pipeline.settings.sources import make_settings


def measured(name: str, layout: str, workers: int, folder: Path) -> memory.Memory:
    """What a plan said and a run took: of memory within a fifth, of edges within a twentieth."""
    try:
        graph = graphs.graph(name, folder)
    except LookupError as error:
        pytest.skip(str(error))
    found = memory.measure_apart(graph, Layout.parse(layout), workers, threads=2, scratch=folder)
    assert abs(found.off) <= 0.2, found
    assert abs(found.edges_off) <= 0.05, found
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["star5000000", "pairs2000000", "bipartite1500"])
def test_many_vertices_and_few(tmp_path: Path, name: str, workers: int) -> None:
    """Edges without triangles take less than others, and vertices take memory of their own."""
    measured(name, "1", workers, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["names3000x65536", "names300000x1024"])
def test_long_names(tmp_path: Path, name: str, workers: int) -> None:
    measured(name, "1", workers, tmp_path)


def assert_near(name: str, layout: str, workers: int, folder: Path) -> None:
    found = measured(name, layout, workers, folder)
    assert -0.3 <= found.output_off <= 0.7, found


def test_memory_of_vertices_and_of_edges_without_triangles(tmp_path: Path) -> None:
    """What a plan counts for 100,000 edges of each kind, in this process."""

    def counted(name: str) -> tuple[float, float]:
        settings = make_settings(str(graphs.graph(name, tmp_path).path), str(tmp_path / "out"), device="cpu")
        made = make_plan(settings)
        return made.graph.with_triangles, made._share_bytes / made.edges

    copied = plan.EDGE_BYTES + plan.COPY_BYTES + plan.VERTEX_BYTES / 3.5
    for name, share, taken in [
        ("star100000", 0, plan.EDGE_BYTES + plan.VERTEX_BYTES),
        ("pairs100000", 0, plan.EDGE_BYTES + 2 * plan.VERTEX_BYTES),
        ("bipartite400", 0, plan.EDGE_BYTES),
        ("cliques3000", 1, copied),
    ]:
        found = counted(name)
        assert found[0] == share
        assert found[1] == pytest.approx(taken, rel=0.02)


@pytest.mark.slow
def test_a_small_graph(tmp_path: Path) -> None:
    assert_near("rmat15", "1", 0, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("rmat17", "1"),
        ("rmat17", "4"),
        ("cliques40000", "fixpoint"),
        ("cnr-2000", "1"),
        ("cnr-2000", "4"),
        ("uk-2007-05_100000", "8"),
        ("ego-Twitter_combined", "fixpoint"),
        ("actor-movie-bipartite", "4"),
    ],
)
def test_graphs_of_all_kinds(tmp_path: Path, name: str, layout: str, workers: int) -> None:
    assert_near(name, layout, workers, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["sparse2000000", "string2000000"])
def test_where_reading_takes_most(tmp_path: Path, name: str, workers: int) -> None:
    """Few edges in many rows, whose ids are integers far apart or text."""
    measured(name, "1", workers, tmp_path)
