"""A small graph with many levels, its plain result, and worker processes to be killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate
from lost_workers import Started


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", folder, files=3, seed=4, scale=9, edge_factor=8)
    return folder


@pytest.fixture(scope="session")
def plain(rows: Path, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result with one partition, in this process. No test changes its files."""
    out = tmp_path_factory.mktemp("plain") / "out"
    return mine(rows, out, client=client, partitions=1, device="cpu", report=False)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Two worker processes for tests that kill them. Lost ones are noticed sooner than in other runs."""
    monkeypatch.setattr("edgemill.pipeline.cluster.watchdog._PERIOD_SECONDS", 0.5)
    with runs.two_processes() as client:
        yield client


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)
