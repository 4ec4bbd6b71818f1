"""Assign tracks to the DN-graphs of a run, from earlier results, before their tables are written.

The tasks are in `tasks/tracks`: each bucket reads its part of the earlier results. `lineage` selects the results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks import tracks
from ...tasks.dense import BucketGroups
from ...tasks.errors import InputError
from ...tasks.messages import Bundle
from ...tasks.tracks import EarlierResult, Fates, InheritedTracks, MatchedPairs, NewCounts, OldCounts, Shapes, summed
from ..events import Events
from ..messages.exits import message
from ..output.manifest import EarlierRecord, TracksRecord
from ..results.result import Result
from ..stages.exchange import exchange, forward, send
from ..stages.layout import Layout
from ..stages.task_engine import Future, TaskEngine
from .night import Lineage


@dataclass(frozen=True)
class GroupBuckets:
    """The DN-graphs of a run, by bucket."""

    ids: Sequence[Future]
    """[buckets] BucketIds"""
    groups: Sequence[Future]
    """[buckets] BucketGroups"""
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket."""
    highest: int
    """The highest λ."""
    id_type: pa.DataType
    """Type of vertex ids in the result."""


@dataclass(frozen=True)
class TrackedGroups:
    """The tracks of the DN-graphs of a run."""

    tracks: list[Future]
    """[buckets] int64 tracks of the DN-graphs of each bucket."""
    record: TracksRecord


def assign_tracks(engine: TaskEngine, events: Events, buckets: GroupBuckets, lineage: Lineage) -> TrackedGroups:
    """Assign a track to each DN-graph.

    All tracks are new if there is no earlier result to continue, or if it is damaged, which the event `tracks_new`
    says. Raises StoreLost as `lineage_of` does.
    """
    start, before = time.perf_counter(), lineage.before
    with events.stage("follow", 0) if before is not None else nullcontext():
        try:
            given, taken, fates = _assigned(engine, buckets, lineage)
        except InputError as error:  # the tasks read only earlier results
            if before is not None:
                events.emit("tracks_new", before=str(before.place), reason=message(error))
            refused = None if before is None else _record(lineage, before)
            lineage, before = replace(lineage, before=None, replaced=None, refused=refused), None
            given, taken, fates = _assigned(engine, buckets, lineage)
        counts = engine.peek(taken, _counts)
    graphs, continued, again = (sum(column) for column in zip(*counts, strict=True))
    new = graphs - continued - again
    record = None
    if before is not None:
        record = _record(lineage, before)
    events.emit(
        "followed",
        since=None if record is None else record.day,
        before=None if record is None else record.path,
        seconds=round(time.perf_counter() - start, 3),
        new=new,
        groups=None if fates is None else asdict(fates),
    )
    return TrackedGroups(
        given,
        TracksRecord(
            previous=record,
            continued=continued,
            again=again,
            new=new,
            next=lineage.first + new,
            refused=lineage.refused,
        ),
    )


def tracks_tasks(layout: Layout) -> int:
    """Tasks of `assign_tracks` if all DN-graphs are new: one task numbers those of all buckets."""
    buckets = layout.buckets
    return buckets + layout.exchange(buckets, 1) + layout.forward(1, buckets) + layout.peek(buckets)


def _record(lineage: Lineage, before: Result) -> EarlierRecord:
    return EarlierRecord(day=lineage.day, path=str(before.place), run=before.manifest.run)


def earlier_tables(result: Result) -> EarlierResult:
    """The files of a result from which tracks are continued."""

    def files(table: str) -> tuple[str, ...]:
        paths = sorted(output.path for output in result.manifest.outputs)
        return tuple(path for path in paths if PurePosixPath(path).parent.name == table)

    return EarlierResult(result.place, files("vertices"), files("dn_graphs"))


def _assigned(
    engine: TaskEngine, buckets: GroupBuckets, lineage: Lineage
) -> tuple[list[Future], list[Future], Fates | None]:
    """[buckets] tracks; [buckets] InheritedTracks; the fates of the groups of the previous night."""
    everyone = range(len(buckets.groups))
    before = _matched(engine, buckets, lineage.before)
    replaced = _matched(engine, buckets, lineage.replaced)
    previous_result = None if lineage.before is None or replaced is None else earlier_tables(lineage.before)
    taken = engine.map(
        "take-over",
        _take_over,
        [(buckets.groups[b], before and before[b], replaced and replaced[b], previous_result) for b in everyone],
    )
    own = list(zip(buckets.groups, taken, strict=True))
    sent = send(engine, "send-shapes", "shapes", _send_shapes, own)
    numbers = forward(engine, "shapes", sent, "track-numbers", tracks.number_shapes, [(lineage.first,)])
    given = exchange(engine, "track-numbers", numbers, _collect_tracks, own)
    fates = None
    if before is not None and lineage.before is not None:
        fates = _fates(engine, buckets, before, lineage.before)
    engine.wait(given)
    return given, taken, fates


def _matched(engine: TaskEngine, buckets: GroupBuckets, result: Result | None) -> list[Future] | None:
    """[buckets] overlaps of their DN-graphs with those of the result."""
    if result is None:
        return None
    earlier = earlier_tables(result)
    sent = send(
        engine,
        "send-overlaps",
        "overlaps",
        tracks.send_overlaps,
        [
            (ids, groups, buckets.id_type, buckets.starts, buckets.highest, earlier)
            for ids, groups in zip(buckets.ids, buckets.groups, strict=True)
        ],
    )
    return exchange(engine, "overlaps", sent, _match, [(groups, earlier) for groups in buckets.groups])


def _fates(engine: TaskEngine, buckets: GroupBuckets, before: Sequence[Future], result: Result) -> Fates:
    own = list(zip(buckets.groups, before, strict=True))
    count = len(own)
    sent = send(engine, "send-matches", "matches", partial(_send_matches, count), own)
    earlier: list[OldCounts] = engine.gather(exchange(engine, "matches", sent, tracks.count_old, [() for _ in own]))
    later: list[NewCounts] = engine.gather(engine.map("count-later", _count_later, own))
    return summed(later, earlier, 0 if result.manifest.dense is None else result.manifest.dense.dn_graphs)


def _match(groups: BucketGroups, earlier: EarlierResult, parts: dict[int, tracks.Overlaps]) -> MatchedPairs:
    return tracks.match(groups.dn_graphs, earlier, parts)


def _take_over(
    groups: BucketGroups,
    before: MatchedPairs | None,
    replaced: MatchedPairs | None,
    previous_result: EarlierResult | None,
) -> InheritedTracks:
    return tracks.inherit_tracks(groups.dn_graphs, before, replaced, previous_result)


def _send_shapes(groups: BucketGroups, taken: InheritedTracks) -> Bundle[Shapes]:
    return tracks.send_shapes(groups.bucket, groups.dn_graphs, taken)


def _collect_tracks(
    groups: BucketGroups, taken: InheritedTracks, parts: dict[int, tracks.Numbers]
) -> NDArray[np.int64]:
    return tracks.collect_tracks(groups.dn_graphs, taken, parts)


def _send_matches(buckets: int, groups: BucketGroups, before: MatchedPairs) -> Bundle[tracks.PairOutcomes]:
    return tracks.send_outcomes(groups.bucket, buckets, groups.dn_graphs, before)


def _count_later(groups: BucketGroups, before: MatchedPairs) -> NewCounts:
    return tracks.count_new(groups.dn_graphs, before)


def _counts(taken: InheritedTracks) -> tuple[int, int, int]:
    return len(taken.track), taken.continued, taken.again
