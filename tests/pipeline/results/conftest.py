"""Results of small graphs for the tests of queries."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from distributed import Client

from edgemill.pipeline import (
    Result,
    mine,
)
from known_graphs import FACEBOOK
from made import Edge, made

ODD = ["plain", "a,b", 'say "hi"', "<&>'", "line\nbreak", "tab\there", "", "é漢", " spaces "]
"""Ids that CSV and XML must quote."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Forty DN-graphs of few sizes: cliques, and cliques without one edge."""
    levels: dict[Edge, int] = {}
    for number in range(40):
        size = 3 + number % 4
        edges = list(itertools.combinations(range(10 * number, 10 * number + size), 2))
        levels |= dict.fromkeys(edges[: len(edges) - number % 2 * (size > 3)], size - 2)
    return made(tmp_path_factory.mktemp("many") / "out", levels, rows_per_file=13, rows_per_group=5)


@pytest.fixture(scope="session")
def facebook(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A result with row groups of 500 rows, so that a search reads few of them. Tests that change files copy it."""
    out = tmp_path_factory.mktemp("facebook") / "out"
    return mine(FACEBOOK, out, client=client, device="cpu", row_group_rows=500)


@pytest.fixture
def odd(tmp_path: Path) -> Result:
    """A clique with odd ids, and a path that leaves it."""
    levels = dict.fromkeys(itertools.combinations(sorted(ODD), 2), len(ODD) - 2)
    return made(
        tmp_path / "odd", levels | {("plain", "z,1"): 0, ("z,1", "z,2"): 0}, id_type=pa.string(), rows_per_group=4
    )
