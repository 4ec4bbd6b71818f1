"""λ of runs on drawn graphs equals the oracle's, for all ids, rows, shards and methods."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from distributed import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracles
import runs
import strategies
from dense_answers import check_dense
from edgemill.pipeline import mine
from examples import examples

VERTICES = 12
QUIET: dict[str, Any] = {"ingest": {"rows_per_block": 10}, "output.report": False}


DRAWN = given(
    graph=strategies.simple_graphs(VERTICES),
    naming=strategies.namings(VERTICES),
    how=st.sampled_from(
        [
            *({"partitioning": {"count": count}} for count in (1, 2, 3, 5)),
            {"method": "band"},
            {"method": "fixpoint"},
            {"method": "fixpoint", "bounding.operator": "tridn"},
        ]
    ),
    drawn=st.data(),
)


@DRAWN
@settings(max_examples=examples(10, 4), suppress_health_check=list(HealthCheck))
def test_lambda_is_the_oracles(client: Client, **drawn: Any) -> None:
    check(client, **drawn)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@DRAWN
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
def test_lambda_is_the_oracles_for_long(client: Client, **drawn: Any) -> None:
    check(client, **drawn)


def check(
    client: Client,
    graph: strategies.EdgeList,
    naming: strategies.Naming,
    how: dict[str, Any],
    drawn: st.DataObject,
) -> None:
    rows = drawn.draw(strategies.messy_rows(graph, VERTICES))
    names = {name: vertex for vertex, name in enumerate(naming.names)}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(naming.table(rows), Path(folder, "rows.parquet"), row_group_size=7)
        result = mine(
            Path(folder, "rows.parquet"),
            Path(folder, "out"),
            client=client,
            **QUIET | how,
        )
        found = {name: runs.column(result, name) for name in ("support", "lambda")}
        of_vertices = runs.vertex_column(result, "lambda")
        check_dense(result)
    expected = oracles.brute_force_lambda(graph)
    assert expected == oracles.networkx_lambda(graph)
    assert plain(found["lambda"], names) == expected
    assert plain(found["support"], names) == oracles.brute_force_support(graph)
    ends = {end for row in rows for end in row}
    assert {names[name]: value for name, value in of_vertices.items()} == oracles.vertex_lambda(expected, ends)
    runs.assert_nothing_left(client)


def plain(values: dict[runs.Edge, int], names: dict[Any, int]) -> dict[runs.Edge, int]:
    """The same values by vertex numbers, the smaller one first."""
    pairs = {(names[u], names[v]): value for (u, v), value in values.items()}
    return {(min(pair), max(pair)): value for pair, value in pairs.items()}
