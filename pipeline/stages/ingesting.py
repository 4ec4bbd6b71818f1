"""The stages `read` and `number`: make buckets of clean edges with dense vertex numbers from blocks of rows.

The functions at the end predict the memory of rows while they are read and cleaned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import expm1
from operator import attrgetter, itemgetter

import numpy as np
from numpy.typing import NDArray

from ...tasks import ingest
from ...tasks.device import MemorySpace
from ...tasks.errors import InputError
from ...tasks.estimate.estimate import GraphEstimate
from ...tasks.ids.identity import Ids
from ...tasks.ids.order import fits_table
from ...tasks.ingest import BucketIds
from ...tasks.ingest.blocks import PART_BYTES, BlockEdges
from ...tasks.ingest.left_out import LeftOut, refuse_nulls
from ...tasks.ingest.numbering import ids_of
from ...tasks.ingest.packed import PackedFacts, PackedRows, WideRows, can_pack, has_dense_ids
from ...tasks.ingest.reading import TEXT_AHEAD_BYTES
from ...tasks.inputs.sources import InputBlock, Source, refuse_other_counts
from ...tasks.storage.passwords import without_passwords
from ..cluster.connecting.local import WORKER_BYTES
from ..cluster.execution import Capacity
from ..events import Events, Stage
from .exchange import exchange, forward, send
from .layout import Layout
from .limits import FILL, MOST_BUCKETS, PACKED_ROW_BYTES, SORTED_SHARE
from .task_engine import Future, TaskEngine

NUMBERING_FACTOR = 3
"""Memory for numbering a bucket, in bytes for each byte of the ids that blocks send to it."""
MERGING_BYTES = 60
"""Memory for merging a bucket, in bytes for each edge that blocks send to it."""
MIN_NUMBERING_BYTES = 32 * 2**20
"""Memory that a bucket may use while it is numbered, even on a smaller worker."""


@dataclass(frozen=True)
class RowCounts:
    """The number of rows read, and the numbers of rows that cleaning dropped, by reason."""

    rows: int
    self_loops: int
    duplicates: int
    """Repeated edges within one block."""
    nulls: int
    filtered: int
    comments: int = 0
    """Lines of text that were skipped as comments."""
    notes: Sequence[str] = ()
    """What was seen in the rows, in sentences."""


@dataclass(frozen=True)
class Buckets:
    """The clean graph in buckets, which are ranges of ids."""

    ids: list[Future]
    """[buckets] BucketIds"""
    edges: list[Future]
    """[buckets] BucketEdges"""
    starts: NDArray[np.int64]
    """[buckets + 1] the first dense number of each bucket; the last entry is the number of vertices."""
    duplicates: int
    """Repeated edges from different blocks."""

    def move_to_host(self, engine: TaskEngine) -> None:
        """Move ids and edges from a GPU's memory to the host's. Tasks that need them bring them back."""
        engine.move_to_host([*self.ids, *self.edges])


def packs_rows(source: Source, space: MemorySpace) -> bool:
    """Whether blocks are read as packed rows: on GPUs, which sort many rows at once faster than block by block."""
    return space is MemorySpace.DEVICE and can_pack(source)


def read(
    engine: TaskEngine,
    events: Events,
    source: Source,
    blocks: Sequence[InputBlock],
    nulls: str,
    space: MemorySpace,
    packed: bool = False,
) -> tuple[list[Future], RowCounts]:
    """Read all blocks. Returns [blocks] BlockEdges, or with `packed` PackedRows or WideRows, and their counts of rows.

    Arrays are placed in `space`, here and in the stages that follow. Raises InputError for null ids, with their number
    in all blocks, unless `nulls` is "drop", and for a Matrix Market file with another number of entries than it says.
    Raises OtherType for a value that is not of the type of the first rows.
    """
    engine = engine.for_tasks(len(blocks))
    with events.stage("read", len(blocks)) as stage:
        function = ingest.read_packed if packed else ingest.read_block
        tasks = engine.map("read", function, [(source, block, space) for block in blocks])
        counts = engine.peek(tasks, _row_counts, stage=stage)
    refuse_other_counts(source, blocks, [count.rows for count in counts])
    left_out = sum((count.left_out for count in counts), LeftOut())
    if nulls == "refuse":
        refuse_nulls(without_passwords(source.path), (source.source_column, source.target_column), left_out)
    rows, self_loops, duplicates = (
        sum(getattr(count, name) for count in counts) for name in ("rows", "self_loops", "duplicates")
    )
    notes = tuple(map(without_passwords, left_out.notes(source.format)))
    for note in notes:
        events.emit("note", text=note)
    return tasks, RowCounts(rows, self_loops, duplicates, left_out.nulls, left_out.filtered, left_out.comments, notes)


def read_tasks(layout: Layout) -> int:
    """Tasks of `read`: a block each, and a look at it."""
    return layout.blocks + layout.peek(layout.blocks)


@dataclass(frozen=True)
class _BlockCounts:
    rows: int
    self_loops: int
    duplicates: int
    left_out: LeftOut


def _row_counts(block: BlockEdges | PackedRows | WideRows) -> _BlockCounts:
    return _BlockCounts(block.rows, block.self_loops, block.duplicates, block.left_out)


def number(
    engine: TaskEngine, events: Events, source: Source, blocks: list[Future], buckets: int, space: MemorySpace
) -> Buckets:
    """Number the vertices densely in id order, and send each edge once to the bucket of its smaller end.

    `blocks` are BlockEdges, PackedRows or WideRows. Makes `buckets` buckets, or more if these do not fit a worker.
    Empties the list `blocks`: futures of blocks and of exchanges are released as soon as no task needs them, so that
    workers spill each array at most once.

    Raises InputError if `input.bipartite` is "refuse" and ids are in both columns, and for repeated rows whose weights
    cannot be combined.
    """
    engine.wait(blocks)
    homes = engine.holders(blocks)
    every = ingest.sample_interval(source.rows, buckets)
    facts = engine.peek(blocks, partial(_facts_of, every), homes)
    packed = [own if isinstance(own, PackedFacts) else None for own in facts]
    whole = [own for own in packed if own is not None]
    if len(whole) == len(facts) and (buckets == 1 or _is_dense(whole)):
        return _number_packed(engine, events, blocks, whole, buckets)
    cleaned = [own for own in facts if isinstance(own, _BlockFacts)]
    if space is MemorySpace.HOST and len(cleaned) == len(facts):
        buckets = max(buckets, _buckets_for([own.numbering_bytes for own in cleaned], engine.capacity))
    rule = None if source.weights is None else source.weights.repeats
    engine, at = engine.for_tasks(buckets), engine.bucket_workers(buckets)
    with events.stage("number", 2 * buckets) as stage:
        blocks[:], repeated = _unpacked(engine, blocks, packed, space, homes) if any(packed) else (blocks, 0)
        samples = [own.sample for own in cleaned]
        if (wanted := ingest.sample_interval(source.rows, buckets)) != every or any(packed):
            samples = engine.peek(blocks, partial(ingest.sample_ids, every=wanted), homes)
        splitters = ingest.choose_splitters(samples, buckets)
        ids, starts = _number_ids(engine, stage, source, blocks, homes, splitters, buckets, space)
        answers = send(engine, "answer-numbers", "numbers", ingest.answer_numbers, [(own, starts) for own in ids], at)
        ids = engine.map("ids-alone", ingest.without_requests, [(own,) for own in ids], at)
        pairs = [(block, starts) for block in blocks]
        sent = forward(engine, "numbers", answers, "pairs", ingest.send_pairs, pairs, homes)
        del answers, pairs, blocks[:]
        tasks = [(bucket, starts, space, rule) for bucket in range(buckets)]
        edges = exchange(engine, "pairs", sent, ingest.merge_pairs, tasks, at)
        del sent
        merged = engine.peek(edges, attrgetter("duplicates", "refused"), at, stage)
        _refuse_repeats(engine, source, ids, starts, [refused for _, refused in merged])
    return Buckets(ids, edges, starts, repeated + sum(duplicates for duplicates, _ in merged))


def _number_ids(
    engine: TaskEngine,
    stage: Stage,
    source: Source,
    blocks: list[Future],
    homes: Sequence[int],
    splitters: Ids,
    buckets: int,
    space: MemorySpace,
) -> tuple[list[Future], NDArray[np.int64]]:
    """[buckets] BucketIds that still have the requests of blocks, and the first number of each bucket.

    Replaces the `blocks` by blocks without ids. `homes` [blocks] are their workers.
    """
    at = engine.bucket_workers(buckets)
    sent = send(engine, "send-ids", "ids", ingest.send_ids, [(block, splitters) for block in blocks], homes)
    blocks[:] = engine.map("without-ids", ingest.without_ids, [(block,) for block in blocks], homes)
    tasks = [(bucket, source.kind, space, engine.capacity.threads) for bucket in range(buckets)]
    ids = exchange(engine, "ids", sent, ingest.number_ids, tasks, at)
    del sent
    sizes = engine.peek(ids, _sizes_of, at, stage)
    if source.bipartite == "refuse":
        _refuse_ids_in_both_columns(source, sum(in_both for _, in_both in sizes))
    return ids, ingest.bucket_starts([vertices for vertices, _ in sizes])


def number_tasks(layout: Layout) -> int:
    """Tasks of `number`."""
    blocks, buckets = layout.blocks, layout.buckets
    facts, looks = layout.peek(blocks, known=True), layout.peek(buckets, known=True)
    if layout.sorted_groups:
        sort = 1 if buckets == 1 else layout.exchange(layout.sorted_groups, buckets)
        return facts + sort + 2 * (buckets + looks)  # ids and edges, which are parts of one result
    ids = layout.exchange(blocks, buckets) + blocks + looks  # and the blocks without ids
    numbers = layout.exchange(buckets, blocks) + buckets  # and the ids without requests
    return facts + ids + numbers + layout.forward(blocks, buckets) + looks


@dataclass(frozen=True)
class _BlockFacts:
    """What the driver needs to know of a block that is not packed."""

    numbering_bytes: int
    """Memory that its ids and edges add to the buckets while these are numbered."""
    sample: Ids


def _facts_of(every: int, block: BlockEdges | PackedRows | WideRows) -> PackedFacts | _BlockFacts:
    """The facts of a block, with a sample of one id for every `every` rows."""
    if isinstance(block, PackedRows | WideRows):
        return ingest.facts_of(block, every)
    numbering_bytes = NUMBERING_FACTOR * int(block.ids.nbytes) + MERGING_BYTES * len(block)
    return _BlockFacts(numbering_bytes, ingest.sample_ids(block, every))


def _sizes_of(ids: BucketIds) -> tuple[int, int]:
    """The number of vertices of a bucket, and of those whose ids are in both columns."""
    return len(ids), ids.in_both


def _number_packed(
    engine: TaskEngine, events: Events, blocks: list[Future], facts: Sequence[PackedFacts], buckets: int
) -> Buckets:
    """`number` for rows that were not cleaned, if their ids are dense or there is one bucket. `facts` [blocks]."""
    with events.stage("number", 2 * buckets) as stage:
        at = engine.bucket_workers(buckets)
        if buckets == 1:
            how = ingest.number_packed if _is_dense(facts) else ingest.number_wide
            both = engine.map("number-packed", how, [(blocks[:],)], at)
        else:
            both = _sort_into_buckets(engine, blocks, facts, buckets, at)
        del blocks[:]
        ids, edges = (engine.map("number-packed", itemgetter(part), [(own,) for own in both], at) for part in range(2))
        del both
        starts = ingest.bucket_starts(engine.peek(ids, len, at, stage))
        distinct = sum(engine.peek(edges, len, at, stage))
    return Buckets(ids, edges, starts, sum(own.rows - own.self_loops for own in facts) - distinct)


def _sort_into_buckets(
    engine: TaskEngine, blocks: Sequence[Future], facts: Sequence[PackedFacts], buckets: int, at: Sequence[int] | None
) -> list[Future]:
    """[buckets] BucketIds and BucketEdges of packed rows with dense ids, in one exchange.

    Each worker sorts its blocks in a few large groups: every group sends a part to every bucket.
    """
    engine = engine.for_partitions()
    splitters = ingest.choose_splitters([own.sample for own in facts], buckets)
    span = max(own.largest for own in facts) + 1
    by_worker: dict[int, list[int]] = {}
    for block, worker in enumerate(engine.holders(blocks)):
        by_worker.setdefault(worker, []).append(block)
    rows = [own.rows for own in facts]
    groups = [(home, own) for home, all_own in by_worker.items() for own in _cut(all_own, rows, engine.capacity)]
    tasks = [(number, [blocks[block] for block in own], splitters, span) for number, (_, own) in enumerate(groups)]
    sent = send(engine, "send-keys", "keys", ingest.send_keys, tasks, [home for home, _ in groups])
    return exchange(engine, "keys", sent, ingest.number_keys, [(b, splitters, span) for b in range(buckets)], at)


def _unpacked(
    engine: TaskEngine,
    blocks: Sequence[Future],
    facts: Sequence[PackedFacts | None],
    space: MemorySpace,
    homes: Sequence[int],
) -> tuple[list[Future], int]:
    """Cleaned blocks of the rows of `blocks`, and the number of repeated rows in the blocks that were packed.

    `facts` [blocks], and `homes` [blocks] are their workers.
    """
    cleaned = engine.map("unpack", ingest.unpack, [(block, space) for block in blocks], homes)
    found = engine.peek(cleaned, attrgetter("duplicates"), homes)
    return cleaned, sum(count for count, own in zip(found, facts, strict=True) if own is not None)


def sorted_groups(rows: int, capacity: Capacity) -> int:
    """Number of groups in which a worker sorts `rows` packed rows."""
    room = SORTED_SHARE * capacity.device_bytes / PACKED_ROW_BYTES if capacity.device_bytes else rows
    return max(1, math.ceil(rows / max(room, 1)))


def _cut(blocks: Sequence[int], rows: Sequence[int], capacity: Capacity) -> Iterator[list[int]]:
    """Groups of blocks of about equally many rows, each of which a GPU sorts in a part of its memory.

    `rows` are the numbers of rows of all blocks, also of those on other workers.
    """
    total = sum(rows[block] for block in blocks)
    groups = sorted_groups(total, capacity)
    own: list[int] = []
    done = given = 0
    for block in blocks:
        own.append(block)
        done += rows[block]
        if done * groups >= (given + 1) * total and given + 1 < groups:
            yield own
            own, given = [], done * groups // max(total, 1)
    if own:
        yield own


def _is_dense(facts: Sequence[PackedFacts]) -> bool:
    """Whether a table over the range of all ids is small enough. `facts` [blocks]."""
    return has_dense_ids(sum(own.rows for own in facts), max((own.largest for own in facts), default=0))


def _refuse_ids_in_both_columns(source: Source, ids: int) -> None:
    if ids:
        raise InputError(
            f"input.bipartite is refuse, and {ids:,} {'id is' if ids == 1 else 'ids are'} both in column "
            f"{source.source_column!r} and in column {source.target_column!r}: each would be one vertex; keep them "
            "apart with --bipartite prefix, or leave it out if they mean the same"
        )


def _refuse_repeats(
    engine: TaskEngine,
    source: Source,
    ids: Sequence[Future],
    starts: NDArray[np.int64],
    refused: Sequence[tuple[int, ...]],
) -> None:
    """Raises InputError for the first edge whose rows have no common weight. `refused` [buckets]."""
    first, weights = min((own for own in refused if own), default=()), source.weights
    if weights is None or not first:
        return
    *ends, rows = first
    found: dict[int, object] = {}
    for own in engine.peek(ids, partial(ids_of, ends, starts, source.id_type)):
        found |= own
    names = " and ".join(repr(found[end]) for end in ends)
    if weights.repeats == "error":
        raise InputError(
            f"the edge {'with a direction ' if source.directed else ''}between {names} has {rows:,} rows, and each can "
            f"have another weight in column {weights.column!r}: say what its weight is with "
            "--set input.repeats=sum, min or max"
        )
    raise InputError(
        f"the weights of the {rows:,} rows of the edge between {names} in column {weights.column!r} add up to more "
        "than a float64 can hold: use smaller units, or --set input.repeats=max"
    )


def _buckets_for(numbering_bytes: Sequence[int], capacity: Capacity) -> int:
    """The number of buckets for which each thread of a worker can number one bucket within the worker's memory."""
    if not capacity.memory_bytes:
        return 1
    room = max(FILL * capacity.memory_bytes - WORKER_BYTES, MIN_NUMBERING_BYTES) / capacity.threads
    return min(-(-sum(numbering_bytes) // int(room)), MOST_BUCKETS)


ROW_BYTES = 50
"""Memory of a row of integer ids while it is read and cleaned, besides that of an idle worker."""
HASHED_BYTES = 85
"""Additional memory for each distinct id of the block, if the ids are too far apart for a lookup table."""
TEXT_ROW_BYTES = 48
"""Memory of a row of string ids."""
TEXT_CODING_COPIES = 3.3
"""Copies in memory of the strings that a thread codes together, with their offsets."""
TEXT_MERGED = 4.2
"""Copies in memory of the distinct ids of a block while separately coded parts are merged."""
TEXT_FETCHED = 0.5
"""Bytes of Parquet files in memory for each byte of strings, if a row group is fetched at once."""
TEXT_PAGE_ROWS = 1024
"""Rows after which Arrow ends a Parquet page of long strings. Other writers end it after fewer."""
TEXT_PAGE_COPIES = 2
"""Copies in memory of a page of strings: as it is stored, and decoded."""


def block_bytes(source: Source, graph: GraphEstimate, rows: int, kept: float = 1) -> float:
    """Memory of a block of `rows` rows while it is read and cleaned. `kept` is a factor on numbers, not on text."""
    if source.kind == "string":
        size = kept * rows * TEXT_ROW_BYTES + coding_bytes(source, graph, rows)
        if _text_bytes(graph, rows) > PART_BYTES:
            size += TEXT_MERGED * distinct_ids(graph, rows) * (graph.id_bytes + 8)
        if source.is_counted:
            text = 2 * rows * graph.id_bytes
            size += TEXT_FETCHED * text if text <= TEXT_AHEAD_BYTES else 0
            size += TEXT_PAGE_COPIES * 2 * min(rows, TEXT_PAGE_ROWS) * graph.id_bytes
        return size
    if fits_table(graph.id_span, 2 * rows):
        return kept * rows * ROW_BYTES
    return kept * (rows * ROW_BYTES + HASHED_BYTES * distinct_ids(graph, rows))


def coding_bytes(source: Source, graph: GraphEstimate, rows: int) -> float:
    """Memory in which a thread codes the strings of a block, part by part; 0 for integers."""
    return TEXT_CODING_COPIES * min(_text_bytes(graph, rows), PART_BYTES) if source.kind == "string" else 0


def _text_bytes(graph: GraphEstimate, rows: int) -> float:
    """Bytes of both columns of strings, with their offsets."""
    return 2 * rows * (graph.id_bytes + 8)


def distinct_ids(graph: GraphEstimate, rows: int) -> float:
    """Distinct ids among the ends of some rows: their expected number, or the most that there can be if the graph is
    known by upper bounds.
    """
    among, drawn = graph.vertices.likely, 2 * rows
    return min(among, drawn) if graph.is_bound else distinct_of(among, drawn)


def distinct_of(among: int, drawn: int) -> float:
    """Expected number of distinct values among `drawn` random draws from `among` values.

    Rows that lie together repeat ids more often, so this is an upper estimate.
    """
    return among * -expm1(-drawn / among) if among else 0.0
