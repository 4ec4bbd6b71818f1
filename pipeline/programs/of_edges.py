"""Columns of programs for edges: one exchange of the values of both ends, after a program has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from ...tasks.programs import EdgeProgram, Program
from ...tasks.programs.delivery import BucketColumns, NamedColumns
from ...tasks.programs.edges.values import collect_edge_columns, send_ends, with_edges
from ...tasks.publish.tables import TableColumn
from ..cluster.engine import Engine, Future
from ..stages.exchange import exchange, send
from ..stages.ingesting import Buckets
from .declared import ProgramColumn

Supports: TypeAlias = Sequence[Future]
"""[buckets] BucketResults"""


def no_columns(engine: Engine, buckets: Buckets) -> list[Future]:
    """[buckets] BucketColumns of a program without values of vertices."""
    return engine.map("no-columns", _no_columns, [(b,) for b in range(len(buckets.edges))])


def _no_columns(bucket: int) -> BucketColumns:
    return BucketColumns(bucket, {})


def add_edge_columns(
    engine: Engine,
    buckets: Buckets,
    degrees: Sequence[Future],
    results: Supports,
    program: Program | EdgeProgram,
    found: Sequence[Future],
    named: Sequence[Future],
) -> list[Future]:
    """[buckets] NamedColumns with the columns of edges. `found` [buckets] BucketColumns has the state of the program.

    Raises ProgramError for an error of the program.
    """
    engine = engine.for_tasks(len(buckets.edges))
    sent = send(engine, "send-end-values", "end-values", send_ends, list(zip(found, degrees, strict=True)))
    own = list(zip(buckets.edges, degrees, found, results, strict=True))
    columns = exchange(engine, "end-values", sent, partial(collect_edge_columns, program), own)
    added = engine.map("with-edges", with_edges, list(zip(named, columns, strict=True)))
    engine.wait(added)
    return added


def columns_of_edges(columns: Sequence[Sequence[ProgramColumn]], named: Sequence[NamedColumns]) -> list[TableColumn]:
    """Task: the columns of all programs for the edges of a bucket."""
    return [
        TableColumn(column.name, pa.type_for_alias(column.kind), found.edges[column.state], missing=column.missing)
        for own, found in zip(columns, named, strict=True)
        for column in own
    ]
