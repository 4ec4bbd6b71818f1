"""The input of the runs with faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgemill.tasks.generate import generate


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return folder
