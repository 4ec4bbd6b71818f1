"""All partitioners give the same tables on separate workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.stages.partitioning import METHODS
from edgemill.tasks.generate.generate import generate

Mine = Callable[..., Result]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("communities", folder, files=3, seed=4, vertices=600, communities=250, community_size=6, permute=True)
    return folder


@pytest.mark.parametrize(
    "method", [name if name == "range" else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_by_workers_apart(rows: Path, tmp_path: Path, mined: Mine, two_workers: Client, method: str) -> None:
    expected = mined(rows, partitions=1)
    how: dict[str, Any] = {"partitioning": {"count": 5, "method": method}, "method": "band", "device": "cpu"}
    how["output.report"] = False
    result = mine(rows, tmp_path / method, client=two_workers, **how)
    assert result.edges.to_table() == expected.edges.to_table()
    assert len(result.manifest.partitions) == 5
    runs.assert_nothing_left(two_workers)
