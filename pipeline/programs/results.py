"""Results of programs beside columns of vertices.

Columns of edges take one exchange of the values of both ends, after a program has ended, and so do groups, which are
found as those of λ are. The tables of distances and of similar pairs go from blocks to the buckets of the sources, and
into files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks.device import MemorySpace
from ...tasks.errors import UsageError
from ...tasks.ids.identity import Ids, Kind
from ...tasks.programs import EdgeProgram, Program, SourceProgram
from ...tasks.programs.block import MOST_VERTICES, NO_PATH, PairTable
from ...tasks.programs.delivery import (
    BucketColumns,
    NamedColumns,
    collect_edge_columns,
    collect_levels,
    send_ends,
    with_edges,
    with_groups,
)
from ...tasks.programs.pairs import (
    collect_all_ids,
    collect_pairs,
    collect_similar,
    send_all_ids,
    send_pairs,
    send_similar,
    with_similar,
    write_distances,
    write_similar,
)
from ...tasks.publish.dense_tables import write_groups_of_program
from ...tasks.publish.tables import TableColumn
from ...tasks.publish.writing import OutputFile, TableOptions
from ..cluster.engine import Engine
from ..settings.declared_programs import ProgramColumn
from ..settings.models import Settings
from ..stages.exchange import exchange, send
from ..stages.extracting import KnownLambda, find_components
from ..stages.ingesting import Buckets
from ..stages.task_engine import Future, TaskEngine

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


def add_groups(
    engine: TaskEngine,
    buckets: Buckets,
    degrees: Sequence[Future],
    program: Program,
    space: MemorySpace,
    found: Sequence[Future],
    named: Sequence[Future],
) -> list[Future]:
    """[buckets] NamedColumns with the groups of a program that has some. `space` is the memory that holds the arrays of
    buckets, and `found` [buckets] BucketColumns has the state of the program.
    """
    engine = engine.for_tasks(len(buckets.edges))
    assert program.groups is not None
    sent = send(engine, "send-end-values", "end-values", send_ends, list(zip(found, degrees, strict=True)))
    own = list(zip(buckets.edges, degrees, found, strict=True))
    levels = exchange(engine, "end-values", sent, partial(collect_levels, program), own)
    graph = KnownLambda(buckets.edges, degrees, levels, buckets.starts)
    _, groups, _ = find_components(engine.for_partitions(space), graph)
    column = program.groups.column
    added = engine.map(
        "with-groups", with_groups, [(own, column, found) for own, found in zip(named, groups, strict=True)]
    )
    engine.wait(added)
    return added


def publish_groups(
    engine: TaskEngine,
    tables: Mapping[str, Sequence[Future]],
    tracks: Mapping[str, Sequence[Future]],
    how: TableOptions,
) -> list[OutputFile]:
    """Write tables of groups, a file for each bucket. By their names, `tables` are [buckets] NamedColumns with groups,
    and `tracks` [buckets] int64 tracks of these, -1 without one.
    """
    tasks = [(how, table, b, own, tracks[table][b]) for table, named in tables.items() for b, own in enumerate(named)]
    written = engine.map("write-groups", _write_groups, tasks)
    engine.wait(written)
    return engine.gather(written)


def _write_groups(
    how: TableOptions, table: str, bucket: int, named: NamedColumns, tracks: NDArray[np.int64]
) -> OutputFile:
    assert named.groups is not None
    return write_groups_of_program(how, table, bucket, named.groups, tracks)


def columns_of_edges(columns: Sequence[Sequence[ProgramColumn]], named: Sequence[NamedColumns]) -> list[TableColumn]:
    """Task: the columns of all programs for the edges of a bucket."""
    return [
        TableColumn(column.name, pa.type_for_alias(column.kind), found.edges[column.state], missing=column.missing)
        for own, found in zip(columns, named, strict=True)
        for column in own
    ]


def table_program(settings: Settings) -> str | None:
    """The name of the program whose distances are published; None if none is."""
    for name, program in settings.requested_programs.items():
        if issubclass(program.kind, SourceProgram) and settings.parameters_of(name).get("table"):
            return name
    return None


def refuse_large_table(settings: Settings, vertices: int) -> None:
    """Raises UsageError if the table of distances is requested for too many vertices."""
    name = table_program(settings)
    if name is not None and vertices > MOST_VERTICES:
        raise UsageError(
            f"{name}.table: the graph has {vertices:,} vertices, and a table of the distances of all pairs is made "
            f"for at most {MOST_VERTICES:,}: leave it out, or select a part of the graph with input.where"
        )


def add_pairs(engine: Engine, buckets: Buckets, states: Sequence[Future], named: Sequence[Future]) -> list[Future]:
    """[buckets] NamedColumns with the distances from the sources in the bucket. `states` [groups] are outcomes."""
    engine, starts, everyone = engine.for_tasks(len(named)), buckets.starts, range(len(named))
    sent = send(engine, "send-pairs", "pairs", send_pairs, [(own, starts) for own in states])
    pairs = exchange(engine, "pairs", sent, collect_pairs, [(b, int(starts[-1])) for b in everyone])
    added = engine.map("with-pairs", _with_pairs, list(zip(named, pairs, strict=True)))
    engine.wait(added)
    return added


def publish_pairs(
    engine: Engine, buckets: Buckets, kind: Kind, named: Sequence[Future], how: TableOptions
) -> list[OutputFile]:
    """Write the table of distances, a file for each bucket. `named` [buckets] are NamedColumns; `kind` is that of ids.
    Takes one exchange.
    """
    engine = engine.for_tasks(len(named))
    sent = send(engine, "send-all-ids", "all-ids", send_all_ids, [(own, len(named)) for own in buckets.ids])
    ids = exchange(engine, "all-ids", sent, collect_all_ids, [(kind,)] * len(named))
    written = engine.map("write-distances", _write, [(how, b, own, ids[b]) for b, own in enumerate(named)])
    engine.wait(written)
    return engine.gather(written)


def similar_rows(engine: Engine, buckets: Buckets, states: Sequence[Future]) -> list[Future]:
    """[buckets] BucketColumns of the pairs of similar vertices. `states` [groups] are outcomes."""
    engine = engine.for_tasks(len(buckets.ids))
    sent = send(engine, "send-similar", "similar", send_similar, [(own, buckets.starts) for own in states])
    return exchange(engine, "similar", sent, collect_similar, [(b,) for b in range(len(buckets.ids))])


def add_similar(engine: Engine, named: Sequence[Future], similar: Sequence[Future]) -> list[Future]:
    """[buckets] NamedColumns with pairs of similar vertices. `similar` [buckets] are NamedColumns of the pairs."""
    added = engine.map("with-similar", with_similar, list(zip(named, similar, strict=True)))
    engine.wait(added)
    return added


def publish_similar(engine: Engine, named: Sequence[Future], how: TableOptions) -> list[OutputFile]:
    """Write the table of similar pairs, a file for each bucket. `named` [buckets] are NamedColumns with pairs."""
    written = engine.map("write-similar-pairs", _write_similar, [(how, own) for own in named])
    engine.wait(written)
    return engine.gather(written)


def _write_similar(how: TableOptions, named: NamedColumns) -> OutputFile:
    assert named.similar is not None
    return write_similar(how, named.similar)


def _with_pairs(named: NamedColumns, pairs: PairTable) -> NamedColumns:
    return replace(named, pairs=pairs)


def _write(how: TableOptions, bucket: int, named: NamedColumns, ids: Ids) -> OutputFile:
    assert named.pairs is not None
    return write_distances(how, bucket, named.pairs.row, named.pairs.distance, int(NO_PATH), ids)
