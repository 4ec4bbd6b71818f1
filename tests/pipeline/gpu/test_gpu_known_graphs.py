"""λ of every edge of real graphs on a GPU, in one partition and by shards on one device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgemill.pipeline import mine
from known_graphs import SKIP_REASON, KnownGraph, known_graphs

LARGEST = 2_738_969
"""Edges of cnr-2000."""
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))]


@pytest.mark.parametrize("graph", [pytest.param(graph, id=graph.name) for graph in known_graphs(LARGEST)])
@pytest.mark.parametrize("shards", [1, 3, 8])
def test_answers_of_the_catalogue(tmp_path: Path, graph: KnownGraph, shards: int) -> None:
    result = mine(graph.path, tmp_path / "out", device="gpu", partitions=shards, report=False)
    counts, lam = result.manifest.counts, result.manifest.lam
    assert "NVIDIA" in result.manifest.device
    assert (counts.edges, counts.vertices, counts.triangles) == (graph.edges, graph.vertices, graph.triangles)
    assert (lam.max, lam.sum) == (graph.lambda_max, graph.lambda_sum)
    assert (result.manifest.bounding.shards is not None) is (shards > 1)
    if graph.lambda_path is not None:
        edges = result.edges.to_table()
        for name, expected in zip(("src", "dst", "lambda"), graph.lambda_table(), strict=True):
            np.testing.assert_array_equal(edges[name].to_numpy(), expected)
