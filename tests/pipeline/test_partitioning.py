"""Partitioners that follow the edges, by workers apart: the same tables, wherever their buckets walk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline import partitioning as partitioning_module
from edgemill.pipeline.partitioning import METHODS
from edgemill.tasks.generate import generate

Mine = Callable[..., Result]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("communities", folder, files=3, seed=4, vertices=600, communities=250, community_size=6, permute=True)
    return folder


def test_by_workers_apart(rows: Path, tmp_path: Path, mined: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioning_module, "ABREAST", 2)  # buckets walk in groups
    expected = mined(rows, partitions=1)
    cuts = {}
    with runs.two_processes() as client:
        for method in METHODS:
            how = {"partitioning": {"count": 5, "method": method}, "device": "cpu", "output.report": False}
            result = mine(rows, tmp_path / method, client=client, **how)
            assert result.edges.to_table() == expected.edges.to_table()
            assert len(result.manifest.partitions) == 5
            cuts[method] = sum(part.cut for part in result.manifest.partitions)
        runs.assert_nothing_left(client)
    assert max(cuts["streaming"], cuts["triangles"], cuts["multilevel"]) < 0.5 * cuts["range"]
