"""A small graph, and its result on CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=12, edge_factor=16)
    return folder


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", device="cpu", partitions=1)
