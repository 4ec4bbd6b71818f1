"""What a plan says of a run against what the run takes: memory within a fifth, on graphs of different kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import graphs, memory
from benchmarks.command import Layout


def assert_near(name: str, layout: str, workers: int, folder: Path) -> None:
    try:
        graph = graphs.graph(name, folder)
    except LookupError as error:
        pytest.skip(str(error))
    found = memory.measure_apart(graph, Layout.parse(layout), workers, threads=2, scratch=folder)
    assert abs(found.off) <= 0.2, found
    assert abs(found.edges_off) <= 0.05, found
    assert found.estimated_copies == pytest.approx(found.copies, rel=0.25), found
    assert -0.3 <= found.output_off <= 0.7, found


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
        ("cliques40000", "4-hash"),
        ("cnr-2000", "1"),
        ("cnr-2000", "4"),
        ("uk-2007-05_100000", "8"),
        ("ego-Twitter_combined", "4-hash"),
        ("actor-movie-bipartite", "4"),
    ],
)
def test_graphs_of_all_kinds(tmp_path: Path, name: str, layout: str, workers: int) -> None:
    assert_near(name, layout, workers, tmp_path)
