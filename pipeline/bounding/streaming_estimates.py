"""Estimates of λ by min-wise samples, beside λ; see tasks/bound/streamdn.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ...tasks.bound.streamdn import StreamEstimate, estimate_stream
from ...tasks.ingest import OwnedRows
from ...tasks.ingest.numbering import BucketEdges
from ...tasks.messages import Bundle
from ...tasks.publish.columns import EdgeColumn, EdgeValues, collect_columns, send_columns
from ...tasks.publish.result_columns import ESTIMATE
from ...tasks.publish.tables import TableColumn, value_column
from ..cluster.engine import Future
from ..output.manifest import StreamRecord
from ..stages.exchange import exchange, send
from ..stages.task_engine import TaskEngine


def estimate_edges(
    engine: TaskEngine,
    subgraph: Future,
    known: Future,
    rows: Future,
    edges: Sequence[Future],
    permutations: int,
) -> tuple[list[Future], StreamRecord]:
    """[buckets] lists of TableColumn with the estimates, and their record. `known` are the Intervals of the only
    partition, `rows` its OwnedRows, and `edges` [buckets] BucketEdges.
    """
    (found,) = engine.map("estimate-stream", estimate_stream, [(subgraph, known, permutations)])
    sent = send(engine, "send-estimates", "estimates", _send, [(rows, found)])
    columns = exchange(engine, "estimates", sent, _collect, [(own,) for own in edges])
    engine.wait(columns)
    ((passes, seconds, error),) = engine.peek([found], _figures)
    record = {
        "column": ESTIMATE.name,
        "permutations": permutations,
        "passes": passes,
        "seconds": seconds,
        "error": error,
    }
    return columns, StreamRecord.model_validate(record)


def _send(rows: OwnedRows, found: StreamEstimate) -> Bundle[EdgeValues]:
    return send_columns(rows, {ESTIMATE.name: found.estimate})


def _collect(edges: BucketEdges, parts: Mapping[int, EdgeValues]) -> list[TableColumn]:
    name = ESTIMATE.name
    return [value_column([ESTIMATE], name, collect_columns(edges, (EdgeColumn(name, "max"),), parts)[name])]


def _figures(found: StreamEstimate) -> tuple[int, float, dict[str, float] | None]:
    error = None if found.error is None else {name: round(value, 6) for name, value in asdict(found.error).items()}
    return found.passes, round(found.seconds, 3), error
