"""The stages of a run, in the order the edges flow: read → number → partition → triangulate → (bound) → (extract) →
publish.

Each is a few exchanges between tasks. The driver sees counts and small tables, never edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..tasks import device, ingest, publish, subgraph, triangulate, writing
from ..tasks.blocks import BlockEdges
from ..tasks.bound.intervals import Intervals
from ..tasks.dense import BucketGroups
from ..tasks.errors import InputError
from ..tasks.identity import Ids
from ..tasks.ingest import OwnedRows, Put
from ..tasks.left_out import LeftOut, refuse_nulls
from ..tasks.messages import Bundle
from ..tasks.passwords import without_passwords
from ..tasks.places import Place
from ..tasks.publish import BucketResults, BucketSummary, BucketVertices
from ..tasks.sources import Block, Source
from ..tasks.subgraph import PartitionCounts, Subgraph
from ..tasks.writing import OutputFile
from .engine import Capacity, Engine, Future
from .exchange import exchange, send
from .extracting import Groups
from .partitioning import Ordered, place, put_in_order, send_owned
from .plan import FILL, MOST_BUCKETS, WORKER_BYTES
from .settings import OutputSettings
from .telemetry import Events, Stage

__all__ = [
    "Buckets",
    "Partitions",
    "Published",
    "RowCounts",
    "collect_results",
    "number",
    "order",
    "partition",
    "publish_results",
    "read",
    "tables_to_write",
    "triangulate_partitions",
]


NUMBERING = 3
"""Memory in which a bucket is numbered, for each byte of the ids that blocks send to it."""
MERGING = 60
"""The same for each edge that blocks send to it."""
LEAST_ROOM = 32 * 2**20
"""For a bucket that is being numbered, however small the worker."""


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows that were read, block by block."""

    rows: int
    self_loops: int
    duplicates: int
    nulls: int
    filtered: int


@dataclass(frozen=True)
class Buckets:
    """The cleaned graph, by ranges of ids."""

    ids: list[Future]
    edges: list[Future]
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each, and the vertices in all."""
    duplicates: int
    """Edges that several blocks had."""


@dataclass(frozen=True)
class Partitions:
    """What publishing needs of the partitions."""

    rows: list[Future]
    """[partitions] OwnedRows"""
    degrees: list[Future]
    """[buckets] BucketDegrees"""


@dataclass(frozen=True)
class Published:
    """What was written."""

    files: list[OutputFile]
    summaries: list[BucketSummary]


def read(
    engine: Engine, events: Events, source: Source, blocks: Sequence[Block], nulls: str, put: Put
) -> tuple[list[Future], RowCounts]:
    """Read and clean all blocks; `put` says where, here and in what follows.

    Raises InputError for null ids, all of which are counted first, unless `nulls` is "drop".
    """
    engine.spread(len(blocks))
    with events.stage("read", len(blocks)) as stage:
        tasks = engine.map("read", ingest.read_block, [(source, block, put) for block in blocks])
        engine.wait(tasks, stage)
        counts = engine.peek(tasks, _row_counts)
    left_out = sum((count.left_out for count in counts), LeftOut())
    if nulls == "refuse":
        refuse_nulls(without_passwords(source.path), (source.source_column, source.target_column), left_out)
    rows, self_loops, duplicates = (
        sum(getattr(count, name) for count in counts) for name in ("rows", "self_loops", "duplicates")
    )
    return tasks, RowCounts(rows, self_loops, duplicates, left_out.nulls, left_out.filtered)


@dataclass(frozen=True)
class _BlockCounts:
    rows: int
    self_loops: int
    duplicates: int
    left_out: LeftOut


def _row_counts(block: BlockEdges) -> _BlockCounts:
    return _BlockCounts(block.rows, block.self_loops, block.duplicates, block.left_out)


def number(engine: Engine, events: Events, source: Source, blocks: list[Future], buckets: int, put: Put) -> Buckets:
    """Number the vertices densely in id order, and bring every edge, once, to the bucket of its smaller end.

    Raises InputError for ids that are in both columns, if `input.bipartite` refuses them.
    Lets go of `blocks`, and of each exchange as soon as it is over: what lies on the disk is to be written once.
    """
    if put is kernels.to_host:
        buckets = max(buckets, _buckets_for(engine.peek(blocks, _numbering_bytes), engine.capacity))
    everyone = range(buckets)
    engine.spread(buckets)
    with events.stage("number", 2 * buckets) as stage:
        every = ingest.sample_interval(source.rows, buckets)
        samples = engine.gather(engine.map("sample", ingest.sample_ids, [(block, every) for block in blocks]))
        splitters = ingest.choose_splitters(samples, buckets)
        sent = send(engine, "send-ids", "ids", ingest.send_ids, [(block, splitters) for block in blocks])
        blocks[:] = engine.map("without-ids", ingest.without_ids, [(block,) for block in blocks])
        ids = exchange(engine, "ids", sent, ingest.number_ids, [(b, source.kind, put) for b in everyone])
        del sent
        engine.wait(ids, stage)
        if source.bipartite == "refuse":
            _refuse_in_both(source, sum(engine.peek(ids, attrgetter("in_both"))))
        starts = ingest.bucket_starts(engine.peek(ids, len))
        numbers = send(engine, "answer-numbers", "numbers", ingest.answer_numbers, [(i, starts) for i in ids])
        ids = engine.map("ids-alone", ingest.without_questions, [(i,) for i in ids])
        sent = exchange(
            engine, "numbers", numbers, ingest.send_pairs, [(block, starts) for block in blocks], forward="pairs"
        )
        del numbers, blocks[:]
        edges = exchange(engine, "pairs", sent, ingest.merge_pairs, [(b, starts, put) for b in everyone])
        del sent
        engine.wait(edges, stage)
        duplicates = engine.peek(edges, attrgetter("duplicates"))
    return Buckets(ids, edges, starts, sum(duplicates))


def _refuse_in_both(source: Source, ids: int) -> None:
    if ids:
        raise InputError(
            f"input.bipartite is refuse, and {ids:,} {'id is' if ids == 1 else 'ids are'} both in column "
            f"{source.source_column!r} and in column {source.target_column!r}: each would be one vertex; keep them "
            "apart with --bipartite prefix, or leave it out if they mean the same"
        )


def _numbering_bytes(block: BlockEdges) -> int:
    """What the ids and edges of a block add to the memory in which buckets are numbered."""
    return NUMBERING * int(block.ids.nbytes) + MERGING * len(block)


def _buckets_for(numbering_bytes: Sequence[int], capacity: Capacity) -> int:
    """How many buckets it takes for a worker to number one with each thread within its memory."""
    if not capacity.memory_bytes:
        return 1
    room = max(FILL * capacity.memory_bytes - WORKER_BYTES, LEAST_ROOM) / capacity.threads
    return min(-(-sum(numbering_bytes) // int(room)), MOST_BUCKETS)


def order(engine: Engine, events: Events, buckets: Buckets, put: Put) -> Ordered:
    """Put the vertices in degree order: shards need no more to know where an edge goes."""
    engine.spread(len(buckets.edges))
    with events.stage("partition", len(buckets.edges)) as stage:
        graph = put_in_order(engine, buckets.edges, int(buckets.starts[-1]), put)
        engine.wait(graph.oriented, stage)
    return graph


def partition(
    engine: Engine, events: Events, buckets: Buckets, partitions: int, method: str, put: Put
) -> tuple[list[Future], list[Future]]:
    """Put the vertices in degree order, choose their partitions, and send every edge to its owner.

    Gives each partition's OwnedEdges, and each bucket's BucketDegrees.
    """
    edges = buckets.edges
    engine.spread(partitions)
    with events.stage("partition", len(edges) + partitions) as stage:
        graph = put_in_order(engine, edges, int(buckets.starts[-1]), put)
        engine.wait(graph.oriented, stage)
        parts = send_owned(graph, place(graph, method, partitions))
        owned = exchange(
            engine, "owned", parts, ingest.collect_owned, [(p, put) for p in range(partitions)], engine.homes
        )
        engine.wait(owned, stage)
    return owned, graph.degrees


def triangulate_partitions(
    engine: Engine, events: Events, owned: Sequence[Future]
) -> tuple[list[Future], list[Future], list[PartitionCounts]]:
    """Find every triangle once; gives each partition's OwnedRows, its subgraph with its ghosts, and its sizes.

    From here to the end of bounding everything lies on the device that computes.
    """
    partitions = len(owned)
    engine.spread(partitions)
    with events.stage("triangulate", 2 * partitions) as stage:
        rows = engine.map("rows-to-publish", ingest.rows_to_publish, [(o,) for o in owned])
        with engine.on_device():
            subgraphs = _subgraphs(engine, owned, stage)
            counts = engine.peek(subgraphs, attrgetter("counts"))
    return rows, subgraphs, counts


def _subgraphs(engine: Engine, owned: Sequence[Future], stage: Stage) -> list[Future]:
    partitions = len(owned)
    if engine.capacity.device_bytes:
        owned = engine.map("to-device", device.owned_to_device, [(o,) for o in owned], engine.homes)
    lists = send(engine, "send-lists", "lists", triangulate.send_lists, [(o, partitions) for o in owned], engine.homes)
    counted = exchange(engine, "lists", lists, triangulate.count_triangles, [(o,) for o in owned], engine.homes)
    engine.wait(counted, stage)
    replies = send(engine, "replies", "subgraph", attrgetter("replies"), [(c,) for c in counted])
    arguments = [(o, c, partitions) for o, c in zip(owned, counted, strict=True)]
    subgraphs = exchange(engine, "subgraph", replies, subgraph.build_subgraph, arguments, engine.homes)
    engine.wait(subgraphs, stage)
    return subgraphs


def collect_results(
    engine: Engine,
    buckets: Buckets,
    partitions: Partitions,
    subgraphs: Sequence[Future],
    intervals: Sequence[Future],
) -> list[Future]:
    """Bring λ back to the buckets: [buckets] BucketResults.

    It ends the stage of bounding: what follows, of which there is less where the run has not converged, begins with λ
    in buckets.
    """
    engine.spread(len(buckets.edges))
    ends = list(zip(partitions.rows, subgraphs, intervals, strict=True))
    sent = send(engine, "send-results", "results", _send_results, ends)
    results = exchange(engine, "results", sent, publish.collect_results, [(own,) for own in buckets.edges])
    engine.wait(results)
    return results


def tables_to_write(buckets: int, files: int, groups: bool) -> int:
    """Tasks that write: of edges and vertices `files` a bucket each, and one of its DN-graphs if there are any."""
    return (2 * files + groups) * buckets


def publish_results(
    engine: Engine,
    stage: Stage,
    source: Source,
    buckets: Buckets,
    degrees: Sequence[Future],
    results: Sequence[Future],
    groups: Groups | None,
    tracks: Sequence[Future],
    folder: Place,
    settings: OutputSettings,
    files: int,
    columns: Sequence[Future] | None = None,
) -> Published:
    """Sum λ up by vertex, and write the tables below `folder`: of edges and vertices `files` a bucket.

    `stage` is told of the `tables_to_write` as they are written. `tracks` are those of the buckets' DN-graphs. Without
    `groups` λ is in intervals. `columns` [buckets], lists of VertexColumn, are added to the vertices.
    """
    edges = buckets.edges
    everyone = range(len(edges))
    sums = send(engine, "send-sums", "sums", publish.send_sums, list(zip(edges, results, strict=True)))
    vertices = exchange(
        engine, "sums", sums, publish.collect_vertices, [(edges[b], degrees[b], results[b]) for b in everyone]
    )
    del sums  # what was sent is let go as soon as it has arrived, as in `number`
    answers = send(engine, "answer-names", "names", publish.answer_names, list(zip(buckets.ids, degrees, strict=True)))
    names = exchange(engine, "names", answers, publish.join_names, [(e, source.kind) for e in edges])
    del answers
    how = _Written(folder, source, groups is not None, settings.compression, settings.row_group_rows, files)
    parts = [(b, file) for b in everyone for file in range(files)]
    found = groups.found if groups else [None] * len(edges)
    added: list[Any] = [()] * len(edges) if columns is None else list(columns)
    written = engine.map(
        "write-edges",
        _write_edges,
        [(how, file, edges[b], buckets.ids[b], names[b], results[b]) for b, file in parts],
    ) + engine.map(
        "write-vertices",
        _write_vertices,
        [(how, f, buckets.ids[b], vertices[b], found[b], added[b]) for b, f in parts],
    )
    if groups:
        own = list(zip(buckets.ids, found, groups.triangles, tracks, strict=True))
        tables = engine.map("write-groups", _write_groups, [(how, *parts) for parts in own])
    else:
        tables = []
    summaries = engine.map("summarise", publish.summarise, list(zip(results, vertices, strict=True)))
    engine.wait([*written, *tables], stage)
    dense = [file for own in engine.gather(tables) for file in own]
    return Published([*engine.gather(written), *dense], engine.gather(summaries))


def _send_results(owned: OwnedRows, subgraph: Subgraph, ends: Intervals) -> Bundle[publish.EdgeResults]:
    support = subgraph.support
    if kernels.on_host(owned.row):
        support, ends = kernels.to_host(support), device.intervals_to_host(ends)
    return publish.send_results(owned, support, ends.low, ends.high)


@dataclass(frozen=True)
class _Written:
    """How the tables are written."""

    folder: Place
    source: Source
    converged: bool
    compression: str
    row_group_rows: int
    files: int
    """Of each bucket."""


def _write_edges(
    how: _Written, file: int, edges: ingest.BucketEdges, ids: ingest.BucketIds, names: Ids, results: BucketResults
) -> OutputFile:
    return writing.write_edges(
        how.folder,
        how.source,
        edges,
        ids.ids,
        names,
        results,
        file=file,
        files=how.files,
        converged=how.converged,
        compression=how.compression,
        row_group_rows=how.row_group_rows,
    )


def _write_vertices(
    how: _Written,
    file: int,
    ids: ingest.BucketIds,
    vertices: BucketVertices,
    groups: BucketGroups | None,
    columns: Sequence[writing.VertexColumn],
) -> OutputFile:
    return writing.write_vertices(
        how.folder,
        how.source,
        ids.ids,
        vertices,
        groups,
        columns,
        file=file,
        files=how.files,
        converged=how.converged,
        compression=how.compression,
        row_group_rows=how.row_group_rows,
    )


def _write_groups(
    how: _Written,
    ids: ingest.BucketIds,
    groups: BucketGroups,
    triangles: NDArray[np.int64],
    tracks: NDArray[np.int64],
) -> list[OutputFile]:
    return writing.write_groups(
        how.folder,
        how.source,
        ids.ids,
        groups,
        triangles,
        tracks,
        compression=how.compression,
        row_group_rows=how.row_group_rows,
    )
