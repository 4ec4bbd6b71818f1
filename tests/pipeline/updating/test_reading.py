"""The graph of an input is the same in one bucket and in several, which threads number side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline.events import Events
from edgemill.pipeline.opening.reading import read_graph
from edgemill.pipeline.settings.models import IngestSettings
from edgemill.pipeline.stages.task_engine import ThreadedEngine
from edgemill.tasks.inputs.open_source import open_source


@pytest.mark.parametrize("kind", ["dense", "sparse", "text"])
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_buckets(kind: str, threads: int, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    ends = random.integers(0, 60, (2, 900))
    if kind == "sparse":
        ends = ends * (1 << 40) - (1 << 44)
    columns = [pa.array([f"v{end}" for end in column]) if kind == "text" else pa.array(column) for column in ends]
    pq.write_table(pa.table(columns, names=["src", "dst"]), tmp_path / "rows.parquet", row_group_size=100)
    source = open_source(str(tmp_path / "rows.parquet"))
    read = read_graph(ThreadedEngine("test", threads), Events(), source, IngestSettings(rows_per_block=100), "refuse")
    names = read.graph.ids.to_pylist() if isinstance(read.graph.ids, pa.Array) else read.graph.ids.tolist()
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    assert names == sorted({end for row in rows for end in row})
    edges = read.graph.edges
    assert edges.low.dtype == edges.high.dtype == np.int32
    found = [(names[low], names[high]) for low, high in zip(edges.low.tolist(), edges.high.tolist(), strict=True)]
    loops = sum(low == high for low, high in rows)
    assert found == sorted({(min(row), max(row)) for row in rows if row[0] != row[1]})
    assert (read.rows.rows, read.rows.self_loops) == (900, loops)
    assert read.rows.duplicates == 900 - loops - len(found)


def test_no_rows(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())}), tmp_path / "none.parquet"
    )
    source = open_source(str(tmp_path / "none.parquet"))
    read = read_graph(ThreadedEngine("test", 4), Events(), source, IngestSettings(), "refuse")
    assert (len(read.graph.ids), read.graph.edges.edges) == (0, 0)
