"""A run over some cliques. It compiles all kernels that the stages call before the first stage is timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...tasks import ingest
from ...tasks.device import MemorySpace
from ...tasks.ingest.packed import WIDE
from ...tasks.ingest.reading import IdRows
from ...tasks.inputs.sources import Source
from ...tasks.publish import lambda_columns as publish
from ...tasks.warm import clique_edges
from ..events import Events
from .exchange import exchange, send
from .extracting import KnownLambda, extract
from .ingesting import number
from .partitioning import collect_owned, order_by_degree
from .publishing import Findings, find_names, sum_by_vertex
from .task_engine import SequentialEngine

HIGHEST = 3
"""The largest of the artificial λ values for the stage `extract`."""


def run_stages(space: MemorySpace) -> int:
    """Run all stages except `read`, bounding and the writing of tables. Returns the number of edges.

    The rows are in two blocks and two buckets, with a self-loop and a repeated edge. `space` is the memory
    of all arrays.
    """
    engine, events = SequentialEngine(), Events()
    low, high = clique_edges().T
    source = Source("cliques", (), "source", "target", pa.int64())
    rows = IdRows(np.append(low, [0, 1]), np.append(high, [0, 0]))
    placed = replace(rows, source=space.place(rows.source), target=space.place(rows.target))
    wide = replace(placed, source=placed.source - WIDE)
    for given in (placed, wide):
        number(engine, events, source, [ingest.pack(block, given) for block in range(2)], 1, space)
    blocks = [ingest.clean(block, rows, space) for block in range(2)]
    buckets = number(engine, events, source, blocks, 2, space)
    vertices = int(buckets.starts[-1])
    graph = order_by_degree(engine, buckets.edges, vertices, space)
    owned = collect_owned(graph)
    columns = [(ingest.rows_to_publish(owned), 2 * owned.row, owned.row, owned.row)]
    parts = send(engine, "send-results", "results", publish.send_results, columns)
    results = exchange(engine, "results", parts, publish.collect_results, [(own,) for own in buckets.edges])
    vertices_of = sum_by_vertex(engine, Findings(buckets, graph.degrees, results))
    find_names(engine, buckets, graph.degrees, source.kind)
    levels = [own.low % np.int32(HIGHEST + 1) for own in results]
    known = [replace(own, low=level, high=level) for own, level in zip(results, levels, strict=True)]
    extract(engine, events, KnownLambda(buckets.edges, graph.degrees, known, buckets.starts), 1, space)
    return sum(publish.summarise(*own).edges for own in zip(results, vertices_of, strict=True))
