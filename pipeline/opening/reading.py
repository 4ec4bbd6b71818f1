"""Reading of whole graphs: the rows of an input, and the tables and the state of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ...tasks.device import MemorySpace
from ...tasks.errors import InputError
from ...tasks.inputs.sources import Source, plan_blocks
from ...tasks.update.merging import NumberedGraph, graph_of
from ..events import Events
from ..results.result import Result
from ..settings.models import BLOCK_ROWS, IngestSettings
from ..stages import ingesting
from ..stages.ingesting import Buckets, RowCounts
from ..stages.task_engine import TaskEngine


@dataclass(frozen=True)
class ReadGraph:
    """A graph that was read from rows."""

    graph: NumberedGraph
    rows: RowCounts
    """Its `duplicates` are all repeated edges."""
    arcs: Buckets | None = None
    """The same edges with their directions and weights, without ids; None if these are not asked for, or not there."""


def read_graph(
    engine: TaskEngine, events: Events, source: Source, settings: IngestSettings, nulls: str, with_arcs: bool = False
) -> ReadGraph:
    """The graph of an input. Each thread numbers one bucket. Directions and weights are kept if `with_arcs`.

    Raises InputError as the stages `read` and `number` do.
    """
    blocks = plan_blocks(source, settings.rows_per_block or BLOCK_ROWS)
    read, rows = ingesting.read(engine, events, source, blocks, nulls, MemorySpace.HOST)
    threads = max(1, min(engine.capacity.threads, len(blocks)))
    buckets = ingesting.number(engine, events, source, read, threads, MemorySpace.HOST)
    counts = replace(rows, duplicates=rows.duplicates + buckets.duplicates)
    graph = NumberedGraph.of_buckets(engine.gather(buckets.ids), engine.gather(buckets.edges))
    has_arcs = with_arcs and (source.directed or source.weights is not None)
    return ReadGraph(graph, counts, replace(buckets, ids=[]) if has_arcs else None)


def graph_of_result(result: Result) -> NumberedGraph:
    """The graph of a result, from its tables. Raises InputError for damage."""
    record = result.manifest.input
    ends = [record.source_column, record.target_column]
    with result.reading():
        ids = result.vertices.to_table(columns=["id"])["id"]
        table = result.edges.to_table(columns=ends)
    return graph_of(ids, *(table[end] for end in ends))


def edge_column(result: Result, name: str) -> NDArray[np.int32]:
    """A column of the result's edges, int32 [edges]. Raises InputError for damage."""
    with result.reading():
        values: NDArray[np.int32] = result.edges.to_table(columns=[name])[name].to_numpy()
    if len(values) != result.manifest.counts.edges:
        raise InputError(
            f"the result is damaged: {result.place} has {len(values):,} edges, and its manifest "
            f"{result.manifest.counts.edges:,}"
        )
    return values.astype(np.int32, copy=False)


def no_graph(id_type: pa.DataType) -> NumberedGraph:
    """A graph without vertices."""
    none: NDArray[np.int32] = np.zeros(0, np.int32)
    ids = np.zeros(0, np.int64) if pa.types.is_integer(id_type) else pa.array([], pa.large_string())
    return NumberedGraph(ids, Topology(none, none, 0))


def chunks(rows: int, most: int) -> Sequence[slice]:
    """Runs of at most `most` rows, about equally many in each."""
    count = -(-rows // most) if rows else 0
    return [slice(rows * at // count, rows * (at + 1) // count) for at in range(count)]
