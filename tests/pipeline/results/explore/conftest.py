"""Results and servers of the explorer's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.explorer.server import ExplorerServer
from known_graphs import FACEBOOK
from serving import serving


@pytest.fixture
def made(client: Client, tmp_path: Path) -> Callable[..., Result]:
    """The result of a few rows."""

    def run(pairs: Iterable[runs.Edge], id_type: pa.DataType | None = None) -> Result:
        rows = runs.write_rows(tmp_path / "rows.parquet", pairs, id_type)
        return mine(rows, tmp_path / "out", client=client, device="cpu")

    return run


@pytest.fixture(scope="session")
def with_programs(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The ego-Facebook graph with communities and groups of cores."""
    programs = ("lambda", "leiden", "core_groups")
    out = tmp_path_factory.mktemp("programs") / "out"
    return mine(FACEBOOK, out, client=client, device="cpu", programs=programs)


@pytest.fixture(scope="module")
def served(facebook: Result) -> Iterator[ExplorerServer]:
    with serving(facebook) as served:
        yield served
