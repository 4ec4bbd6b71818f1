"""The example graphs of LDBC Graphalytics (Iosup et al., PVLDB 9(13), 2016), with the published results of its
programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from edgemill.tasks.programs import Program
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from vertex_programs import Drawn, by_blocks

FAR, FAR_AWAY = -1, float("inf")


@dataclass(frozen=True)
class Example:
    """Vertices are numbered from 0 in id order. `first` is the smallest id."""

    graph: Drawn
    first: int
    source: int
    levels: Sequence[int]
    distances: Sequence[float]
    ranks: Sequence[float]
    """After two supersteps."""
    labels: Sequence[int]
    """Ids, after two supersteps."""
    clustering: Sequence[float]


def _graph(first: int, vertices: int, edges: Sequence[tuple[int, int, float]], directed: bool) -> Drawn:
    return Drawn(vertices, tuple((u - first, v - first) for u, v, _ in edges), tuple(w for *_, w in edges), directed)


# fmt: off
DIRECTED = Example(
    _graph(1, 10, [
        (1, 3, 0.5), (1, 5, 0.3), (2, 4, 0.1), (2, 5, 0.3), (2, 10, 0.12), (3, 1, 0.53), (3, 5, 0.62), (3, 8, 0.21),
        (3, 10, 0.52), (5, 3, 0.69), (5, 4, 0.53), (5, 8, 0.1), (6, 3, 0.23), (6, 4, 0.39), (7, 4, 0.83), (8, 1, 0.39),
        (9, 4, 0.69),
    ], directed=True),
    first=1,
    source=1,
    levels=[0, FAR, 1, 2, 1, FAR, FAR, 2, FAR, 2],
    distances=[0, FAR_AWAY, 0.5, 0.83, 0.3, FAR_AWAY, FAR_AWAY, 0.4, FAR_AWAY, 1.02],
    ranks=[0.1477629166666667, 0.04753375, 0.1550469444444444, 0.1597573611111111, 0.14624, 0.04753375, 0.04753375,
           0.1135740277777778, 0.04753375, 0.08748375],
    labels=[1, 2, 3, 4, 1, 1, 2, 3, 2, 1],
    clustering=[2 / 3, 1 / 6, 0.15, 0.05, 0.25, 0, 0, 5 / 6, 0, 0],
)
UNDIRECTED = Example(
    _graph(2, 9, [
        (2, 3, 0.9), (2, 4, 0.69), (3, 4, 0.13), (3, 5, 0.5), (3, 8, 0.32), (5, 6, 0.63), (5, 8, 0.12), (6, 7, 0.53),
        (6, 8, 0.64), (6, 9, 0.23), (6, 10, 0.63), (7, 9, 0.36),
    ], directed=False),
    first=2,
    source=2,
    levels=[0, 1, 1, 2, 3, 4, 2, 4, 4],
    distances=[0, 0.82, 0.69, 1.26, 1.78, 2.31, 1.14, 2.01, 2.41],
    ranks=[0.09084490740740739, 0.1424089506172839, 0.09084490740740739, 0.1249891975308642, 0.1686172839506173,
           0.09749537037037037, 0.1249891975308642, 0.09749537037037037, 0.06231481481481481],
    labels=[2, 3, 2, 2, 6, 5, 2, 5, 5],
    clustering=[1, 1 / 3, 1, 2 / 3, 0.2, 1, 2 / 3, 1, 0],
)
# fmt: on


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("example", [DIRECTED, UNDIRECTED], ids=["directed", "undirected"])
def test_results_equal_the_published_ones(example: Example, blocks: int) -> None:
    def found(program: Program, name: str) -> list[float]:
        return list(by_blocks(program, example.graph, blocks).state[name].tolist())

    source = example.source - example.first
    assert found(BreadthFirst(source), "level") == example.levels
    assert np.allclose(found(ShortestPaths(source), "distance"), example.distances, rtol=1e-14, atol=0)
    assert np.allclose(found(PageRank(iterations=2), "rank"), example.ranks, rtol=1e-13, atol=0)
    assert [label + example.first for label in found(LabelPropagation(2), "label")] == example.labels
    assert np.allclose(found(LocalClustering(), "clustering"), example.clustering, rtol=1e-14, atol=0)
    assert found(Components(), "component") == [0] * example.graph.vertices
